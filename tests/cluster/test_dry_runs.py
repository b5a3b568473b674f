"""A dry run beside whoever does the work: it reports what it would do, budgets included, and writes nothing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed import Cluster
from testbed.client import Kube, Object, until
from tests.cluster.conftest import Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World, taint

READER = "taintkeeper-dry-run"
READING = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods", "namespaces", "persistentvolumes"], "verbs": ["list", "watch"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list", "watch"]},
    {"apiGroups": ["taintkeeper.io"], "resources": ["evictionpolicies", "nodetaintrules"], "verbs": ["list", "watch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch"]},
]
"""What the README says that a dry run needs."""


async def versions(world: World) -> dict[str, str]:
    """Return the version of every pod, budget and event of the world: what writes to one changes it."""
    found: dict[str, str] = {}
    for resource in ("pods", "poddisruptionbudgets", "events"):
        for each in await world.kube.list(resource, world.namespace):
            found[f"{resource}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
    return found


async def waits(process: OperatorProcess, reason: str, count: int) -> None:
    """Wait until so many pods wait for this reason."""

    async def there() -> bool:
        return await process.metric("taintkeeper_pending_evictions", reason=reason) == count

    await until(there)


@pytest.mark.parametrize(
    ("least", "leaving"), [(10, 0), (7, 3), (0, 10)], ids=["a closed budget", "one that allows three", "an open one"]
)
async def test_a_dry_run_evicts_as_many_pods_as_the_budget_would_let_go_and_writes_nothing(
    world: World, start: Start, least: int, leaving: int
) -> None:
    node = await world.node()
    for number in range(10):
        await world.pod(node, f"web-{number}", labels={"app": "web"})
    await world.pod(node, "free")
    await world.budget("web", "web", minAvailable=least)
    process = await (await start("--dry-run", "--controllers=taint-eviction")).until_ready()
    await world.add_taint(node, taint("maintenance"))
    before, tainted = await versions(world), await world.kube.get("nodes", "", node)
    await waits(process, "budget", 10 - leaving)
    await until(lambda: process.output().count(f"on node {node} evicted") >= leaving + 1)
    assert f"pod {world.namespace}/free on node {node} evicted" in process.output()
    assert process.output().count(f"on node {node} evicted") == leaving + 1
    assert process.output().count(f"is held by disruption budget {world.namespace}/web") == 10 - leaving
    assert await versions(world) == before
    assert await world.kube.get("nodes", "", node) == tainted
    assert await process.metric("taintkeeper_eviction_requests_total", code="201") == leaving + 1


async def test_a_dry_run_tells_of_two_budgets_on_one_pod(world: World, start: Start) -> None:
    node = await world.node()
    await world.pod(node, "twice", labels={"app": "web"})
    await world.budget("first", "web", minAvailable=0)
    await world.budget("second", "web", minAvailable=0)
    process = await (await start("--dry-run", "--controllers=taint-eviction")).until_ready()
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: "twice cannot be evicted (several_budgets, status 500)" in process.output())
    assert await process.metric("taintkeeper_eviction_requests_total", outcome="accepted") == 0


@pytest.mark.parametrize(
    ("policy", "leaves"), [("AlwaysAllow", True), ("IfHealthyBudget", False)], ids=["always", "if healthy"]
)
async def test_in_a_dry_run_a_pod_that_is_not_ready_leaves_as_its_budgets_policy_says(
    world: World, start: Start, policy: str, leaves: bool
) -> None:
    node = await world.node()
    await world.pod(node, "sick", labels={"app": "web"})
    sick = {"conditions": [{"type": "Ready", "status": "False"}]}
    await world.kube.patch_status("pods", world.namespace, "sick", sick)
    await world.budget("web", "web", minAvailable=1, unhealthyPodEvictionPolicy=policy)
    process = await (await start("--dry-run", "--controllers=taint-eviction")).until_ready()
    await world.add_taint(node, taint("maintenance"))
    words = f"sick on node {node} evicted" if leaves else f"sick is held by disruption budget {world.namespace}/web"
    await until(lambda: words in process.output())
    assert ("evicted" in process.output()) is leaves
    assert await world.pods() == {"sick"}


async def test_what_others_evict_during_a_dry_run_is_no_longer_counted(world: World, start: Start) -> None:
    node, other = await world.node(), await world.node()
    for number in range(3):
        await world.pod(node, f"web-{number}", labels={"app": "web"})
    await world.budget("web", "web", minAvailable=2)
    process = await (await start("--dry-run", "--controllers=taint-eviction")).until_ready()
    await world.add_taint(node, taint("maintenance"))
    await waits(process, "budget", 2)
    (evicted,) = [name for name in await world.pods() if f"{name} on node {node} evicted" in process.output()]
    await world.kube.delete("pods", world.namespace, evicted, gracePeriodSeconds=0)
    await world.pod(other, "web-3", labels={"app": "web"})
    await waits(process, "budget", 1)
    assert len(await world.pods()) == 3


@pytest.fixture
async def reader(cluster: Cluster, kube: Kube, world: World) -> AsyncIterator[Path]:
    """A kubeconfig of an account that may read what a dry run has to read, and nothing more."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    subjects: list[Object] = [{"kind": "ServiceAccount", "name": READER, "namespace": world.namespace}]
    await kube.create("serviceaccounts", {"metadata": {"name": READER, "namespace": world.namespace}})
    await kube.create("clusterroles", {"metadata": {"name": READER}, "rules": READING})
    await kube.create("clusterrolebindings", {"metadata": {"name": READER}, "roleRef": role, "subjects": subjects})
    yield cluster.kubeconfig_for(world.namespace, READER)
    await kube.delete("clusterrolebindings", "", READER)
    await kube.delete("clusterroles", "", READER)


@pytest.mark.only_on("real")
async def test_a_dry_run_needs_permission_to_read_alone(world: World, start: Start, reader: Path) -> None:
    node = await world.node()
    await world.pod(node, "leaving")
    process = await (await start("--dry-run", kubeconfig=reader)).until_ready()
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: f"pod {world.namespace}/leaving on node {node} evicted" in process.output())
