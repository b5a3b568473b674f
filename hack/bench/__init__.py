"""How fast and how light Taintkeeper is, beside kube-controller-manager on the same machine in the same run."""
