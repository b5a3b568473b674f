"""Which taints a node gets when: the engine of the node-taint controller.

Level triggered: whatever happened, a node's taints are compared with what its conditions call for, and the difference
is written, at most one write under way for each node. NoSchedule goes at once; NoExecute when the zone has a token.
"""

import heapq
from dataclasses import dataclass, field, replace
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core.conditions import Wanted, execute_taint, plan, wanted
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.pacing import Backoff
from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import Rates

WRITE_BACKOFF = Backoff(base=0.5, cap=30.0)


@dataclass(frozen=True, slots=True)
class TaintOptions:
    """What a cluster administrator may choose.

    ``grace_seconds`` is how long nodes are spared NoExecute after every zone had failed at once.
    """

    rates: Rates = field(default_factory=Rates)
    grace_seconds: float = 50.0


@dataclass(slots=True)
class Writing:
    """The state of the writes to one node. ``sent`` is the write under way; times in seconds since the epoch."""

    sent: m.PatchTaints | None = None
    failures: int = 0
    retry_at: float = 0.0
    conflicted: str = ""
    lost: set[str] = field(default_factory=set)


class TaintEngine:
    """Turns what is seen of nodes into writes of their taints."""

    def __init__(self, options: TaintOptions, random: Random) -> None:
        self.book = ZoneBook(options.rates)
        self._options = options
        self._random = random
        self._nodes: dict[str, Node] = {}
        self._writing: dict[str, Writing] = {}
        self._dirty: dict[str, None] = {}
        self._retries: list[tuple[float, str]] = []
        self._fresh = False
        self._listed = False
        self._spared_until: float | None = None
        self._out: list[m.TaintEffect] = []

    def handle(self, event: m.TaintInput, now: float) -> list[m.TaintEffect]:
        """Take in one event at the time ``now``; return what is to be done, in this order."""
        self._take_in(event, now)
        if self._listed:
            self._judge_zones(now)
            self._end_sparing(now)
            self._retry(now)
            self._reconcile(now)
        effects, self._out = self._out, []
        return effects

    def wake_at(self, now: float) -> float | None:
        """Return when to send the next :class:`~taintkeeper.core.messages.Woke`, in seconds since the epoch."""
        if not self._listed:
            return None
        times = [self._retries[0][0]] if self._retries else []
        if self._spared_until is not None:
            times.append(self._spared_until)
        if self._fresh:
            times.append(self.book.next_at(now))
        return min((time for time in times if time < float("inf")), default=None)

    def _take_in(self, event: m.TaintInput, now: float) -> None:
        match event:
            case m.NodeSeen(node):
                self._node_seen(node, now)
            case m.NodeGone(name):
                self._node_gone(name)
            case m.NodeWritten():
                self._written(event, now)
            case m.Knowledge(fresh):
                self._fresh = fresh
                self._listed = self._listed or fresh
                self._mark_all()
            case m.Woke():
                pass

    def _node_seen(self, node: Node, now: float) -> None:
        known = self._nodes.get(node.name)
        if known is not None and known.uid != node.uid:
            self._node_gone(node.name)
        elif known is not None:
            if node.older_than(known):
                return
            self._writing[node.name].lost |= _lost(known, node)
        self._nodes[node.name] = node
        self._writing.setdefault(node.name, Writing())
        self.book.place(node, now)
        self._dirty[node.name] = None

    def _node_gone(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._writing.pop(name, None)
        self._dirty.pop(name, None)
        self.book.remove(name)

    def _written(self, event: m.NodeWritten, now: float) -> None:
        writing = self._writing.get(event.name)
        if writing is None or writing.sent is None:
            return
        sent, writing.sent = writing.sent, None
        self._dirty[event.name] = None
        if event.result is m.WriteResult.DONE:
            lost, writing.lost, writing.failures = writing.lost, set(), 0
            again = frozenset(taint.key for taint in sent.change.added if taint.key in lost)
            if event.node is not None:
                self._node_seen(event.node, now)
                writing.lost.clear()
            self._out.append(m.TaintsChanged(sent.node, sent.change, sent.reasons, again))
        if event.result is not m.WriteResult.DONE or event.node is None:
            # Until the watch shows a newer node, what we know of it is out of date, or the write would fail again.
            outdated = event.result in (m.WriteResult.DONE, m.WriteResult.CONFLICT)
            writing.conflicted = sent.node.resource_version if outdated else ""
            writing.retry_at = now + WRITE_BACKOFF.delay(writing.failures, self._random)
            writing.failures += 1
            heapq.heappush(self._retries, (writing.retry_at, event.name))

    def _mark_all(self) -> None:
        self._dirty.update(dict.fromkeys(self._nodes))

    def _judge_zones(self, now: float) -> None:
        was_disrupted = self.book.all_disrupted
        self._out.extend(self.book.judge(now))
        if was_disrupted == self.book.all_disrupted:
            return
        if was_disrupted:
            self._spared_until = now + self._options.grace_seconds
        self._mark_all()

    def _end_sparing(self, now: float) -> None:
        if self._spared_until is not None and now >= self._spared_until:
            self._spared_until = None
            self._mark_all()

    def _retry(self, now: float) -> None:
        while self._retries and self._retries[0][0] <= now:
            name = heapq.heappop(self._retries)[1]
            if name in self._nodes:
                self._dirty[name] = None

    def _reconcile(self, now: float) -> None:
        for name in self._dirty:
            self._enqueue(self._nodes[name], now)
        if self._fresh:
            self._dirty.update(dict.fromkeys(self.book.serve(now)))
        dirty, self._dirty = self._dirty, {}
        for name in dirty:
            self._write(self._nodes[name], now)

    def _enqueue(self, node: Node, now: float) -> None:
        queue = self.book.queue_of(node)
        if self._deserves_execute(wanted(node)) and execute_taint(node) is None:
            queue.add(node.name, now)
        else:
            queue.remove(node.name)

    def _wanted(self, node: Node) -> Wanted:
        """Return what the node's conditions call for; once every zone has failed, no NoExecute stays, come what may."""
        want = wanted(node)
        if not self.book.all_disrupted:
            return want
        return replace(want, unknown=frozenset(identity for identity in want.unknown if identity[1] != NO_EXECUTE))

    def _deserves_execute(self, want: Wanted) -> bool:
        return want.execute is not None and not self.book.all_disrupted and self._spared_until is None

    def _write(self, node: Node, now: float) -> None:
        writing = self._writing[node.name]
        if writing.sent is not None or (writing.retry_at > now and writing.conflicted in ("", node.resource_version)):
            return
        want = self._wanted(node)
        granted = execute_taint(node) is not None or self.book.queue_of(node).granted(node.name)
        execute = self._deserves_execute(want) and granted
        change = plan(node, want, execute=execute, may_add=self._fresh, now=now)
        if change is None:
            writing.failures, writing.lost = 0, set()
            return
        writing.sent = m.PatchTaints(node, change, want.no_schedule)
        self._out.append(writing.sent)


def _lost(before: Node, after: Node) -> set[str]:
    """Return the keys of taints that vanished although the node's conditions call for them, then and now."""
    still_wanted = wanted(before).no_schedule.keys() & wanted(after).no_schedule.keys()
    present = {taint.key for taint in after.taints if taint.effect == NO_SCHEDULE}
    return {t.key for t in before.taints if t.effect == NO_SCHEDULE and t.key in still_wanted - present}
