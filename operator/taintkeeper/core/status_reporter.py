"""When the status of an object of ours is written: on a change only, and never more often than every few seconds."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Generic, TypeVar

from taintkeeper.core.pacing import Backoff
from taintkeeper.core.rules import RuleCondition

STATUS_SECONDS = 5.0
"""The time between two writes of one status: in a storm its numbers change all the time."""

FAILURE_BACKOFF = Backoff(base=STATUS_SECONDS, cap=300.0)

Status = TypeVar("Status")


def keep_time(condition: RuleCondition, before: RuleCondition | None) -> RuleCondition:
    """Return a condition of a status with the time of the one before it, unless its status is another."""
    if before is None or before.status != condition.status:
        return condition
    return replace(condition, since=before.since)


@dataclass(slots=True)
class _Writing(Generic[Status]):
    """The writes of one status. ``known`` is what the object has; times in seconds since the epoch."""

    uid: str
    known: Status | None
    sent: Status | None = None
    failures: int = 0
    not_before: float = float("-inf")
    armed: bool = False


class StatusReporter(Generic[Status]):
    """Decides which statuses to write when, at most one write under way for each object.

    ``compose`` returns the status of an object of this name as it is now, given the one that it has and the time in
    seconds since the epoch.
    """

    def __init__(self, compose: Callable[[str, Status | None, float], Status], random: Random) -> None:
        self._compose = compose
        self._random = random
        self._writing: dict[str, _Writing[Status]] = {}
        self._timers: list[tuple[float, str]] = []
        self._again: set[str] = set()

    def put(self, name: str, uid: str, status: Status | None) -> None:
        """Take in an object as it is now, with the status that it has."""
        writing = self._writing.get(name)
        if writing is None or writing.uid != uid:
            self._writing[name] = _Writing(uid, status)
        elif writing.sent is None:
            writing.known = status
        self._again.add(name)

    def drop(self, name: str) -> None:
        """Forget an object that is gone."""
        self._writing.pop(name, None)

    def touch(self, name: str) -> None:
        """Note that the status of an object may have changed."""
        self._again.add(name)

    def written(self, name: str, now: float, *, done: bool) -> None:
        """Take in how a write ended."""
        writing = self._writing.get(name)
        if writing is None or writing.sent is None:
            return
        if done:
            writing.known, writing.failures = writing.sent, 0
        else:
            writing.not_before = now + FAILURE_BACKOFF.delay(writing.failures, self._random)
            writing.failures += 1
        writing.sent = None
        self._again.add(name)

    def due(self, now: float) -> list[tuple[str, str, Status]]:
        """Return name, UID and status of what to write now. Call it only while what is known can be relied on."""
        names, self._again = self._again, set()
        while self._timers and self._timers[0][0] <= now:
            name = heapq.heappop(self._timers)[1]
            if name in self._writing:
                self._writing[name].armed = False
                names.add(name)
        return [write for name in sorted(names) if (write := self._write(name, now)) is not None]

    def wake_at(self) -> float | None:
        """Return when to call :meth:`due` again, in seconds since the epoch."""
        return self._timers[0][0] if self._timers else None

    def _write(self, name: str, now: float) -> tuple[str, str, Status] | None:
        writing = self._writing.get(name)
        if writing is None or writing.sent is not None:
            return None
        status = self._compose(name, writing.known, now)
        if status == writing.known:
            return None
        if now < writing.not_before:
            if not writing.armed:
                writing.armed = True
                heapq.heappush(self._timers, (writing.not_before, name))
            return None
        writing.sent, writing.not_before = status, now + STATUS_SECONDS
        return name, writing.uid, status
