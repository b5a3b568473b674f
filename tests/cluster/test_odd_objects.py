"""Objects that make little sense, but that the API server takes: they stop nobody's work."""

import pytest

from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World, taint

YEAR_0 = "0000-01-01T00:00:00Z"


@pytest.mark.parametrize("before", [True, False], ids=["before the start", "while at work"])
async def test_a_taint_of_the_year_0_evicts_from_now_on_and_stops_no_other_eviction(
    world: World, start: Start, before: bool
) -> None:
    odd, other = await world.nodes(2)
    operator: OperatorProcess | None = None
    if not before:
        operator = await (await start(*QUICK)).until_ready()
    await world.pod(odd, "on-odd-node")
    await world.pod(other, "on-other-node")
    await world.add_taint(odd, taint("maintenance", timeAdded=YEAR_0))
    if operator is None:
        operator = await (await start(*QUICK)).until_ready()
    await world.gone("on-odd-node")
    await world.add_taint(other, taint("maintenance"))
    await world.gone("on-other-node")
    assert await operator.probe("readyz") == 200
