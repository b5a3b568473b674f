"""Two operators at work in one cluster: one in it, say, and one on somebody's laptop."""

import asyncio
import json
import signal
from datetime import datetime, timedelta

import pytest

from testbed.client import until
from tests.cluster.conftest import Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World, taint, toleration

FIRST_SEEN = "taintkeeper.io/first-seen"
BARE = taint("maintenance")
EVICTION = ("--controllers=taint-eviction",)
WATCHED_SECONDS = 5.0
"""How long they may fight: it would be thousands of writes by then."""


async def memory(world: World, node: str) -> dict[str, str]:
    annotations = (await world.kube.get("nodes", "", node))["metadata"].get("annotations", {})
    found: dict[str, str] = json.loads(annotations.get(FIRST_SEEN, "{}"))
    return found


async def remembered(world: World, node: str) -> bool:
    return bool(await memory(world, node))


async def writes(*operators: OperatorProcess) -> float:
    counts = [
        await each.metric("taintkeeper_api_request_duration_seconds_count", verb="patch", resource="nodes")
        for each in operators
    ]
    return sum(counts)


async def test_they_agree_on_when_a_taint_was_first_seen_with_a_few_writes(world: World, start: Start) -> None:
    operators = [await (await start(*EVICTION)).until_ready() for _ in range(2)]
    node = await world.node()
    await world.pod(node, "timed", toleration("maintenance", 3600))
    before = await writes(*operators)
    # The second one sees the taint later, and the memory that the first one has written later still.
    operators[1].send(signal.SIGSTOP)
    await world.add_taint(node, BARE)
    await until(lambda: remembered(world, node))
    first = await memory(world, node)
    await asyncio.sleep(0.5)
    operators[1].send(signal.SIGCONT)
    await asyncio.sleep(WATCHED_SECONDS)
    assert await memory(world, node) == first
    assert 1 <= await writes(*operators) - before <= 4


@pytest.mark.parametrize("seconds", [-60.0, 3600.0], ids=["older", "newer"])
async def test_a_time_that_somebody_else_writes_counts_where_it_is_older(
    world: World, start: Start, seconds: float
) -> None:
    operator = await (await start(*EVICTION)).until_ready()
    node = await world.node()
    before = await writes(operator)
    theirs = {"maintenance:NoExecute": await _since_creation(world, node, seconds)}
    await world.add_taint(node, BARE)
    await until(lambda: remembered(world, node))
    ours = await memory(world, node)
    patch = {"metadata": {"annotations": {FIRST_SEEN: json.dumps(theirs)}}}
    await world.kube.patch("nodes", "", node, patch)
    await asyncio.sleep(2.0)
    assert await memory(world, node) == (theirs if seconds < 0.0 else ours)
    assert await writes(operator) - before == (1 if seconds < 0.0 else 2)


async def _since_creation(world: World, node: str, seconds: float) -> str:
    created = (await world.kube.get("nodes", "", node))["metadata"]["creationTimestamp"]
    return (datetime.fromisoformat(created) + timedelta(seconds=seconds)).isoformat()
