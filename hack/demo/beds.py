"""The control planes that the demo can play on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.embedded.cluster import EmbeddedCluster
from testbed.real.build import build, is_built
from testbed.real.cluster import RealCluster


@dataclass(frozen=True, slots=True)
class Bed:
    """A control plane. On one that is ours nodes are made and fail; on another, one node is tainted and no more."""

    title: str
    kubeconfig: Path
    is_ours: bool = True


@contextmanager
def embedded() -> Iterator[Bed]:
    """Start an empty control plane in this process."""
    with EmbeddedCluster() as cluster:
        yield Bed("an embedded control plane", cluster.kubeconfig)


@contextmanager
def real(say: Callable[[str], None]) -> Iterator[Bed]:
    """Start an empty control plane of etcd, kube-apiserver and all the rest, built first if it is not there yet.

    Raises:
        BuildError: it cannot be built.
        StartError: it does not start.
    """
    if not is_built():
        say("The real control plane is not built yet. It is built now, once, which takes some minutes.")
        build(say)
    say("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok ...")
    with RealCluster() as cluster:
        yield Bed("a real control plane, with kwok for kubelets", cluster.kubeconfig)
