"""What a rule's status says, and when it is written: on a change only, and never more often than every few seconds."""

import heapq
from dataclasses import dataclass
from random import Random

from taintkeeper.core.pacing import Backoff
from taintkeeper.core.rule_book import RuleBook
from taintkeeper.core.rule_entry import Entry
from taintkeeper.core.rules import RuleCondition, RuleSeen, RuleStatus, RuleWritten, WriteRuleStatus

STATUS_SECONDS = 5.0
"""The time between two writes of one rule's status: in a storm its numbers change with every node."""

FAILURE_BACKOFF = Backoff(base=STATUS_SECONDS, cap=300.0)

ACCEPTED = "Accepted"
ACTIVE = "Active"


def rule_status(entry: Entry, before: RuleStatus | None, now: float) -> RuleStatus:
    """Return the status of a rule. ``before`` is the one it has: a condition that stays as it is keeps its time."""
    conditions = (_accepted(entry, now), _active(entry, now))
    return RuleStatus(
        generation=entry.seen.generation,
        matched=entry.matched,
        waiting=entry.waiting,
        tainted=entry.tainted,
        held_back=entry.held_back,
        conditions=tuple(_since(each, before) for each in conditions),
    )


def _since(condition: RuleCondition, before: RuleStatus | None) -> RuleCondition:
    was = None if before is None else before.condition(condition.type)
    if was is None or was.status != condition.status:
        return condition
    return RuleCondition(condition.type, condition.status, condition.reason, condition.message, was.since)


def _accepted(entry: Entry, now: float) -> RuleCondition:
    if not entry.seen.fault:
        return RuleCondition(ACCEPTED, "True", "Valid", "The rule makes sense.", now)
    rest = "the rule has no effect" if entry.rule is None else "the last version that made sense stays in force"
    return RuleCondition(ACCEPTED, "False", "Invalid", f"{entry.seen.fault}; {rest}", now)


def _active(entry: Entry, now: float) -> RuleCondition:
    rule = entry.rule
    if rule is None:
        return RuleCondition(ACTIVE, "False", "Invalid", "No version of the rule made sense so far.", now)
    if rule.dry_run:
        message = "dryRun is true: the numbers tell what would be, no node gets the taint."
        return RuleCondition(ACTIVE, "False", "DryRun", message, now)
    if entry.capped:
        message = (
            f"{entry.unhealthy} of {entry.matched} selected nodes suffer, more than maxUnhealthy ({rule.limit}) allows:"
            " no further node gets the taint."
        )
        return RuleCondition(ACTIVE, "False", "MaxUnhealthy", message, now)
    if entry.overruled:
        first = min(entry.overruled)
        message = (
            f"On {entry.overruled[first]} nodes the taint {rule.key}:{rule.effect} has the value of the rule {first},"
            " which comes first by name."
        )
        return RuleCondition(ACTIVE, "False", "Superseded", message, now)
    return RuleCondition(ACTIVE, "True", "InForce", "Nodes get the taint as the rule says.", now)


@dataclass(slots=True)
class _Writing:
    """The writes of one rule's status. ``known`` is what the object has; times in seconds since the epoch."""

    uid: str
    known: RuleStatus | None
    sent: RuleStatus | None = None
    failures: int = 0
    not_before: float = float("-inf")
    armed: bool = False


class RuleReporter:
    """Decides which statuses to write when, at most one write under way for each rule."""

    def __init__(self, book: RuleBook, random: Random) -> None:
        self._book = book
        self._random = random
        self._writing: dict[str, _Writing] = {}
        self._timers: list[tuple[float, str]] = []
        self._again: set[str] = set()

    def put(self, seen: RuleSeen) -> None:
        """Take in a rule as it is now, with the status that it has, after the book has taken it in."""
        entry = self._book.entry(seen.name)
        if entry is None or entry.seen is not seen:
            return
        writing = self._writing.get(seen.name)
        if writing is None or writing.uid != seen.uid:
            self._writing[seen.name] = _Writing(seen.uid, seen.status)
        elif writing.sent is None:
            writing.known = seen.status
        self._again.add(seen.name)

    def written(self, answer: RuleWritten, now: float) -> None:
        """Take in how a write ended."""
        writing = self._writing.get(answer.name)
        if writing is None or writing.sent is None:
            return
        if answer.done:
            writing.known, writing.failures = writing.sent, 0
        else:
            writing.not_before = now + FAILURE_BACKOFF.delay(writing.failures, self._random)
            writing.failures += 1
        writing.sent = None
        self._again.add(answer.name)

    def due(self, now: float) -> list[WriteRuleStatus]:
        """Return the statuses to write now. Call it only while what is known of nodes and rules can be relied on."""
        names, self._again = self._again.union(self._book.take_touched()), set()
        while self._timers and self._timers[0][0] <= now:
            name = heapq.heappop(self._timers)[1]
            if name in self._writing:
                self._writing[name].armed = False
                names.add(name)
        return [write for name in sorted(names) if (write := self._write(name, now)) is not None]

    def wake_at(self) -> float | None:
        """Return when to call :meth:`due` again, in seconds since the epoch."""
        return self._timers[0][0] if self._timers else None

    def _write(self, name: str, now: float) -> WriteRuleStatus | None:
        entry, writing = self._book.entry(name), self._writing.get(name)
        if entry is None or writing is None:
            self._writing.pop(name, None)
            return None
        if writing.sent is not None:
            return None
        status = rule_status(entry, writing.known, now)
        if status == writing.known:
            return None
        if now < writing.not_before:
            if not writing.armed:
                writing.armed = True
                heapq.heappush(self._timers, (writing.not_before, name))
            return None
        writing.sent, writing.not_before = status, now + STATUS_SECONDS
        return WriteRuleStatus(name, status)
