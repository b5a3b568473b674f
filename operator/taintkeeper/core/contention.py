"""What to do when somebody undoes our changes of a taint again and again.

Another controller that is of another opinion (a kube-controller-manager that was not told to leave taints to us, an
autoscaler, a script) is as persistent as we are: without a pause the two would write for ever, as fast as the API
server can. A person who removes a taint by hand is no such opponent, and must see at once that the taint comes back.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from random import Random

from taintkeeper.core.conditions import TaintId
from taintkeeper.core.pacing import Backoff

CONTESTED_AFTER = 3
"""So many times within :data:`WINDOW_SECONDS` a change must be undone before it counts as contested."""

WINDOW_SECONDS = 300.0

CALM_SECONDS = 600.0
"""After so long without being undone a taint is contested no longer; longer than the longest pause."""

CONTEST_BACKOFF = Backoff(base=10.0, cap=300.0)


@dataclass(slots=True)
class Contest:
    """When our change of one taint was undone lately, and what follows; times in seconds since the epoch."""

    undone: deque[float] = field(default_factory=lambda: deque(maxlen=CONTESTED_AFTER))
    pauses: int = 0
    paused_until: float = -math.inf


class Contention:
    """Watches for opponents, for each node and taint."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._contests: dict[str, dict[TaintId, Contest]] = {}

    def undone(self, node: str, taint: TaintId, now: float) -> bool:
        """Note that somebody undid our change of this taint; return True when that has just become too much."""
        contests = self._contests.setdefault(node, {})
        contest = contests.get(taint)
        if contest is None or now - contest.undone[-1] > CALM_SECONDS:
            contest = contests[taint] = Contest()
        contest.undone.append(now)
        if not contest.pauses and not _too_often(contest, now):
            return False
        contest.paused_until = now + CONTEST_BACKOFF.delay(contest.pauses, self._random)
        contest.pauses += 1
        return contest.pauses == 1

    def paused_until(self, node: str, taint: TaintId) -> float:
        """Return until when to leave this taint alone, in seconds since the epoch; minus infinity if not at all."""
        contest = self._contests.get(node, {}).get(taint)
        return -math.inf if contest is None else contest.paused_until

    def forget(self, node: str) -> None:
        """Forget a node that is gone."""
        self._contests.pop(node, None)


def _too_often(contest: Contest, now: float) -> bool:
    return len(contest.undone) == CONTESTED_AFTER and now - contest.undone[0] <= WINDOW_SECONDS
