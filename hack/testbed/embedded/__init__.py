"""A small Kubernetes API server in memory, with just enough cluster around it to run workloads.

It answers as kube-apiserver 1.36 does for the kinds and calls in use here, which ``tests/cluster/test_conformance.py``
holds it to, and it can be told to misbehave in ways that a real one cannot.
"""

from testbed.embedded.access import Denial
from testbed.embedded.cluster import EmbeddedCluster
from testbed.embedded.faults import EvictionCall, Fault, Loss, RequestKind

__all__ = ["Denial", "EmbeddedCluster", "EvictionCall", "Fault", "Loss", "RequestKind"]
