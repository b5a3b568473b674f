"""Who leads: what one candidate makes of the Lease that it sees, as ``tools/leaderelection`` of client-go does.

Times are seconds on the candidate's own clock, which goes on while the machine sleeps and which nobody sets. Times of
others are never compared with it: somebody else's lease is over when we have seen it unchanged for as long as it says.

Why two never lead together. A leader counts from the moment when it *sent* the last renewal that was granted, and leads
for ``renew_seconds`` from then. Another counts from the moment when it *saw* that renewal, which is later, and waits
for the longer ``lease_seconds``. Then it takes the Lease at the version that it saw: a renewal meanwhile makes it fail.
Only who deletes the Lease, or writes another holder into it, can break this.

Beyond client-go: a renewal whose answer comes after the deadline does not count, a candidate that has seen the Lease
waits for its end even when it has been deleted, and whoever has lost it never leads again in the same process.
"""

from dataclasses import dataclass

NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a candidate goes by. ``lease_seconds`` > ``renew_seconds`` > ``retry_seconds``."""

    identity: str
    """Who it is; no other candidate, and no earlier run of the same, has the same."""
    lease_seconds: int
    """How long the others wait after the last renewal."""
    renew_seconds: float
    """How long a leader leads after the last renewal."""
    retry_seconds: float
    """The time from one renewal to the next; who does not lead, or is in doubt, looks twice as often."""


@dataclass(frozen=True, slots=True)
class Record:
    """What the Lease says. ``version`` is its resourceVersion; ``seconds`` is None where it does not tell."""

    uid: str
    version: str
    holder: str
    seconds: float | None
    transitions: int


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Write us into the Lease, provided that it still has this version; None: create it.

    ``begins`` says that the term begins with this, and ``transitions`` how often the holder has changed by then.
    """

    version: str | None
    begins: bool
    transitions: int


class Election:
    """One candidate. Ask it for a request when one is :attr:`due`, carry it out, and tell it the answer; one at a time.

    ``ended`` says why it has lost the Lease that it held, None before that; there is no way back.
    """

    def __init__(self, terms: Terms) -> None:
        self.due = NEVER
        """When to ask for the next request."""
        self.until = NEVER
        """Until when it leads, unless it is renewed before; :data:`NEVER` while it does not."""
        self.ended: str | None = None
        self._terms = terms
        self._next: Look | Claim = Look()
        self._sent = NEVER
        self._seen: Record | None = None
        self._seen_at = NEVER

    @property
    def record(self) -> Record | None:
        """The Lease as it was last seen."""
        return self._seen

    def leads(self, now: float) -> bool:
        """Return whether it may act. May be asked from another thread."""
        return now < self.until

    def request(self, now: float) -> Look | Claim | None:
        """Return what to ask the API server for; None when the Lease has been lost."""
        if self._is_over(now):
            return None
        self._sent = now
        return self._next

    def found(self, record: Record | None, now: float) -> None:
        """Take in what the Lease says; None: there is none."""
        if self._is_over(now):
            return
        if record is not None and record != self._seen:
            self._seen, self._seen_at = record, now
        if self.until > NEVER and record is not None and record.holder != self._terms.identity:
            self._end(f"it is held by {record.holder}" if record.holder else "it was taken away")
        elif self._may_claim(now):
            self._then(self._claim(record), now)
        else:
            self._look_again(now)

    def claimed(self, record: Record, now: float) -> None:
        """Take in that the Lease is ours, and what it says now."""
        if self._is_over(now):
            return
        self._seen, self._seen_at = record, now
        until = self._sent + self._terms.renew_seconds
        if until <= now:
            # It was ours too late to lead by it. We are in it, so that the next look leads to another claim.
            self._look_again(now)
            return
        self.until = until
        renewal = Claim(record.version, begins=False, transitions=record.transitions)
        self._then(renewal, self._sent + self._terms.retry_seconds)

    def failed(self, now: float) -> None:
        """Take in that a request was refused, or that nobody knows whether it was carried out."""
        if not self._is_over(now):
            self._look_again(now)

    def step_down(self) -> None:
        """Lead no longer, since the Lease is about to be given back."""
        self._end("given back")

    def _is_over(self, now: float) -> bool:
        if self.ended is None and NEVER < self.until <= now:
            self._end(f"it could not be renewed for {self._terms.renew_seconds:g} s")
        return self.ended is not None

    def _end(self, why: str) -> None:
        self.until = NEVER
        self.ended = why

    def _may_claim(self, now: float) -> bool:
        # What was seen last counts even if there is no Lease any more: its holder may not know that yet.
        if self._seen is None or self._seen.holder in ("", self._terms.identity):
            return True
        seconds = self._terms.lease_seconds if self._seen.seconds is None else self._seen.seconds
        return now >= self._seen_at + seconds

    def _claim(self, record: Record | None) -> Claim:
        seen = self._seen
        ours = seen is not None and seen.holder == self._terms.identity
        transitions = 0 if seen is None else seen.transitions + (not ours)
        return Claim(
            None if record is None else record.version, begins=record is None or not ours, transitions=transitions
        )

    def _look_again(self, now: float) -> None:
        self._then(Look(), max(now, self._sent + self._terms.retry_seconds / 2.0))

    def _then(self, request: Look | Claim, at: float) -> None:
        self._next = request
        self.due = at
