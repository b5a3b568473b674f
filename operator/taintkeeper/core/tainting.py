"""Which taints a node gets when: the engine of the node-taint controller.

Level triggered: whatever happened, a node's taints are compared with what its conditions and the rules call for, and
the difference is written. NoSchedule goes at once; NoExecute when the zone has a token.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core import taint_messages as t
from taintkeeper.core.conditions import TaintId, ids_of
from taintkeeper.core.contention import Contention
from taintkeeper.core.objects import NO_SCHEDULE, Node
from taintkeeper.core.rule_desk import RuleDesk
from taintkeeper.core.rules import Limit, RuleGone, RuleSeen, RuleWritten
from taintkeeper.core.shutdown import left_alone_until
from taintkeeper.core.wishes import Wish, undone_by_others, wish
from taintkeeper.core.writing import CONCURRENT_WRITES, Writes
from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import Rates


@dataclass(frozen=True, slots=True)
class TaintOptions:
    """What a cluster administrator may choose.

    ``grace_seconds`` is how long nodes are spared NoExecute after every zone had failed at once; ``shutdown_seconds``
    how long one is that shuts down in order. ``most_evicting``
    limits how many nodes of all zones are tainted NoExecute at a time. ``concurrency`` is the number of writes that may
    be under way.
    """

    rates: Rates = field(default_factory=Rates)
    grace_seconds: float = 50.0
    shutdown_seconds: float = 0.0
    most_evicting: Limit | None = None
    concurrency: int = CONCURRENT_WRITES


class TaintEngine:
    """Turns what is seen of nodes into writes of their taints."""

    def __init__(self, options: TaintOptions, random: Random) -> None:
        self.book = ZoneBook(options.rates, options.most_evicting)
        self._options = options
        self._nodes: dict[str, Node] = {}
        self._writes = Writes(options.concurrency, random)
        self._contention = Contention(random)
        self._rules = RuleDesk(random)
        self._dirty: dict[str, None] = {}
        self._fresh = False
        self._listed = False
        self._spared_until = -math.inf
        self._out: list[t.TaintEffect] = []

    def handle(self, event: t.TaintInput, now: float) -> list[t.TaintEffect]:
        """Take in one event at the time ``now``; return what is to be done, in this order."""
        self._take_in(event, now)
        if self._listed:
            self._judge_zones(now)
            self._end_sparing(now)
            self._mark(self._rules.advance(now))
            self._mark(self._writes.due(now))
            self._reconcile(now)
        if self._fresh:
            self._out.extend(self._rules.statuses(now))
        effects, self._out = self._out, []
        return effects

    def wake_at(self, now: float) -> float | None:  # noqa: ARG002 - the shape of Engine
        """Return when to send the next :class:`~taintkeeper.core.messages.Woke`, in seconds since the epoch."""
        if not self._listed:
            return None
        token_at = self.book.next_at() if self._fresh else math.inf
        spared_until = self._spared_until if self._spared_until > -math.inf else math.inf
        rules_at = self._rules.next_at(reporting=self._fresh)
        at = min(self._writes.next_at(), spared_until, self.book.judge_at(), token_at, rules_at)
        return at if at < math.inf else None

    def _take_in(self, event: t.TaintInput, now: float) -> None:
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
                self._rules.trust(fresh=fresh)
                self._mark(self._nodes)
            case RuleSeen() | RuleGone() | RuleWritten():
                self._rules.take(event, now)
            case m.Woke():
                pass

    def _node_seen(self, node: Node, now: float) -> None:
        known = self._nodes.get(node.name)
        if known is not None and known.uid != node.uid:
            self._node_gone(node.name)
            known = None
        if known is not None and node.older_than(known):
            return
        before = self._wish(known) if known is not None and self._is_touched(known, node) else None
        self._rules.see(node, now)
        if before is not None:
            self._compare(before, self._wish(node), now)
        if known is not None and known.ready is not node.ready:
            self._out.append(t.ReadyFlipped(node))
        self._nodes[node.name] = node
        self.book.place(node, now)
        self._dirty[node.name] = None

    def _node_gone(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._writes.forget(name)
        self._contention.forget(name)
        self._rules.forget(name)
        self._dirty.pop(name, None)
        self.book.remove(name)

    def _is_touched(self, before: Node, after: Node) -> bool:
        same = (before.taints, before.rule_taints) == (after.taints, after.rule_taints)
        return not same or bool(self._writes.of(after.name).lost)

    def _compare(self, before: Wish, after: Wish, now: float) -> None:
        """Notice what others did to our taints."""
        node = after.node
        writing = self._writes.of(node.name)
        lost, forced = undone_by_others(before, after)
        if writing.sent is not None:
            lost -= ids_of(writing.sent.change.removed)
            forced -= ids_of(writing.sent.change.added)
        writing.lost = ((writing.lost | lost) & after.ids) - ids_of(node.taints)
        for taint in sorted(lost | forced):
            self._note_undone(node, taint, now, reason=after.reason(taint) if taint in lost else None)

    def _note_undone(self, node: Node, taint: TaintId, now: float, *, reason: str | None) -> None:
        if self._contention.undone(node.name, taint, now):
            self._out.append(t.TaintContested(node, taint, reason))
        until = self._contention.paused_until(node.name, taint)
        if until > now:
            self._writes.look_again(node.name, until)

    def _written(self, event: m.NodeWritten, now: float) -> None:
        known = self._nodes.get(event.name)
        if known is not None and event.node is not None and event.node.uid == known.uid:
            self._node_seen(event.node, now)
        sent = self._writes.end(event, now)
        if sent is None:
            return
        self._dirty[event.name] = None
        if event.result is m.WriteResult.DONE:
            self._out.append(t.TaintsChanged(sent.node, sent.change, sent.reasons, sent.again))

    def _mark(self, names: Iterable[str]) -> None:
        self._dirty.update((name, None) for name in names if name in self._nodes)

    def _judge_zones(self, now: float) -> None:
        was_disrupted = self.book.all_disrupted
        self._out.extend(self.book.judge(now))
        if was_disrupted == self.book.all_disrupted:
            return
        if was_disrupted:
            self._spared_until = now + self._options.grace_seconds
        self._mark(self._nodes)

    def _end_sparing(self, now: float) -> None:
        if -math.inf < self._spared_until <= now:
            self._spared_until = -math.inf
            self._mark(self._nodes)

    def _reconcile(self, now: float) -> None:
        wishes = {name: self._wish(self._nodes[name]) for name in self._dirty}
        for each in wishes.values():
            self._enqueue(each, now)
        if self._fresh:
            self._mark(self.book.serve(now))
        while (name_in_line := self._writes.next_in_line()) is not None:
            self._write(self._wish(self._nodes[name_in_line]), now)
        dirty, self._dirty = self._dirty, {}
        for name in dirty:
            self._write(wishes.get(name) or self._wish(self._nodes[name]), now)

    def _enqueue(self, wished: Wish, now: float) -> None:
        node = wished.node
        if not wished.needs_token:
            self.book.forgo(node)
        elif (until := left_alone_until(node, self._options.shutdown_seconds, now)) > now:
            self.book.forgo(node)
            self._writes.look_again(node.name, until)
        else:
            self.book.wait(node, now)

    def _wish(self, node: Node) -> Wish:
        disrupted = self.book.all_disrupted
        execute = not disrupted and self._spared_until == -math.inf
        return wish(node, self._rules.view(node), all_disrupted=disrupted, execute=execute)

    def _write(self, wished: Wish, now: float) -> None:
        node = wished.node
        if not self._writes.may_begin(node, now):
            return
        patch = wished.patch(granted=self.book.granted(node), may_add=self._fresh, now=now)
        if patch is None:
            self._writes.of(node.name).failures = 0
        elif not self._contested(patch, now):
            again = frozenset(self._writes.of(node.name).lost & ids_of(patch.change.added))
            self._send(replace(patch, again=again))

    def _contested(self, patch: t.PatchTaints, now: float) -> bool:
        return all(self._contention.paused_until(patch.node.name, taint) > now for taint in patch.ids)

    def _send(self, patch: t.PatchTaints) -> None:
        if self._writes.has_place:
            self._writes.begin(patch)
            self._out.append(patch)
        else:
            urgent = bool(patch.change.removed) or any(taint.effect == NO_SCHEDULE for taint in patch.change.added)
            self._writes.stand_by(patch.node.name, urgent=urgent)
