"""The way of a pod that must leave: which state may follow which."""

import pytest

from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.eviction_states import State, Track
from tests.unit.core.builders import FOO, pod

ALLOWED = {
    State.COUNTING: "COUNTING READY STANDING LEAVING SKIPPED",
    State.READY: "COUNTING POSTED BLOCKED STANDING LEAVING SKIPPED",
    State.POSTED: "READY BLOCKED PAUSING LEAVING",
    State.BLOCKED: "COUNTING READY STANDING LEAVING SKIPPED",
    State.PAUSING: "COUNTING READY STANDING LEAVING SKIPPED",
    State.STANDING: "COUNTING LEAVING SKIPPED",
    State.LEAVING: "READY",
    State.SKIPPED: "COUNTING LEAVING",
}


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_only_the_steps_of_the_table_can_be_made(before: State, after: State) -> None:
    track = Track(pod(), Deadline(FOO, None, 0.0, 0.0), before, wake_at=1.0)
    if after.name in ALLOWED[before].split():
        track.enter(after, wake_at=2.0)
        assert (track.state, track.wake_at) == (after, 2.0)
        return
    with pytest.raises(ValueError, match=f"pod default/p1 cannot go from {before.name} to {after.name}"):
        track.enter(after)
    assert (track.state, track.wake_at) == (before, 1.0)


def test_a_step_without_a_time_forgets_the_old_one() -> None:
    track = Track(pod(), Deadline(FOO, None, 0.0, 0.0), wake_at=1.0)
    track.enter(State.READY)
    assert track.wake_at is None
