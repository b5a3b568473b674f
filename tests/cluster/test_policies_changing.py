"""What becomes of a policy that is made, edited, broken or deleted while the operator is at work."""

import asyncio

import pytest

from testbed.client import until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.policy_world import POLICIES, Policies
from tests.cluster.world import MAINTENANCE, World, taint, toleration

AT_ONCE_SECONDS = 2.0


async def hold(world: World, *pods: str) -> str:
    """Have budgets hold these pods on a tainted node; return the node's name."""
    node = await world.node()
    for name in pods:
        await world.pod(node, name)
        await world.budget(name, name, minAvailable=1)
    await world.add_taint(node, taint(MAINTENANCE))
    for name in pods:
        await world.told(name, "EvictionBlocked", name)
    return node


@pytest.mark.parametrize(
    "edit",
    [{"mode": "Delete"}, {"mode": "EvictThenDelete", "blockedSeconds": 0}],
    ids=["deletes", "has waited for long enough"],
)
async def test_an_edit_applies_at_once_to_pods_that_wait(
    world: World, policies: Policies, operator: OperatorProcess, edit: dict[str, object]
) -> None:
    name = await policies.make(mode="Evict")
    await policies.obeyed(name)
    await hold(world, "web")
    assert await world.pods() == {"web"}
    edited_at = asyncio.get_running_loop().time()
    await policies.edit(name, **edit)
    assert await world.gone("web") - edited_at < AT_ONCE_SECONDS


async def test_an_edit_moves_a_countdown_in_both_directions(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "sooner")
    await world.pod(node, "later")
    names = {
        pod: await policies.make(defaultTolerationSeconds=seconds, podSelector={"matchLabels": {"app": pod}})
        for pod, seconds in (("sooner", 600), ("later", 3))
    }
    await policies.obeyed(*names.values())
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint(MAINTENANCE))
    await policies.edit(names["later"], defaultTolerationSeconds=600)
    await policies.edit(names["sooner"], defaultTolerationSeconds=4)
    assert 4.0 <= await world.gone("sooner") - tainted_at < 4.0 + AT_ONCE_SECONDS
    await asyncio.sleep(1.0)
    assert await world.pods() == {"later"}
    await policies.delete(names["later"])
    await world.gone("later", AT_ONCE_SECONDS)


async def test_a_policy_that_is_made_while_pods_wait_applies_at_once_and_one_that_is_deleted_no_longer(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    await hold(world, "first", "second")
    made_at = asyncio.get_running_loop().time()
    name = await policies.make(mode="Delete", podSelector={"matchLabels": {"app": "first"}})
    assert await world.gone("first") - made_at < AT_ONCE_SECONDS
    ignoring = await policies.make(mode="Ignore", podSelector={"matchLabels": {"app": "second"}})
    await policies.counts(ignoring, exempt=1)
    await world.told("second", "TaintManagerEviction", "Cancelling deletion of Pod")
    await policies.delete(name)
    await policies.delete(ignoring)
    await until(lambda: _waits(operator, "budget"))
    assert await world.pods() == {"second"}


async def _waits(operator: OperatorProcess, reason: str) -> bool:
    return await operator.metric("taintkeeper_pending_evictions", reason=reason) == 1


async def test_the_status_tells_what_a_policy_does(world: World, policies: Policies, operator: OperatorProcess) -> None:
    name = await policies.make(mode="Evict")
    await policies.obeyed(name)
    first = await policies.status(name)
    numbers = {"pending": 0, "blocked": 0, "evicted": 0, "exempt": 0}
    assert {field: first[field] for field in ("observedGeneration", *numbers)} == {"observedGeneration": 1, **numbers}
    assert await policies.condition(name, "Accepted") == ("True", "Valid", "The policy makes sense.")
    assert (await policies.condition(name, "Active"))[:2] == ("True", "InForce")
    node = await world.node()
    await world.pod(node, "blocked")
    await world.budget("blocked", "blocked", minAvailable=1)
    await world.pod(node, "counting", toleration(MAINTENANCE, 600))
    await world.pod(node, "leaving")
    await world.pod(node, "kept", annotations={"taintkeeper.io/evict": "false"})
    await world.add_taint(node, taint(MAINTENANCE))
    await policies.counts(name, pending=2, blocked=1, evicted=1, exempt=1)
    await policies.edit(name, mode="Ignore")
    await policies.counts(name, observedGeneration=2, pending=0, blocked=0, evicted=1, exempt=3)
    second = await policies.status(name)
    assert [each["observedGeneration"] for each in second["conditions"]] == [2, 2]
    assert [each["lastTransitionTime"] for each in second["conditions"]] == [
        each["lastTransitionTime"] for each in first["conditions"]
    ]
    assert (await world.kube.get(POLICIES, "", name))["metadata"]["generation"] == 2


async def test_what_has_left_is_still_counted_after_a_restart(world: World, policies: Policies, start: Start) -> None:
    operator = await (await start(*QUICK)).until_ready()
    node = await world.node()
    await world.add_taint(node, taint(MAINTENANCE))
    name = await policies.make(mode="Evict")
    await policies.obeyed(name)
    await world.pod(node, "first")
    await policies.counts(name, evicted=1)
    await operator.kill()
    await (await start(*QUICK)).until_ready()
    await world.pod(node, "second")
    await policies.counts(name, evicted=2, pending=0)


async def test_nonsense_is_told_and_leaves_the_version_before_it_in_force(
    world: World, policies: Policies, start: Start
) -> None:
    await policies.define(checked=False)
    operator = await (await start(*QUICK)).until_ready()
    name = await policies.make(mode="Ignore")
    never = await policies.make(mode="Force")
    await policies.obeyed(name, never)
    await policies.edit(name, gracePeriodSeconds=0)
    await policies.obeyed(name)
    why = "spec.gracePeriodSeconds: 0 is not between 1 and 31536000; the last version that made sense stays in force"
    assert await policies.condition(name, "Accepted") == ("False", "Invalid", why)
    assert (await policies.condition(name, "Active"))[:2] == ("True", "InForce")
    status, _, message = await policies.condition(never, "Accepted")
    assert (status, message.partition(";")[0]) == (
        "False",
        "spec.mode: 'Force' is none of Evict, EvictThenDelete, Delete, Ignore",
    )
    node = await world.node()
    await world.pod(node, "kept")
    await world.add_taint(node, taint(MAINTENANCE))
    await policies.counts(name, exempt=1)
    await policies.edit(name, gracePeriodSeconds=5)
    await policies.obeyed(name)
    assert (await policies.condition(name, "Accepted"))[:2] == ("True", "Valid")
    assert await world.pods() == {"kept"}
    assert await operator.probe("readyz") == 200


async def test_a_dry_run_of_the_operator_decides_by_policies_and_writes_no_status(
    world: World, policies: Policies, start: Start
) -> None:
    name = await policies.make(mode="Ignore", podSelector={"matchLabels": {"app": "kept"}})
    process = await (await start("--dry-run", "--controllers=taint-eviction")).until_ready()
    node = await world.node()
    await world.pod(node, "kept")
    await world.pod(node, "leaving")
    await world.add_taint(node, taint(MAINTENANCE))
    await until(lambda: f"Pod {world.namespace}/kept is not evicted" in process.output())
    await until(lambda: f"pod {world.namespace}/leaving on node {node} evicted" in process.output())
    assert await world.pods() == {"kept", "leaving"}
    assert await policies.status(name) == {}
    assert await world.events("kept") == []
