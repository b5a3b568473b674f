"""How fast to go: pauses that grow, and a concurrency that follows what the API server can take."""

from dataclasses import dataclass, field
from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from ``base`` to ``cap``, each lengthened by a random part. All in seconds."""

    base: float
    cap: float
    jitter: float = 0.25

    def delay(self, attempt: int, random: Random) -> float:
        """Return the pause after the given failed attempt, counted from zero; never shorter than the base."""
        doubled = min(self.cap, self.base * 2.0 ** min(attempt, 32))
        return float(doubled * (1.0 + self.jitter * random.random()))


WRITE_BACKOFF = Backoff(base=0.5, cap=30.0)
"""How long a write to a node waits after one that failed."""

LONGEST_PAUSE_SECONDS = 300.0


@dataclass(slots=True)
class Throttle:
    """How many evictions may be under way: additive increase, multiplicative decrease, as TCP does.

    The API server's priority and fairness answers 429 when it is overloaded; then the limit is halved, and nothing
    is sent until the pause that it asked for, or a growing one of our own, is over.
    """

    maximum: int
    backoff: Backoff = field(default=Backoff(base=1.0, cap=30.0))
    paused_until: float = 0.0
    _limit: float = field(init=False)
    _refusals: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._limit = float(self.maximum)

    @property
    def limit(self) -> int:
        """The number of evictions that may be under way at once."""
        return int(self._limit)

    def succeeded(self) -> None:
        """Note that the server took a request in its stride."""
        self._refusals = 0
        self._limit = min(float(self.maximum), self._limit + 1.0 / self._limit)

    def refused(self, retry_after: float, now: float, random: Random) -> None:
        """Note that the server asked to slow down, for ``retry_after`` seconds; zero when it named no time.

        Refusals that arrive during a pause belong to requests sent before it and count once. No server may have us
        wait longer than :data:`LONGEST_PAUSE_SECONDS`: a slip of its configuration must not stop evictions for days.
        """
        retry_after = min(retry_after, LONGEST_PAUSE_SECONDS)
        if now < self.paused_until:
            self.paused_until = max(self.paused_until, now + retry_after)
            return
        pause = max(retry_after, self.backoff.delay(self._refusals, random))
        self.paused_until = now + pause
        self._refusals += 1
        self._limit = max(1.0, self._limit / 2.0)
