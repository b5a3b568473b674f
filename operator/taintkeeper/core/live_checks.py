"""Which nodes have just been read from the API server, and which pods wait until theirs has been.

What a watch tells may be late, and nobody can tell by how much. So before pods are evicted from a node, the node and
its pods are read; if the taint is gone, or a pod tolerates it by now, nobody is evicted (kubernetes/kubernetes#140198).
One reading serves all evictions of a wave: it holds for a few seconds. Where it is known when the first of them will be
due, the node is read shortly before, so that nobody has to wait for that.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from taintkeeper.core.pacing import Backoff

VALID_SECONDS = 5.0
"""How long a reading may be relied on."""
MOST_UNDER_WAY = 16
RETRY = Backoff(base=1.0, cap=30.0)


@dataclass(slots=True)
class _Check:
    """The state of one node. Times are in seconds since the epoch; ``retry_at`` is None unless a reading has failed."""

    valid_until: float = 0.0
    asked: bool = False
    outdated: bool = False
    failures: int = 0
    retry_at: float | None = None
    waiting: dict[str, None] = field(default_factory=dict)


class LiveChecks:
    """Decides which nodes are to be read, and tells who may go on once they have been."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._checks: dict[str, _Check] = {}
        self._wanted: dict[str, None] = {}
        self._failed: list[tuple[float, str]] = []
        self._asked = 0
        self._read: deque[str] = deque()

    @property
    def pending(self) -> bool:
        """Whether any pod waits for its node to be read."""
        return bool(self._wanted or self._failed) or self._asked > 0

    def holds(self, node: str, now: float) -> bool:
        """Say whether the node was read so short a time ago that its pods may be evicted by what was found."""
        check = self._checks.get(node)
        return check is not None and now < check.valid_until

    def wait(self, node: str, uid: str) -> None:
        """Let a pod wait until its node has been read."""
        self._want(node).waiting[uid] = None

    def expect(self, node: str, at: float) -> None:
        """Have a node read of which a pod will be due at this time, unless what was read before holds until then."""
        if not self.holds(node, at):
            self._want(node)

    def requests(self, now: float) -> list[str]:
        """Return the nodes that are to be read now, each once until it is answered; first come, first served."""
        while self._failed and self._failed[0][0] <= now:
            name = heapq.heappop(self._failed)[1]
            self._checks[name].retry_at = None
            self._wanted[name] = None
        names = list(islice(self._wanted, MOST_UNDER_WAY - self._asked))
        for name in names:
            del self._wanted[name]
            self._checks[name].asked, self._checks[name].outdated = True, False
        self._asked += len(names)
        return names

    def read(self, node: str, now: float) -> list[str]:
        """Note that a node has been read; return the UIDs of the pods that waited for it."""
        check = self._answered(node)
        if check.outdated:
            self._wanted[node] = None
            return []
        check.valid_until, check.failures = now + VALID_SECONDS, 0
        waiting, check.waiting = list(check.waiting), {}
        self._read.append(node)
        self._tidy(now)
        return waiting

    def failed(self, node: str, now: float) -> None:
        """Note that a node could not be read: it is tried again after a growing pause, if any pod waits for that."""
        check = self._answered(node)
        if not check.waiting:
            del self._checks[node]
            return
        check.retry_at = now + RETRY.delay(check.failures, self._random)
        check.failures += 1
        heapq.heappush(self._failed, (check.retry_at, node))

    def forget(self) -> None:
        """Rely on nothing that was read before, not even on what is still under way: we may have been away."""
        for check in self._checks.values():
            check.valid_until, check.outdated = 0.0, check.asked

    def wake_at(self) -> float | None:
        """Return when :meth:`requests` has something to return again, in seconds since the epoch; zero for now."""
        if self._asked >= MOST_UNDER_WAY:
            return None
        if self._wanted:
            return 0.0
        return self._failed[0][0] if self._failed else None

    def _want(self, node: str) -> _Check:
        check = self._checks.setdefault(node, _Check())
        if not check.asked and check.retry_at is None:
            self._wanted[node] = None
        return check

    def _answered(self, node: str) -> _Check:
        check = self._checks[node]
        check.asked = False
        self._asked -= 1
        return check

    def _tidy(self, now: float) -> None:
        """Forget the nodes whose reading has expired, the oldest first."""
        while self._read:
            check = self._checks.get(self._read[0])
            if check is not None and check.valid_until > now:
                return
            if check is not None and not check.waiting and not check.asked:
                del self._checks[self._read[0]]
            self._read.popleft()
