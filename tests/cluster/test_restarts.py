"""What was begun before a restart goes on after it."""

import asyncio

import pytest

from testbed import Cluster
from testbed.client import until
from testbed.real.cluster import RealCluster
from tests.cluster.conftest import Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.test_evicting import LATE_SECONDS
from tests.cluster.world import World, taint, toleration


@pytest.mark.reported("kubernetes/kubernetes#42394")
async def test_a_crash_in_the_middle_of_a_countdown_does_not_begin_it_anew(world: World, start: Start) -> None:
    node = await world.node()
    await world.pod(node, "timed", toleration("maintenance", 8))
    first = await (await start()).until_ready()
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _remembered(world, node))
    await asyncio.sleep(1.0)
    await first.kill()
    await asyncio.sleep(1.0)
    await (await start()).until_ready()
    assert 8.0 <= await world.gone("timed", 15.0) - tainted_at < 8.0 + LATE_SECONDS
    await world.set_taints(node)
    await until(lambda: _forgotten(world, node))


async def _remembered(world: World, node: str) -> bool:
    return "taintkeeper.io/first-seen" in (await world.kube.get("nodes", "", node))["metadata"].get("annotations", {})


async def _forgotten(world: World, node: str) -> bool:
    return not await _remembered(world, node)


@pytest.mark.reported("kubernetes/kubernetes#108268")
async def test_a_countdown_that_ended_while_nobody_looked_is_over_at_the_start(world: World, start: Start) -> None:
    node = await world.node()
    await world.pod(node, "timed", toleration("maintenance", 2))
    await world.pod(node, "longer", toleration("maintenance", 3600))
    await world.add_taint(node, taint("maintenance", timeAdded=await _server_time(world)))
    await asyncio.sleep(3.0)
    begun = asyncio.get_running_loop().time()
    await start()
    assert await world.gone("timed") - begun < 5.0 + LATE_SECONDS
    assert await world.pods() == {"longer"}


async def _server_time(world: World) -> str:
    created = await world.kube.get("namespaces", "", world.namespace)
    return str(created["metadata"]["creationTimestamp"])


async def test_sigterm_ends_the_operator_well(world: World, operator: OperatorProcess) -> None:
    assert await operator.stop() == 0


@pytest.mark.only_on("real")
async def test_an_api_server_that_was_away_is_taken_up_again(
    world: World, operator: OperatorProcess, cluster: Cluster
) -> None:
    assert isinstance(cluster, RealCluster)
    node = await world.node()
    await world.pod(node, "waiting")
    await asyncio.to_thread(cluster.stop_apiserver)
    await until(lambda: _says(operator, "readyz", 503))
    await asyncio.sleep(3.0)
    assert await operator.probe("healthz") == 200
    await asyncio.to_thread(cluster.start_apiserver)
    await until(lambda: _says(operator, "readyz", 200), 60.0)
    await world.add_taint(node, taint("maintenance"))
    await world.gone("waiting")


async def _says(operator: OperatorProcess, probe: str, code: int) -> bool:
    return await operator.probe(probe) == code
