"""The cluster in which things fail, and how long everything takes."""

from dataclasses import dataclass

from testbed.client import Kube
from testbed.real import RealCluster

NAMESPACE = "outage"
ZONES = 3


@dataclass(frozen=True, slots=True)
class Times:
    """How patient everybody is, in seconds, and at what rate nodes are evicted from, in nodes per second.

    ``lease`` is how far apart two signs of life of a node may be, ``absence`` how long the API server and the operator
    are away, ``patience`` how long the story waits for what should come.
    """

    nodes: int
    grace: float
    lease: float
    absence: float
    rate: float
    patience: float

    @property
    def flags(self) -> list[str]:
        """The operator's flags."""
        return [
            f"--node-monitor-grace-period={self.grace:g}s",
            f"--node-eviction-rate={self.rate:g}",
            f"--storm-cooldown={self.grace / 5.0:g}s",
        ]

    @property
    def kwok_flags(self) -> list[str]:
        """The flags of what stands for the kubelets: they renew a lease four times while it lasts."""
        return [f"--node-lease-duration-seconds={round(4 * self.lease)}"]


FULL = Times(nodes=30, grace=50.0, lease=10.0, absence=180.0, rate=0.1, patience=150.0)
"""As in production."""
SHORT = Times(nodes=9, grace=8.0, lease=1.0, absence=16.0, rate=1.0, patience=40.0)
"""The same in about two minutes."""


async def set_up(cluster: RealCluster, kube: Kube, times: Times) -> None:
    """Make the nodes, and two pods on each that put up with any failure."""
    names = cluster.add_nodes(times.nodes, ZONES)
    await kube.create("namespaces", {"metadata": {"name": NAMESPACE}})
    for name in names:
        for number in (1, 2):
            await kube.create("pods", _pod(f"{name}-{number}", name))


def _pod(name: str, node: str) -> dict[str, object]:
    spec = {
        "nodeName": node,
        "containers": [{"name": "main", "image": "none"}],
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
    }
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
