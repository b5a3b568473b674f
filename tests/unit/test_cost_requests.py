"""How many requests work costs the API server, counted by the embedded one."""

import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from taintkeeper import runtime
from taintkeeper.runtime import Taintkeeper
from testbed.client import Kube
from testbed.embedded import EmbeddedCluster
from testbed.embedded.samples import sample_nodes, sample_pods
from testbed.embedded.timestamps import now
from tests.unit.runtime_bench import running, until

NODES, PODS = 3, 12
TAINT = {"key": "foo", "effect": "NoExecute"}
LEASES = "kube-node-lease"
RIVALS = 2
"""Controllers of kube-controller-manager whose events are watched."""


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    """A cluster in which nothing happens by itself, but that evicted pods go."""
    monkeypatch.setattr(runtime, "ACCESS_SECONDS", 0.05)
    with EmbeddedCluster(bookmark_seconds=60.0, heartbeat_seconds=1_000.0, termination_seconds=0.05) as cluster:
        cluster.seed([*sample_nodes(NODES), *sample_pods(PODS, NODES)])
        yield cluster
    gc.enable()
    gc.unfreeze()


@pytest.fixture
async def kube(embedded: EmbeddedCluster) -> AsyncIterator[Kube]:
    async with Kube(embedded.kubeconfig) as client:
        yield client


@pytest.fixture
async def operator(embedded: EmbeddedCluster) -> AsyncIterator[Taintkeeper]:
    """The operator at work, when it has done all that there was to do at the start."""
    async with running(embedded) as started:
        await until(lambda: asked(embedded)["PATCH nodes"] == NODES)  # labels
        await until(lambda: asked(embedded)["WATCH events"] == RIVALS)
        embedded.clear_journal()
        yield started


def asked(cluster: EmbeddedCluster) -> Counter[str]:
    """Return what was asked since the journal was cleared: ``POST pods/eviction`` and so on."""
    counted = Counter[str]()
    for kind, number in cluster.requests.items():
        counted[f"{kind.method} {'/'.join(filter(None, (kind.resource, kind.subresource)))}"] += number
    return counted


def _told(cluster: EmbeddedCluster, number: int) -> bool:
    return asked(cluster)["POST events"] == number


@pytest.mark.parametrize(
    ("dated", "memories"),
    [pytest.param(True, 0, id="a taint with its time"), pytest.param(False, NODES, id="one to be remembered")],
)
async def test_an_evicted_pod_costs_an_eviction_and_an_event_and_its_node_two_reads_and_an_event(
    dated: bool, memories: int, embedded: EmbeddedCluster, operator: Taintkeeper, kube: Kube
) -> None:
    taint = TAINT | ({"timeAdded": now()} if dated else {})
    for number in range(1, NODES + 1):
        node = await kube.patch("nodes", "", f"node-{number}", {"spec": {"taints": [taint]}})
        operator.node_event({"type": "MODIFIED", "object": node})
    await until(lambda: asked(embedded)["POST events"] == PODS + NODES and not embedded.objects("pods"))
    await until(lambda: asked(embedded)["PATCH nodes"] >= NODES + memories)
    ours = Counter({"POST pods/eviction": PODS, "POST events": PODS + NODES, "GET nodes": NODES, "GET pods": NODES})
    assert asked(embedded) == ours + Counter({"PATCH nodes": NODES + memories})


async def test_a_taint_costs_a_patch_and_an_event_when_it_comes_and_when_it_goes(
    embedded: EmbeddedCluster, operator: Taintkeeper, kube: Kube
) -> None:
    for number, status in enumerate(("True", "False"), start=1):
        condition = {"type": "DiskPressure", "status": status}
        node = await kube.patch_status("nodes", "", "node-1", {"conditions": [condition]})
        operator.node_event({"type": "MODIFIED", "object": node})
        await until(partial(_told, embedded, number))
        node = await kube.get("nodes", "", "node-1")
        operator.node_event({"type": "MODIFIED", "object": node})
    theirs = {"PATCH nodes/status": 2, "GET nodes": 2}
    assert asked(embedded) - Counter(theirs) == Counter({"PATCH nodes": 2, "POST events": 2})


async def test_a_pod_or_lease_that_changes_and_a_heartbeat_cost_nothing(
    embedded: EmbeddedCluster, operator: Taintkeeper, kube: Kube
) -> None:
    for number in range(10):
        pod = await kube.patch("pods", "default", "pod-1", {"metadata": {"annotations": {"number": str(number)}}})
        node = await kube.patch("nodes", "", "node-1", {"metadata": {"annotations": {"number": str(number)}}})
        operator.node_event({"type": "MODIFIED", "object": node})
    lease = await kube.patch("leases", LEASES, "node-1", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    eviction, health = operator._controllers.eviction, operator._controllers.node_health
    assert eviction is not None
    assert health is not None
    seen, renewed = eviction._engine._pods, health._engine._silence._renewed
    await until(lambda: seen[pod["metadata"]["uid"]].version == int(pod["metadata"]["resourceVersion"]))
    await until(lambda: renewed["node-1"] == lease["spec"]["renewTime"])
    assert asked(embedded) == Counter({"PATCH pods": 10, "PATCH nodes": 10, "PATCH leases": 1})
