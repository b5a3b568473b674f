"""Nodes are tainted by their conditions."""

import asyncio
from datetime import datetime, timedelta

import pytest

from testbed.client import Object, until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import NOT_READY, UNREACHABLE, World, taint
from tests.unit.core.builders import case

NOT_READY_TAINTS = {f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"}


async def _becomes(world: World, node: str, taints: set[str], seconds: float = 10.0) -> None:
    async def right() -> bool:
        return await world.taint_ids(node) == taints

    try:
        await until(right, seconds)
    except TimeoutError:
        raise AssertionError(f"expected {taints}, found {await world.taint_ids(node)}") from None


@pytest.mark.reported("kubernetes/kubernetes#76325")
@pytest.mark.parametrize(
    ("condition", "key"),
    [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ],
)
async def test_a_pressure_condition_taints_at_once_and_its_end_takes_the_taint_away(
    world: World, operator: OperatorProcess, condition: str, key: str
) -> None:
    node = await world.node()
    await _becomes(world, node, set())
    await world.report(node, **{condition: "True"})
    await _becomes(world, node, {f"node.kubernetes.io/{key}:NoSchedule"}, 2.0)
    await world.told(node, "TaintAdded", f"condition {condition} is True")
    await world.report(node, **{condition: "False"})
    await _becomes(world, node, set(), 2.0)
    await world.told(node, "TaintRemoved", "its condition is over")


async def test_a_cordoned_node_is_tainted_unschedulable(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.kube.patch("nodes", "", node, {"spec": {"unschedulable": True}})
    await _becomes(world, node, {"node.kubernetes.io/unschedulable:NoSchedule"})
    await world.kube.patch("nodes", "", node, {"spec": {"unschedulable": None}})
    await _becomes(world, node, set())


async def test_a_node_that_is_not_ready_gets_both_taints_and_its_pods_leave(
    world: World, operator: OperatorProcess
) -> None:
    node, *_ = await world.nodes(4)
    await world.pod(
        node, "untolerating", {"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}
    )
    await world.pod(node, "patient")
    await _becomes(world, node, set())
    await world.report(node, Ready="False")
    await _becomes(world, node, NOT_READY_TAINTS)
    assert all("timeAdded" in each for each in await world.taints(node))
    await world.gone("untolerating")
    await world.report(node, Ready="True")
    await _becomes(world, node, set())
    assert await world.pods() == {"patient"}


LASTING = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("ready", "tolerations", "kept", "leaves"),
    [
        case(
            "TestTaintBasedEvictions: NodeNotReady and 200 tolerationseconds",
            "False", [LASTING | {"tolerationSeconds": 200}], 200, False,
        ),
        case("TestTaintBasedEvictions: NodeNotReady with no pod tolerations", "False", [], 300, False),
        case(
            "TestTaintBasedEvictions: NodeNotReady and 0 tolerationseconds",
            "False", [LASTING | {"tolerationSeconds": 0}], 0, True,
        ),
        case("TestTaintBasedEvictions: NodeUnreachable", "Unknown", [], 300, False),
    ],
)  # fmt: skip
async def test_a_pod_leaves_a_failed_node_when_its_toleration_ends(
    world: World, operator: OperatorProcess, ready: str, tolerations: list[Object], kept: int, *, leaves: bool
) -> None:
    node, *_ = await world.nodes(3)
    pod = await world.pod(node, "tolerant", *tolerations)
    seconds = {each["key"]: each["tolerationSeconds"] for each in pod["spec"]["tolerations"]}
    assert seconds[NOT_READY] == kept
    await world.report(node, Ready=ready)
    key = NOT_READY if ready == "False" else UNREACHABLE
    await _becomes(world, node, {f"{key}:NoSchedule", f"{key}:NoExecute"})
    if leaves:
        await world.gone("tolerant", 15.0)
    else:
        assert await world.pods() == {"tolerant"}


async def test_both_taints_go_in_one_write_when_the_node_recovers(world: World, operator: OperatorProcess) -> None:
    node, *_ = await world.nodes(4)
    await world.report(node, Ready="False")
    await _becomes(world, node, NOT_READY_TAINTS)
    seen: list[set[str]] = []
    start = (await world.kube.get("nodes", "", node))["metadata"]["resourceVersion"]
    async with world.kube.watch(
        "/api/v1/nodes", resourceVersion=start, fieldSelector=f"metadata.name={node}"
    ) as events:
        await world.report(node, Ready="True")
        async for event in events:
            seen.append({t["effect"] for t in event["object"]["spec"].get("taints", [])})
            if not seen[-1]:
                break
    assert seen in ([{"NoSchedule", "NoExecute"}, set()], [set()])


async def test_a_swap_of_not_ready_and_unreachable_keeps_the_older_time(
    world: World, operator: OperatorProcess
) -> None:
    node, *_ = await world.nodes(4)
    await world.report(node, Ready="Unknown")
    await _becomes(world, node, {f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"})
    before = {each["effect"]: each["timeAdded"] for each in await world.taints(node)}
    await asyncio.sleep(1.5)
    await world.report(node, Ready="False")
    await _becomes(world, node, NOT_READY_TAINTS)
    assert {each["effect"]: each["timeAdded"] for each in await world.taints(node)} == before


@pytest.mark.reported("kubernetes/autoscaler#5657")
async def test_a_stale_taint_of_ours_is_removed_at_the_start_and_others_stay(world: World, start: Start) -> None:
    foreign = taint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", value="true")
    own = taint("readiness.k8s.io/network", "NoSchedule")
    hand_set = taint("node.kubernetes.io/disk-pressure", "NoExecute")
    node = await world.node(foreign, own, hand_set)
    await world.add_taint(node, taint(UNREACHABLE))
    await world.add_taint(node, taint("node.kubernetes.io/memory-pressure", "NoSchedule"))
    await (await start()).until_ready()
    expected = {f"{each['key']}:{each['effect']}" for each in (foreign, own, hand_set)}
    await _becomes(world, node, expected)
    assert foreign in await world.taints(node)


@pytest.mark.reported("kubernetes/kubernetes#83668")
async def test_a_taint_that_somebody_removes_comes_back_and_the_event_says_why(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.report(node, DiskPressure="True")
    ours = {"node.kubernetes.io/disk-pressure:NoSchedule"}
    await _becomes(world, node, ours)
    await world.set_taints(node)
    await _becomes(world, node, ours)
    await world.told(node, "TaintAdded", "added again: somebody removed it while condition DiskPressure is True")


@pytest.mark.reported("kubernetes/kubernetes#77981")
async def test_when_every_zone_has_failed_nobody_is_evicted_and_one_event_says_so(world: World, start: Start) -> None:
    nodes = await world.nodes(2)
    operator = await (await start(*QUICK)).until_ready()
    for node in nodes:
        await _becomes(world, node, set())
    for node in nodes:
        await world.report(node, Ready="False")
    for node in nodes:
        await _becomes(world, node, {f"{NOT_READY}:NoSchedule"})
    zone = f"{world.namespace}/a"
    assert await operator.metric("taintkeeper_zone_state", zone=zone, state="FullDisruption") == 1
    events = [event for node in nodes for event in await world.events(node) if event["reason"] == "ZoneDisruption"]
    assert len(events) == 1


@pytest.mark.reported("kubernetes/kubernetes#124448")
async def test_a_node_that_shuts_down_in_order_is_left_to_its_kubelet_for_a_while(world: World, start: Start) -> None:
    node, *_ = await world.nodes(4)
    await (await start(*QUICK, "--node-shutdown-grace-period=3s")).until_ready()
    # A real API server taints new nodes as not ready, without a time.
    await _becomes(world, node, set())
    condition = {"type": "Ready", "status": "False", "message": "node is shutting down"}
    await world.kube.patch_status("nodes", "", node, {"conditions": [condition]})
    await _becomes(world, node, {f"{NOT_READY}:NoSchedule"})
    await _becomes(world, node, NOT_READY_TAINTS)
    added = {each["effect"]: datetime.fromisoformat(each["timeAdded"]) for each in await world.taints(node)}
    assert added["NoExecute"] - added["NoSchedule"] >= timedelta(seconds=3)
