"""What others did to our taints against our wishes, seen from two states of a node."""

import pytest

from taintkeeper.core.conditions import undone, wanted
from taintkeeper.core.first_seen import NOT_READY
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint
from tests.unit.core.builders import FOREIGN, node, not_ready

PREFIX = "node.kubernetes.io/"


def closed(key: str) -> Taint:
    return Taint(PREFIX + key, NO_SCHEDULE, time_added=0.0)


FULL_DISK, WELL, DOWN = {"DiskPressure": "True"}, {"DiskPressure": "False"}, {"Ready": "False"}
Story = tuple[dict[str, str], tuple[Taint, ...]]


@pytest.mark.parametrize(
    ("before", "after", "lost", "forced"),
    [
        pytest.param((FULL_DISK, (closed("disk-pressure"),)), (FULL_DISK, ()), ["disk-pressure"], [], id="removed"),
        pytest.param((WELL, ()), (WELL, (closed("disk-pressure"),)), [], ["disk-pressure"], id="added"),
        pytest.param((WELL, (closed("disk-pressure"),)), (WELL, ()), [], [], id="removed with good reason"),
        pytest.param((FULL_DISK, ()), (FULL_DISK, (closed("disk-pressure"),)), [], [], id="added with good reason"),
        pytest.param(
            (FULL_DISK, (closed("disk-pressure"),)), (WELL, ()), [], [], id="removed as its reason went"
        ),
        pytest.param(
            (WELL, (closed("disk-pressure"),)), (FULL_DISK, ()), [], [], id="removed before its reason came back"
        ),
        pytest.param((WELL, ()), (FULL_DISK, (closed("disk-pressure"),)), [], [], id="added as its reason came"),
        pytest.param((FULL_DISK, ()), (WELL, (closed("disk-pressure"),)), [], [], id="added before its reason went"),
        pytest.param((WELL, ()), (WELL, (FOREIGN,)), [], [], id="a taint that is not ours"),
        pytest.param(({}, ()), ({}, (closed("not-ready"), not_ready())), [], [], id="nothing is known of Ready"),
        pytest.param(({}, ()), (DOWN, (closed("unreachable"),)), [], [], id="nothing was known of Ready"),
        pytest.param(
            ({"Ready": "True"}, ()), ({}, (closed("unreachable"),)), [], [], id="nothing is known of Ready any more"
        ),
        pytest.param((DOWN, (not_ready(),)), (DOWN, ()), ["not-ready"], [], id="NoExecute removed"),
        pytest.param(({"Ready": "True"}, ()), ({"Ready": "True"}, (not_ready(),)), [], ["not-ready"], id="or added"),
        pytest.param((WELL, (FOREIGN,)), (WELL, (FOREIGN,)), [], [], id="nothing happened"),
    ],
)  # fmt: skip
def test_what_others_did_to_our_taints_against_our_wishes_is_noticed(
    before: Story, after: Story, lost: list[str], forced: list[str]
) -> None:
    one, two = (node("n1", *taints, conditions=conditions) for conditions, taints in (before, after))
    found = undone(one, two, wanted(one), wanted(two), execute=True)
    assert tuple([key.removeprefix(PREFIX) for key, _ in each] for each in found) == (lost, forced)


def test_no_execute_that_may_not_be_there_now_is_not_missed_but_noticed() -> None:
    bare, full = node("n1", conditions=DOWN), node("n1", not_ready(), conditions=DOWN)
    want = wanted(bare)
    assert undone(full, bare, want, want, execute=False) == (set(), set())
    assert undone(bare, full, want, want, execute=False) == (set(), {(NOT_READY, NO_EXECUTE)})
