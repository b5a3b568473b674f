"""What happened while the operator could not look is known before anything is decided."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed import Cluster
from testbed.client import until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.link import Link
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World, taint, toleration

TOLERATED_SECONDS = 6


@pytest.fixture
async def link(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Link]:
    """A way to the API server that the test may cut."""
    made = await Link(cluster.kubeconfig, tmp_path).open()
    yield made
    await made.cut()


async def count_down(world: World) -> str:
    """Taint a node with a pod that tolerates this for a while; return the node's name."""
    node = await world.node()
    await world.pod(node, "counting", toleration("maintenance", TOLERATED_SECONDS))
    await world.add_taint(node, taint("maintenance"))
    return node


async def _counts(operator: OperatorProcess, pods: float = 1.0) -> bool:
    return await operator.metric("taintkeeper_pending_evictions", reason="toleration") == pods


async def _forgets(operator: OperatorProcess) -> bool:
    return await _counts(operator, 0.0)


async def test_a_taint_that_was_removed_while_the_api_was_out_of_reach_evicts_nobody(
    world: World, start: Start, link: Link
) -> None:
    operator = await (await start(*QUICK, kubeconfig=link.kubeconfig)).until_ready()
    node = await count_down(world)
    await until(lambda: _counts(operator))
    await link.cut()
    await asyncio.sleep(1.0)
    assert await operator.metric("taintkeeper_knowledge_fresh") == 0.0
    await world.set_taints(node)
    await asyncio.sleep(TOLERATED_SECONDS + 2.0)
    await link.open()
    await until(lambda: _forgets(operator), 30.0)
    await operator.until_ready()
    assert await world.pods() == {"counting"}
    assert await operator.metric("taintkeeper_eviction_requests_total") == 0.0
    assert await operator.metric("taintkeeper_evictions_cancelled_total") == 1.0


async def test_a_taint_that_was_removed_while_the_process_stood_still_evicts_nobody(
    world: World, operator: OperatorProcess
) -> None:
    node = await count_down(world)
    await until(lambda: _counts(operator))
    operator.send(signal.SIGSTOP)
    await world.set_taints(node)
    await asyncio.sleep(TOLERATED_SECONDS + 2.0)
    operator.send(signal.SIGCONT)
    await until(lambda: _forgets(operator))
    assert await world.pods() == {"counting"}
    assert await operator.metric("taintkeeper_eviction_requests_total") == 0.0
    assert await operator.metric("taintkeeper_stalls_total") >= 1.0


async def test_a_countdown_that_ended_while_the_process_stood_still_is_over_when_it_goes_on(
    world: World, operator: OperatorProcess
) -> None:
    await count_down(world)
    await until(lambda: _counts(operator))
    operator.send(signal.SIGSTOP)
    await asyncio.sleep(TOLERATED_SECONDS + 1.0)
    operator.send(signal.SIGCONT)
    await world.gone("counting", 10.0)
