"""When zones stood still: countdowns caused by not-ready and unreachable taints do not run meanwhile.

While so much of a zone has failed at once that its rate is zero, it is rather the network that failed; pods that run on
there must not be evicted because their time was up in the middle of it. The rate, and with it the pause, is decided in
:mod:`taintkeeper.core.zone_book`. Pauses are kept in memory only: a restart in the middle of one forgets how long it
had been, never that it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

REMEMBERED = 100
"""How many pauses of a zone are remembered; of a zone that failed more often the oldest are forgotten."""


@dataclass(slots=True)
class ZonePauses:
    """The pauses of one zone, as pairs of begin and end in seconds since the epoch; the last one may go on."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def paused(self) -> bool:
        """Whether the zone stands still now."""
        return bool(self.spans) and self.spans[-1][1] == math.inf

    def begin(self, now: float) -> None:
        """Note that the zone stands still from now on."""
        if not self.paused:
            self.spans = [*self.spans[1 - REMEMBERED :], (now, math.inf)]

    def end(self, now: float) -> None:
        """Note that the zone goes on."""
        if self.paused:
            self.spans[-1] = (self.spans[-1][0], now)

    def lost(self, since: float, now: float) -> float:
        """Return for how many seconds the zone has stood still since then."""
        return _overlap(self.spans, since, now)


def _overlap(spans: Sequence[tuple[float, float]], since: float, now: float) -> float:
    return sum(max(0.0, min(end, now) - max(begin, since)) for begin, end in spans)


NEVER_PAUSED = ZonePauses()
"""For nodes of zones that always went on."""
