"""How fast evictions go: how many at once, and how long each pod pauses after which answer."""

from collections.abc import Mapping
from random import Random

from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.gates import BUDGET_BACKOFF
from taintkeeper.core.pacing import Backoff, Throttle

PACES: Mapping[Outcome, Backoff] = {
    Outcome.BUDGET: BUDGET_BACKOFF,
    Outcome.NAMESPACE_TERMINATING: Backoff(base=15.0, cap=60.0),
    Outcome.FORBIDDEN: Backoff(base=1.0, cap=60.0),
    Outcome.SEVERAL_BUDGETS: Backoff(base=60.0, cap=60.0),
    Outcome.TRANSIENT: Backoff(base=1.0, cap=60.0),
    Outcome.UNEXPECTED: Backoff(base=5.0, cap=60.0),
}
"""How long a pod pauses after each kind of refusal, where no gate decides."""


class Pace:
    """Follows the API server's answers."""

    def __init__(self, concurrency: int, random: Random) -> None:
        self._random = random
        self._throttle = Throttle(concurrency)

    @property
    def limit(self) -> int:
        """How many evictions may be under way at once."""
        return self._throttle.limit

    @property
    def paused_until(self) -> float:
        """Until when nothing may be sent, in seconds since the epoch."""
        return self._throttle.paused_until

    def note(self, outcome: Outcome, answer: Answer, now: float) -> None:
        """Take in an answer: a server that asks to slow down is sent less, one that copes more again."""
        if outcome is Outcome.THROTTLED:
            self._throttle.refused(answer.retry_after, now, self._random)
        elif outcome is not Outcome.TRANSIENT:
            self._throttle.succeeded()

    def pause(self, outcome: Outcome, failures: int, now: float) -> float:
        """Return for how many seconds a pod pauses that was refused, after so many refusals before."""
        if outcome is Outcome.THROTTLED:
            return max(0.0, self.paused_until - now)
        return PACES[outcome].delay(failures, self._random)
