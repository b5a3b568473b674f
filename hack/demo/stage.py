"""What the scenes act with: the cluster, what is seen of it, and the few things that a person does to it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from demo import manifests
from demo.beds import Bed
from demo.checks import Check
from demo.clock import Clock, timestamp
from demo.forecast import Forecast
from demo.narrator import Narrator
from demo.reading import app_of, is_leaving, is_ready, spelled, taints_of
from demo.record import Record
from demo.timeline import Timeline
from testbed.client import ApiError, Kube, Object, until
from testbed.real.nodes import management

CONFLICT_TRIES = 10


class StuckError(Exception):
    """The story cannot go on: what it builds upon has not happened. The check that shows it is recorded already."""


@dataclass(slots=True)
class Stage:
    """One performance of the demo."""

    bed: Bed
    kube: Kube
    clock: Clock
    timeline: Timeline
    record: Record
    narrator: Narrator
    checks: list[Check] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that the demo may use."""
        return sorted(name for name, node in self.record.nodes.items() if manifests.is_for_demo(node))

    async def comes_true(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, and return whether it did within these seconds."""
        try:
            await until(condition, seconds)
        except TimeoutError:
            return False
        return True

    def require(self, claim: str, *, holds: bool, expected: str, seen: str) -> None:
        """Note a check that the rest of the story builds upon.

        Raises:
            StuckError: it does not hold.
        """
        self.checks.append(Check(claim, holds, expected, seen))
        if not holds:
            raise StuckError(claim)

    def running(self, app: str) -> list[Object]:
        """Return the pods of a workload that are ready and not on their way out."""
        pods = [pod for pod in self.record.pods.values() if app_of(pod) == app]
        return [pod for pod in pods if is_ready(pod) and not is_leaving(pod)]

    def is_tainted(self, node: str) -> bool:
        """Say whether a node has any taint."""
        return bool(taints_of(self.record.nodes[node]))

    def has_left(self, forecast: Forecast) -> bool:
        """Say whether the pod of a forecast has been told to end."""
        return self.record.left(forecast.pod) is not None

    async def silence(self, node: str) -> None:
        """Have a node's kubelet report that it is not ready, and then nothing any more."""
        await self._report(node, "False", "KubeletNotReady", "container runtime is down")
        await self.kube.patch("nodes", "", node, management(managed=False))

    async def wake(self, node: str) -> None:
        """Have a node's kubelet come back."""
        await self.kube.patch("nodes", "", node, management(managed=True))
        await self._report(node, "True", "KubeletReady", "kubelet is posting ready status")

    async def _report(self, node: str, status: str, reason: str, message: str) -> None:
        now = timestamp()
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message, **times}
        await self.kube.patch_status("nodes", "", node, {"conditions": [ready]})

    async def put_taint(self, node: str, taint: Object) -> None:
        """Put a taint on a node as ``kubectl taint`` does, without a time."""
        self.record.set_by_hand(node, spelled(taint))
        await change_taints(self.kube, node, lambda taints: [*taints, taint])


async def change_taints(kube: Kube, node: str, change: Callable[[list[Object]], list[Object]]) -> None:
    """Replace a node's taints, provided that nobody changes the node meanwhile.

    Raises:
        ApiError: the API refused for another reason, or somebody changes the node all the time.
    """
    for attempt in range(CONFLICT_TRIES):
        value = await kube.get("nodes", "", node)
        taints = change(value["spec"].get("taints") or [])
        version = value["metadata"]["resourceVersion"]
        try:
            await kube.patch("nodes", "", node, {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}})
        except ApiError as error:
            if error.status != 409 or attempt == CONFLICT_TRIES - 1:
                raise
        else:
            return


async def take_taint(kube: Kube, node: str, taint: Object) -> None:
    """Take a taint off a node, if it is there.

    Raises:
        ApiError: the API refused.
    """
    unwanted = spelled(taint)
    await change_taints(kube, node, lambda taints: [each for each in taints if spelled(each) != unwanted])
