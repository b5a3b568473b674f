"""One rule and one node: how long the condition has been there, or gone, and what follows from that."""

from dataclasses import dataclass
from enum import Enum

from taintkeeper.core.objects import Condition
from taintkeeper.core.rules import Rule


class Phase(Enum):
    """Where a node stands with a rule that selects it."""

    CLEAR = "the condition is over, for long enough"
    HOLDING = "the condition is there, not yet for long enough"
    DUE = "the condition is there for long enough"
    CLEARING = "the condition is over, not yet for long enough"
    MISSING = "the node has no such condition, so that nothing is known"


@dataclass(slots=True)
class Case:
    """What is remembered of a node that a rule selects. Times in seconds since the epoch, by our clock.

    ``has`` says whether the condition has the status that the rule names, None where it is missing, and ``since``
    from when on; ``transition`` is what the condition itself said of that last, by the node's clock. ``phase`` and
    ``tainted`` are as last counted, ``armed`` are the times of the case's timers, the next one last. In a dry run
    ``granted`` says that the node would have the taint. ``overruled_by`` is the rule whose value the taint has here
    instead.
    """

    has: bool | None
    since: float
    transition: float | None = None
    phase: Phase = Phase.CLEAR
    tainted: bool = False
    granted: bool = False
    armed: tuple[float, ...] = ()
    overruled_by: str | None = None

    @classmethod
    def begin(cls, rule: Rule, condition: Condition | None, now: float) -> "Case":
        """Return the case of a node that is seen for the first time.

        How long its condition has been as it is, only the condition itself can tell: its last transition, by the
        node's clock. So holding and clearing go on after a restart. A time in the future counts as now.
        """
        transition = None if condition is None else condition.transition
        return cls(_has(rule, condition), now if transition is None else min(transition, now), transition)

    def observe(self, rule: Rule, condition: Condition | None, now: float, *, blind: bool) -> None:
        """Take in the node's condition as it is now; a change counts from when it was seen, by our clock.

        When we were ``blind``, it may have changed and changed back meanwhile. That, too, only the condition can tell.
        """
        has = _has(rule, condition)
        transition = None if condition is None else condition.transition
        if has is not self.has:
            self.has, self.since = has, now
        elif blind and transition is not None and transition != self.transition:
            self.since = max(self.since, min(transition, now))
        self.transition = transition

    def phase_at(self, rule: Rule, now: float) -> Phase:
        """Return where the node stands at this time."""
        match self.has:
            case None:
                return Phase.MISSING
            case True:
                return Phase.DUE if now >= self.since + rule.for_seconds else Phase.HOLDING
            case False:
                return Phase.CLEAR if now >= self.since + rule.clear_seconds else Phase.CLEARING

    def ends_at(self, rule: Rule) -> float | None:
        """Return when the phase that was last counted ends by itself, if it does."""
        match self.phase:
            case Phase.HOLDING:
                return self.since + rule.for_seconds
            case Phase.CLEARING:
                return self.since + rule.clear_seconds
            case _:
                return None


def _has(rule: Rule, condition: Condition | None) -> bool | None:
    return None if condition is None else condition.status == rule.condition_status
