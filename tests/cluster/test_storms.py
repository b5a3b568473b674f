"""When much of a zone fails, and when somebody else is of another opinion about our taints."""

import asyncio

import pytest

from testbed.client import until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.world import NOT_READY, World

DISK_PRESSURE = "node.kubernetes.io/disk-pressure:NoSchedule"
CLOSED, EVICTING = f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"


async def _all_have(world: World, nodes: list[str], taint: str) -> None:
    async def right() -> bool:
        return all([taint in await world.taint_ids(node) for node in nodes])

    await until(right)


async def _told_of_zone(world: World, nodes: list[str], text: str) -> None:
    """Wait for the event on the node of the zone that happened to be seen last."""

    async def told() -> bool:
        events = [event for node in nodes for event in await world.events(node)]
        return any(event["reason"] == "ZoneDisruption" and text in event["message"] for event in events)

    await until(told)


async def _tainted(world: World, nodes: list[str]) -> set[str]:
    return {node for node in nodes if EVICTING in await world.taint_ids(node)}


@pytest.mark.reported("medik8s/node-healthcheck-operator#378")
async def test_a_zone_goes_on_tainting_a_while_after_a_storm_and_says_so(world: World, start: Start) -> None:
    nodes = await world.nodes(4)
    await (await start(*QUICK, "--storm-cooldown=3s")).until_ready()
    for node in nodes[:3]:
        await world.report(node, Ready="False")
    await _all_have(world, nodes[:3], CLOSED)
    await _told_of_zone(world, nodes, "to PartialDisruption; nodes tainted NoExecute per second: 0")
    tainted_before = await _tainted(world, nodes)
    await world.report(nodes[0], Ready="True")
    await _told_of_zone(world, nodes, "to Normal; nodes tainted NoExecute per second: 0, until")
    assert await _tainted(world, nodes) == tainted_before - {nodes[0]}
    await _told_of_zone(world, nodes, "stays in Normal; nodes tainted NoExecute per second: 100")
    await _all_have(world, nodes[1:3], EVICTING)


@pytest.mark.reported("kubernetes-sigs/karpenter node.health (20 %)")
async def test_no_more_nodes_than_chosen_are_evicted_from_at_once(world: World, start: Start) -> None:
    zones = [await world.nodes(3, zone) for zone in "abcd"]
    failing = [nodes[0] for nodes in zones]
    operator = await (await start(*QUICK, "--max-concurrent-evicting-nodes=2")).until_ready()
    for node in failing:
        await world.report(node, Ready="False")
    await _all_have(world, failing, CLOSED)

    async def are_evicted_from(count: int) -> bool:
        return len(await _tainted(world, failing)) == count

    await until(lambda: are_evicted_from(2))
    assert await operator.metric("taintkeeper_evicting_nodes") == 2
    first = await _tainted(world, failing)
    for node in first:
        await world.report(node, Ready="True")
    await _all_have(world, [node for node in failing if node not in first], EVICTING)
    assert await operator.metric("taintkeeper_evicting_nodes") == 2


async def test_somebody_who_removes_our_taint_each_time_is_told_of_and_not_fought(world: World, start: Start) -> None:
    node, *_ = await world.nodes(2)
    operator = await (await start(*QUICK)).until_ready()
    removed = 0

    async def oppose() -> None:
        nonlocal removed
        while True:
            if DISK_PRESSURE in await world.taint_ids(node):
                await world.set_taints(node)
                removed += 1
            await asyncio.sleep(0.02)

    opponent = asyncio.create_task(oppose())
    await world.report(node, DiskPressure="True")
    event = await world.told(node, "TaintContested", "Somebody keeps removing taint")
    opponent.cancel()
    await asyncio.gather(opponent, return_exceptions=True)
    assert event["type"] == "Warning"
    assert removed == 3
    assert await operator.metric("taintkeeper_taint_contests_total", key="node.kubernetes.io/disk-pressure") == 1
    assert await world.taint_ids(node) == set()
    assert await operator.metric("taintkeeper_taints_added_total", key="node.kubernetes.io/disk-pressure") == 3
    await world.report(node, PIDPressure="True")
    await _all_have(world, [node], "node.kubernetes.io/pid-pressure:NoSchedule")
    assert DISK_PRESSURE in await world.taint_ids(node)
