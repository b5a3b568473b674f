"""Disruption budgets hold, and a pod leaves once its budget allows it."""

import asyncio
from functools import partial

import pytest

from bench.load import in_parallel
from testbed.client import until
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.test_evicting import LATE_SECONDS
from tests.cluster.world import World, taint


@pytest.mark.reported("kubernetes/website#7829")
@pytest.mark.reported("kubernetes/kubernetes#126189 (runAsLongAsPDB)")
async def test_a_pod_stays_while_its_budget_is_closed_and_leaves_when_it_opens(
    world: World, operator: OperatorProcess
) -> None:
    node, other = await world.node(), await world.node()
    await world.pod(node, "kept", labels={"app": "web"})
    await world.pod(node, "free")
    await world.budget("web", "web", minAvailable=1)
    await world.add_taint(node, taint("maintenance"))
    await world.gone("free")
    event = await world.told("kept", "EvictionBlocked", f"disruption budget {world.namespace}/web")
    assert event["type"] == "Warning"
    assert await operator.metric("taintkeeper_pending_evictions", reason="budget") == 1
    assert await world.pods() == {"kept"}
    await world.pod(other, "spare", labels={"app": "web"})
    await world.gone("kept", 3.0)
    assert await world.pods() == {"spare"}


@pytest.mark.reported("gardener/machine-controller-manager#703")
async def test_many_pods_behind_one_closed_budget_cost_one_call(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    for number in range(30):
        await world.pod(node, f"web-{number}", labels={"app": "web"})
    await world.budget("web", "web", minAvailable=30)
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _blocked(operator, 30))
    await asyncio.sleep(2.0)
    assert await operator.metric("taintkeeper_eviction_requests_total") <= 2
    assert len(await world.pods()) == 30


@pytest.mark.only_on("real")
@pytest.mark.timeout(300)
@pytest.mark.reported("gardener/machine-controller-manager#703")
async def test_five_hundred_pods_behind_one_closed_budget_cost_a_few_calls_a_minute_and_leave_as_it_opens(
    world: World, operator: OperatorProcess
) -> None:
    nodes = await world.nodes(5)
    pods = [partial(world.pod, nodes[number % 5], f"web-{number}", labels={"app": "web"}) for number in range(500)]
    await in_parallel(pods)
    await world.budget("web", "web", minAvailable=500)
    for node in nodes:
        await world.add_taint(node, taint("maintenance"))
    await asyncio.sleep(60.0)
    assert await _blocked(operator, 500)
    calls = await operator.metric("taintkeeper_eviction_requests_total")
    assert 1 <= calls <= 6
    await world.kube.patch("poddisruptionbudgets", world.namespace, "web", {"spec": {"minAvailable": 497}})
    await until(lambda: _allows(world, 3))
    opened = asyncio.get_running_loop().time()
    await until(lambda: _accepted(operator, 3))
    assert asyncio.get_running_loop().time() - opened < LATE_SECONDS
    await asyncio.sleep(2.0)
    assert await _accepted(operator, 3)
    assert await operator.metric("taintkeeper_eviction_requests_total") <= calls + 5
    assert len(await world.pods()) == 497


async def _allows(world: World, count: int) -> bool:
    """Return whether a budget allows, or has allowed, so many disruptions."""
    status = (await world.kube.get("poddisruptionbudgets", world.namespace, "web"))["status"]
    return bool(status["disruptionsAllowed"] == count or status["currentHealthy"] < 500)


async def _accepted(operator: OperatorProcess, count: int) -> bool:
    return await operator.metric("taintkeeper_eviction_requests_total", code="201") == count


async def _blocked(operator: OperatorProcess, count: int) -> bool:
    return await operator.metric("taintkeeper_pending_evictions", reason="budget") == count


@pytest.mark.reported("maksim-paskal/aks-node-termination-handler#28")
async def test_no_more_pods_leave_than_the_budget_allows(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    for number in range(10):
        await world.pod(node, f"web-{number}", labels={"app": "web"})
    await world.budget("web", "web", minAvailable=7)
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _blocked(operator, 7))
    await asyncio.sleep(1.0)
    assert len(await world.pods()) == 7
    assert await operator.metric("taintkeeper_eviction_requests_total", code="201") == 3


@pytest.mark.reported("kubernetes/kubernetes#75957")
async def test_two_budgets_on_one_pod_are_named_and_hold_up_nobody_else(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "twice", labels={"app": "web"})
    await world.budget("first", "web", minAvailable=0)
    await world.budget("second", "web", minAvailable=0)
    for number in range(3):
        await world.pod(node, f"other-{number}")
    await asyncio.sleep(0.5)
    await world.add_taint(node, taint("maintenance"))
    event = await world.told("twice", "EvictionFailed", "first, second")
    assert event["type"] == "Warning"
    for number in range(3):
        await world.gone(f"other-{number}")
    assert await operator.metric("taintkeeper_eviction_requests_total", outcome="several_budgets") == 1
    assert await world.pods() == {"twice"}


@pytest.mark.reported("kubernetes/kubernetes#113375")
async def test_an_unhealthy_pod_leaves_at_the_first_try_where_its_budget_always_allows_it(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "healthy", labels={"app": "web"})
    await world.pod(node, "sick", labels={"app": "web"})
    sick = {"conditions": [{"type": "Ready", "status": "False"}]}
    await world.kube.patch_status("pods", world.namespace, "sick", sick)
    await world.budget("web", "web", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    await until(lambda: _allowed(world, 0))
    await world.add_taint(node, taint("maintenance"))
    await world.gone("sick")
    await until(lambda: _blocked(operator, 1))
    assert await world.pods() == {"healthy"}
    assert await operator.metric("taintkeeper_eviction_requests_total", code="201") == 1


async def _allowed(world: World, count: int) -> bool:
    found = await world.kube.get("poddisruptionbudgets", world.namespace, "web")
    return bool(found["status"]["disruptionsAllowed"] == count and found["status"]["currentHealthy"] == 1)
