"""Beside kube-controller-manager's own controllers, which real ones alone can show."""

import pytest

from rivals.__main__ import faults
from rivals.contest import contest

SECONDS = 40.0
"""Five scenes of eight seconds; nodes count as silent after four."""


@pytest.mark.only_on("real")
async def test_both_of_its_rivals_are_noticed_and_nobody_writes_in_circles(cluster_kind: str) -> None:
    found = await contest(SECONDS, print)
    assert faults(found) == []
    assert found.writes < 150
