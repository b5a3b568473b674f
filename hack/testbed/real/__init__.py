"""A real control plane, without containers: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

The programs are built from Go modules (:mod:`testbed.real.build`) and started in a folder of their own
(:mod:`testbed.real.cluster`).
"""

from testbed.real.build import BuildError, build, can_build, is_built
from testbed.real.cluster import RealCluster
from testbed.real.processes import StartError

__all__ = ["BuildError", "RealCluster", "StartError", "build", "can_build", "is_built"]
