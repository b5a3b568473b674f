"""How pods leave by an EvictionPolicy, with the operator as its users run it."""

import asyncio
from typing import Any

import pytest

from testbed import Cluster
from testbed.client import Object, path_to, until
from testbed.embedded import EmbeddedCluster
from testbed.embedded.faults import Fault
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.policy_world import Policies
from tests.cluster.world import MAINTENANCE, World, taint, toleration

LATE_SECONDS = 2.0
"""How late an eviction may be seen here: these machines are busy and noisy."""


async def blocked(world: World, name: str = "web", **facts: Any) -> str:
    """Make a node with a pod that its budget never lets go; return the node's name."""
    node = await world.node()
    await world.pod(node, name, **facts)
    await world.budget(name, name, minAvailable=1)
    return node


async def terminating(world: World) -> dict[str, int]:
    """Return the pods that are terminating, with the seconds that each was given."""
    pods = [pod["metadata"] for pod in await world.kube.list("pods", world.namespace)]
    return {pod["name"]: pod["deletionGracePeriodSeconds"] for pod in pods if "deletionTimestamp" in pod}


@pytest.mark.reported("kubernetes/kubernetes#91465")
async def test_evict_has_a_blocked_pod_wait_and_delete_asks_no_budget(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await blocked(world, "kept")
    await world.pod(node, "deleted")
    await world.budget("deleted", "deleted", minAvailable=1)
    deleting = await policies.make(mode="Delete", podSelector={"matchLabels": {"app": "deleted"}})
    evicting = await policies.make(mode="Evict", podSelector={"matchLabels": {"app": "kept"}})
    await policies.obeyed(deleting, evicting)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.told("deleted", "TaintManagerEviction", f"Marking for deletion Pod {world.namespace}/deleted")
    await world.told("kept", "EvictionBlocked", f"disruption budget {world.namespace}/kept")
    assert await world.pods() == {"kept"}
    assert await terminating(world) == {"deleted": 1}, "a pod without a grace period is not deleted by force either"
    assert await operator.metric("taintkeeper_pod_deletions_total", code="200") == 1
    assert await operator.metric("taintkeeper_policy_evictions_total", policy=deleting, how="deleted") == 1
    assert await operator.metric("taintkeeper_eviction_requests_total", outcome="accepted") == 0
    assert f"policy {deleting}, mode Delete" in operator.output()


@pytest.mark.reported("kubernetes-sigs/karpenter#1776")
@pytest.mark.reported("kubernetes-sigs/karpenter#3218")
async def test_a_pod_that_was_blocked_for_too_long_is_told_of_its_disruption_and_then_deleted(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await blocked(world, grace=45)
    name = await policies.make(mode="EvictThenDelete", blockedSeconds=4)
    await policies.obeyed(name)
    history: list[Object] = []
    async with world.kube.watch(path_to("pods", world.namespace)) as events:
        tainted_at = asyncio.get_running_loop().time()
        await world.add_taint(node, taint(MAINTENANCE))
        async with asyncio.timeout(15.0):
            async for event in events:
                history.append(event["object"])
                if "deletionTimestamp" in event["object"]["metadata"]:
                    break
        assert 4.0 <= asyncio.get_running_loop().time() - tainted_at < 4.0 + LATE_SECONDS
    (condition,) = (each for each in history[-2]["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert (condition["status"], condition["reason"]) == ("True", "DeletionByTaintkeeper")
    assert "deletionTimestamp" not in history[-2]["metadata"]
    assert await terminating(world) == {"web": 45}
    event = await world.told("web", "EvictionEscalated", f"by policy {name}")
    assert event["type"] == "Warning"
    assert await operator.metric("taintkeeper_evictions_escalated_total") == 1
    await policies.counts(name, pending=0, blocked=0, evicted=1)


@pytest.mark.only_on("embedded")
async def test_a_deletion_is_for_the_very_pod_that_has_to_leave(
    world: World, policies: Policies, operator: OperatorProcess, cluster: Cluster
) -> None:
    assert isinstance(cluster, EmbeddedCluster)
    node = await world.node()
    await world.pod(node, "web")
    await policies.obeyed(await policies.make(mode="Delete"))
    slow = cluster.faults.add(Fault(method="DELETE", path="/pods/web$", delay_seconds=2.0, times=1))
    await world.add_taint(node, taint(MAINTENANCE))
    await until(lambda: slow.hits == 1)
    await world.kube.delete("pods", world.namespace, "web", gracePeriodSeconds=0)
    await world.pod(node, "web", toleration(MAINTENANCE))
    await until(lambda: "the UID in the precondition" in operator.output())
    assert await world.pods() == {"web"}
    assert await terminating(world) == {}


@pytest.mark.reported("kubernetes/kubernetes#75957")
async def test_a_pod_under_two_budgets_is_deleted_in_its_time_as_well(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "twice", grace=45)
    for budget in ("first", "second"):
        await world.budget(budget, "twice", minAvailable=0)
    await policies.obeyed(await policies.make(mode="EvictThenDelete", blockedSeconds=3))
    await world.add_taint(node, taint(MAINTENANCE))
    await world.told("twice", "EvictionFailed", "supports one disruption budget a pod, this one has first, second")
    await world.gone("twice")
    await world.told("twice", "EvictionEscalated", "which disruption budgets had held")


@pytest.mark.reported("kubernetes/kubernetes#124243")
async def test_a_pod_without_a_toleration_of_its_own_gets_the_one_of_its_policy(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "given")
    await world.pod(node, "own", toleration(MAINTENANCE, 1))
    await world.pod(node, "forever", toleration(MAINTENANCE))
    await policies.obeyed(await policies.make(defaultTolerationSeconds=4))
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint(MAINTENANCE))
    assert 1.0 <= await world.gone("own") - tainted_at < 1.0 + LATE_SECONDS
    assert 4.0 <= await world.gone("given") - tainted_at < 4.0 + LATE_SECONDS
    assert await world.pods() == {"forever"}


@pytest.mark.parametrize("mode", ["Evict", "Delete"])
async def test_a_pod_is_given_the_time_that_its_policy_says_whatever_its_own(
    world: World, policies: Policies, operator: OperatorProcess, mode: str
) -> None:
    node = await world.node()
    await world.pod(node, "long", grace=600)
    await world.pod(node, "short", grace=1)
    await policies.obeyed(await policies.make(mode=mode, gracePeriodSeconds=77))
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone("long")
    await world.gone("short")
    assert await terminating(world) == {"long": 77, "short": 77}


async def test_no_more_pods_leave_a_node_at_once_than_the_policy_allows(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    nodes = await world.nodes(2)
    for number in range(8):
        await world.pod(nodes[number % 2], f"web-{number}", grace=600)
    name = await policies.make(maxConcurrentPerNode=2)
    await policies.obeyed(name)
    for node in nodes:
        await world.add_taint(node, taint(MAINTENANCE))
    await policies.counts(name, evicted=4, pending=4)
    await asyncio.sleep(1.0)
    assert len(await terminating(world)) == 4
    ended = next(iter(await terminating(world)))
    await world.kube.delete("pods", world.namespace, ended, gracePeriodSeconds=0)
    await policies.counts(name, evicted=5, pending=3)
    await asyncio.sleep(1.0)
    assert len(await terminating(world)) == 4


@pytest.mark.reported("kubernetes/kubernetes#53556")
async def test_a_taint_with_no_schedule_evicts_where_a_policy_names_it_and_nowhere_else(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node, other = await world.nodes(2)
    await world.pod(node, "leaving")
    await world.pod(node, "tolerating", {**toleration("drain"), "effect": "NoSchedule"})
    await world.pod(other, "kept")
    pattern = {"key": "drain", "effect": "NoSchedule"}
    await policies.obeyed(await policies.make(taints=[pattern], defaultTolerationSeconds=3))
    await world.add_taint(other, taint("full", "NoSchedule"))
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint("drain", "NoSchedule"))
    assert 3.0 <= await world.gone("leaving") - tainted_at < 3.0 + LATE_SECONDS
    assert await world.pods() == {"tolerating", "kept"}


async def test_a_dry_run_tells_what_would_leave_until_it_is_over(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "rehearsing")
    await world.pod(node, "witness", toleration(MAINTENANCE, 2))
    name = await policies.make(dryRun=True, podSelector={"matchLabels": {"app": "rehearsing"}})
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone("witness")
    assert await world.pods() == {"rehearsing"}
    assert f"pod {world.namespace}/rehearsing on node {node} would be evicted now" in operator.output()
    assert await operator.metric("taintkeeper_policy_evictions_total", policy=name, how="dry-run") == 1
    await policies.counts(name, pending=1, exempt=0, evicted=0)
    assert (await policies.condition(name, "Active"))[:2] == ("False", "DryRun")
    await policies.edit(name, dryRun=False)
    await world.gone("rehearsing")
    await policies.counts(name, pending=0, evicted=1)
    assert (await policies.condition(name, "Active"))[:2] == ("True", "InForce")


@pytest.mark.reported("kubernetes/kubernetes#20641")
async def test_each_taint_may_have_its_own_mode(world: World, policies: Policies, operator: OperatorProcess) -> None:
    nodes = {key: await blocked(world, key) for key in ("gentle", "hard")}
    await policies.obeyed(await policies.make(taints=[{"key": "hard"}], mode="Delete"))
    for key, node in nodes.items():
        await world.add_taint(node, taint(key))
    await world.gone("hard")
    await world.told("gentle", "EvictionBlocked", "gentle")
    assert await world.pods() == {"gentle"}


async def test_without_a_policy_a_blocked_pod_waits_by_the_default(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await blocked(world)
    await world.pod(node, "free")
    await world.add_taint(node, taint(MAINTENANCE))
    await world.told("web", "EvictionBlocked", "web")
    await until(lambda: "policy system:default, mode Evict" in operator.output())
    assert await world.pods() == {"web"}
