"""Silent nodes are declared Unknown and their pods taken out of service; nobody is for what we could not see."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
import pytest

from testbed import Cluster
from testbed.client import ApiError, Kube, Object, until
from testbed.embedded import EmbeddedCluster
from testbed.embedded.faults import Fault, Loss
from testbed.real.cluster import RealCluster
from tests.cluster.conftest import Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World

GRACE_SECONDS = 3.0
FLAGS = (
    *("--controllers=node-health", "--node-monitor-grace-period=3s", "--node-startup-grace-period=3s"),
    "--verbose",
)
LEASES = "kube-node-lease"
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass
class Kubelets:
    """Renews the Leases of these nodes, as far as the API server lets it."""

    kube: Kube
    alive: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Renew every Lease several times in a grace period."""
        while True:
            for name in sorted(self.alive):
                try:
                    await self.renew(name)
                except (ApiError, aiohttp.ClientError):
                    break
            await asyncio.sleep(0.4)

    async def renew(self, name: str, at: str | None = None) -> None:
        """Renew a Lease, or make it."""
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": at or _now()}
        if name in self.known:
            await self.kube.patch("leases", LEASES, name, {"spec": spec})
            return
        await self.kube.create("leases", {"metadata": {"name": name, "namespace": LEASES}, "spec": spec})
        self.known.add(name)

    async def report(self, name: str) -> None:
        """Report a node as ready, as a kubelet does that is back."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()[:19] + "Z"}
        await self.kube.patch_status("nodes", "", name, {"conditions": [ready]})


@pytest.fixture
async def kubelets(kube: Kube, world: World) -> AsyncIterator[Kubelets]:
    """Kubelets that do nothing but live, until the test is over."""
    made = Kubelets(kube)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for name in made.known:
        await kube.delete("leases", LEASES, name)


@pytest.fixture
async def operator(start: Start, world: World) -> OperatorProcess:
    """An operator that is at work, with little patience."""
    return await (await start(*FLAGS)).until_ready()


async def _conditions(world: World, node: str) -> dict[str, Object]:
    found = await world.kube.get("nodes", "", node)
    return {each["type"]: each for each in found["status"].get("conditions", [])}


async def _ready(world: World, node: str) -> str:
    return str((await _conditions(world, node))["Ready"]["status"])


async def _becomes(world: World, node: str, status: str, seconds: float = 15.0) -> None:
    async def right() -> bool:
        return await _ready(world, node) == status

    await until(right, seconds)


async def _pod_ready(world: World, pod: str) -> str:
    found = await world.kube.get("pods", world.namespace, pod)
    return str(next(each["status"] for each in found["status"]["conditions"] if each["type"] == "Ready"))


async def _pod_becomes(world: World, pod: str, status: str) -> None:
    async def right() -> bool:
        return await _pod_ready(world, pod) == status

    await until(right)


@asynccontextmanager
async def _unreachable(cluster: Cluster) -> AsyncIterator[None]:
    """Have nobody reach the API server."""
    if isinstance(cluster, RealCluster):
        await asyncio.to_thread(cluster.stop_apiserver)
        yield
        await asyncio.to_thread(cluster.start_apiserver)
        return
    assert isinstance(cluster, EmbeddedCluster)
    fault = cluster.faults.add(Fault(loss=Loss.BEFORE))
    cluster.cut_watches(abruptly=True)
    yield
    cluster.faults.remove(fault)


async def test_a_node_that_falls_silent_is_declared_unknown_and_its_pods_are_out_of_service_until_it_is_back(
    world: World, kubelets: Kubelets, operator: OperatorProcess
) -> None:
    silent, well = await world.nodes(2)
    kubelets.alive |= {silent, well}
    await world.report(silent, DiskPressure="False", NetworkUnavailable="False")
    await world.pod(silent, "on-silent")
    await world.pod(well, "on-well")
    await asyncio.sleep(GRACE_SECONDS + 2.0)
    assert [await _ready(world, node) for node in (silent, well)] == ["True", "True"]
    kubelets.alive.discard(silent)
    await _becomes(world, silent, "Unknown")
    conditions = await _conditions(world, silent)
    assert {type_: (each.get("reason"), each.get("message")) for type_, each in conditions.items()} == {
        "Ready": STOPPED,
        "DiskPressure": STOPPED,
        "MemoryPressure": NEVER,
        "PIDPressure": NEVER,
        "NetworkUnavailable": (None, None),
    }
    assert conditions["NetworkUnavailable"]["status"] == "False"
    created = (await world.kube.get("nodes", "", silent))["metadata"]["creationTimestamp"]
    assert conditions["PIDPressure"]["lastHeartbeatTime"] == created
    await world.told(silent, "NodeNotReady", f"Node {silent} status is now: NodeNotReady")
    await _pod_becomes(world, "on-silent", "False")
    await world.told("on-silent", "NodeNotReady", "Node is not ready")

    kubelets.alive.add(silent)
    await kubelets.report(silent)
    await world.phase("on-silent", "Running")
    await asyncio.sleep(GRACE_SECONDS + 2.0)
    assert await _ready(world, silent) == "True"
    assert [await _pod_ready(world, pod) for pod in ("on-silent", "on-well")] == ["True", "True"]
    assert len(await world.events(silent)) == 1 + 1  # it was registered, and not ready once
    assert await _ready(world, well) == "True"


@pytest.mark.reported("kubernetes/kubernetes#125824")
async def test_an_operator_that_starts_upon_old_leases_gives_every_node_a_full_grace_period(
    world: World, kubelets: Kubelets, start: Start
) -> None:
    node = await world.node()
    await kubelets.renew(node, "2020-01-01T00:00:00.000000Z")
    begun = asyncio.get_running_loop().time()
    await (await start(*FLAGS)).until_ready()
    await _becomes(world, node, "Unknown")
    assert asyncio.get_running_loop().time() - begun > GRACE_SECONDS


async def test_a_node_is_alive_by_its_heartbeat_alone(
    world: World, kubelets: Kubelets, operator: OperatorProcess
) -> None:
    node = await world.node()
    for _ in range(5):
        await kubelets.report(node)
        await asyncio.sleep(1.1)
    assert await _ready(world, node) == "True"
    await _becomes(world, node, "Unknown")


async def test_nobody_is_declared_unknown_for_an_api_server_that_could_not_be_reached(
    world: World, kubelets: Kubelets, operator: OperatorProcess, cluster: Cluster
) -> None:
    nodes = await world.nodes(3)
    kubelets.alive |= set(nodes)
    await world.pod(nodes[0], "p1")
    await asyncio.sleep(1.0)
    async with _unreachable(cluster):
        await asyncio.sleep(GRACE_SECONDS + 2.0)
    await until(lambda: _is_ready(operator), 60.0)
    await asyncio.sleep(GRACE_SECONDS + 1.0)
    assert [await _ready(world, node) for node in nodes] == ["True"] * 3
    assert await _pod_ready(world, "p1") == "True"
    kubelets.alive.discard(nodes[0])
    await _becomes(world, nodes[0], "Unknown")


async def _is_ready(operator: OperatorProcess) -> bool:
    return await operator.probe("readyz") == 200


async def test_nobody_is_declared_unknown_for_the_time_in_which_the_process_was_stopped(
    world: World, kubelets: Kubelets, operator: OperatorProcess
) -> None:
    nodes = await world.nodes(3)
    kubelets.alive |= set(nodes)
    await asyncio.sleep(1.0)
    kubelets.alive.clear()
    operator.send(signal.SIGSTOP)
    await asyncio.sleep(GRACE_SECONDS + 2.0)
    operator.send(signal.SIGCONT)
    await asyncio.sleep(1.0)
    kubelets.alive |= set(nodes)
    await asyncio.sleep(GRACE_SECONDS + 2.0)
    assert [await _ready(world, node) for node in nodes] == ["True"] * 3
    kubelets.alive.discard(nodes[0])
    await _becomes(world, nodes[0], "Unknown")


@pytest.mark.only_on("embedded")
async def test_a_watch_that_shows_nothing_any_more_kills_nobody(
    world: World, kubelets: Kubelets, operator: OperatorProcess, cluster: Cluster
) -> None:
    assert isinstance(cluster, EmbeddedCluster)
    dead, *others = await world.nodes(3)
    kubelets.alive |= {dead, *others}
    await asyncio.sleep(1.0)
    cluster.freeze_watches("leases")
    kubelets.alive.discard(dead)
    await _becomes(world, dead, "Unknown")
    await asyncio.sleep(2 * GRACE_SECONDS)
    assert [await _ready(world, node) for node in others] == ["True", "True"]
    assert await operator.metric("taintkeeper_node_health_found_alive_total") >= 2


async def test_the_beta_labels_follow_the_stable_ones(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    stable = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    await world.kube.patch("nodes", "", node, {"metadata": {"labels": stable}})

    async def followed() -> bool:
        labels = (await world.kube.get("nodes", "", node))["metadata"]["labels"]
        return all(labels.get(f"beta.{key}") == value for key, value in stable.items())

    await until(followed)
    await world.kube.patch("nodes", "", node, {"metadata": {"labels": {"beta.kubernetes.io/os": "plan9"}}})
    await until(followed)
