"""Rules as the taint engine has them: what is seen of them goes in, what follows for nodes and statuses comes out."""

import math
from random import Random

from taintkeeper.core.objects import Node
from taintkeeper.core.rule_book import RuleBook
from taintkeeper.core.rule_status import rule_status
from taintkeeper.core.rules import RuleGone, RuleSeen, RuleStatus, RuleView, RuleWritten, WriteRuleStatus
from taintkeeper.core.status_reporter import StatusReporter

RuleInput = RuleSeen | RuleGone | RuleWritten


class RuleDesk:
    """The book of rules, and the reporter of their statuses."""

    def __init__(self, random: Random) -> None:
        self._book = RuleBook()
        self._reporter = StatusReporter[RuleStatus](self._compose, random)

    def take(self, event: RuleInput, now: float) -> None:
        """Take in what was seen of a rule, or how the write of its status ended."""
        match event:
            case RuleSeen():
                self._book.put(event, now)
                if self._book.entry(event.name).seen is event:
                    self._reporter.put(event.name, event.uid, event.status)
            case RuleGone(name):
                self._book.remove(name, now)
                self._reporter.drop(name)
            case RuleWritten(name, done):
                self._reporter.written(name, now, done=done)

    def see(self, node: Node, now: float) -> None:
        """Take in a node as it is now; look at its :meth:`view` in any case."""
        self._book.see(node, now)

    def forget(self, name: str) -> None:
        """Forget a node that is gone."""
        self._book.forget(name)

    def trust(self, *, fresh: bool) -> None:
        """Note whether what is seen is complete and up to date.

        See :meth:`~taintkeeper.core.rule_book.RuleBook.rely` and :meth:`~taintkeeper.core.rule_book.RuleBook.doubt`.
        """
        if fresh:
            self._book.rely()
        else:
            self._book.doubt()

    def advance(self, now: float) -> list[str]:
        """Let time pass once all that was seen is told; return the nodes to look at again."""
        return self._book.advance(now)

    def view(self, node: Node) -> RuleView:
        """Return what the rules say about a node that was seen."""
        return self._book.view(node)

    def statuses(self, now: float) -> list[WriteRuleStatus]:
        """Return the statuses to write now. Call it only while what is known can be relied on."""
        for name in self._book.take_touched():
            self._reporter.touch(name)
        return [WriteRuleStatus(name, status) for name, _, status in self._reporter.due(now)]

    def next_at(self, *, reporting: bool) -> float:
        """Return when the next hold or clear time ends, in seconds since the epoch, or infinity.

        While ``reporting``, when statuses are asked for, the time at which one may be written counts as well.
        """
        times = (self._book.wake_at(), self._reporter.wake_at() if reporting else None)
        return min((time for time in times if time is not None), default=math.inf)

    def _compose(self, name: str, known: RuleStatus | None, now: float) -> RuleStatus:
        return rule_status(self._book.entry(name), known, now)
