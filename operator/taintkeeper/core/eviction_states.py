"""The way of a pod that must leave: its states, and which follows which.

    (none) ──── a taint sets a time ───▶ COUNTING ─── due ──▶ READY ─── a place is free ──▶ POSTED
                                                               ▲ ▲                            │
                          budget opens, or a probe is due ─────┘ └──── the pause is over      │
                                       BLOCKED ◀── a budget holds it ─────────────────────────┤
                                       PAUSING ◀── any other refusal ─────────────────────────┤
                                       LEAVING ◀── accepted, gone, or seen terminating ───────┘

From every state but LEAVING a pod falls back to (none) when no taint wants it gone any more; a pod that was deleted
leaves from anywhere. SKIPPED holds pods that a taint would evict but that are never evicted. STANDING holds pods whose
countdown, or eviction, waits for their node's zone to go on; from there they count again.
"""

from dataclasses import dataclass
from enum import StrEnum

from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.gates import GateKey
from taintkeeper.core.objects import Pod


class State(StrEnum):
    """Where a pod is on its way; the values are metric labels."""

    COUNTING = "toleration"
    READY = "due"
    POSTED = "posted"
    BLOCKED = "budget"
    PAUSING = "backoff"
    STANDING = "zone"
    LEAVING = "terminating"
    SKIPPED = "skipped"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.COUNTING: frozenset({State.READY, State.COUNTING, State.STANDING, State.LEAVING, State.SKIPPED}),
    State.READY: frozenset({State.COUNTING, State.POSTED, State.BLOCKED, State.STANDING, State.LEAVING, State.SKIPPED}),
    State.POSTED: frozenset({State.READY, State.BLOCKED, State.PAUSING, State.LEAVING}),
    State.BLOCKED: frozenset({State.COUNTING, State.READY, State.STANDING, State.LEAVING, State.SKIPPED}),
    State.PAUSING: frozenset({State.COUNTING, State.READY, State.STANDING, State.LEAVING, State.SKIPPED}),
    State.STANDING: frozenset({State.COUNTING, State.LEAVING, State.SKIPPED}),
    State.LEAVING: frozenset({State.READY}),
    State.SKIPPED: frozenset({State.COUNTING, State.LEAVING}),
}
"""Which state may follow which. LEAVING to READY: the server called it done, but the pod is still seen alive."""


@dataclass(slots=True)
class Track:
    """What is kept about a pod that a taint wants gone. Times are in seconds since the epoch.

    ``deleting`` says that what was posted last is a deletion, ``rehearsed`` that a dry run has told of the deadline,
    ``stuck`` that somebody was told that it does not go away.
    """

    pod: Pod
    deadline: Deadline
    state: State = State.COUNTING
    wake_at: float | None = None
    failures: int = 0
    gate: GateKey | None = None
    wanted: bool = True
    deleting: bool = False
    rehearsed: bool = False
    stuck: bool = False

    def enter(self, state: State, *, wake_at: float | None = None) -> None:
        """Go to another state, to be looked at again at ``wake_at``; raises ValueError for a forbidden step."""
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"pod {self.pod.ref} cannot go from {self.state.name} to {state.name}")
        self.state = state
        self.wake_at = wake_at
