"""All rules and what they say about each node at a time.

Whoever keeps the book tells it of rules and nodes as they are seen, lets time pass with :meth:`RuleBook.advance`, and
asks for :meth:`RuleBook.view` of the nodes that something has changed for. The work for an event grows with the number
of rules, never with that of nodes; only a rule that is new, changed or gone has every node looked at once.

A rule that is gone takes its taints with it: a node remembers which of its taints came from which rule
(``Node.rule_taints``), and what is remembered there and wanted by no rule goes. So nothing is lost when a rule is
deleted while nobody looks, and no finalizer has to hold it.
"""

import heapq
from collections.abc import Iterator

from taintkeeper.core.conditions import TaintId
from taintkeeper.core.objects import Condition, Node
from taintkeeper.core.rule_cases import Case, Phase
from taintkeeper.core.rule_entry import Entry
from taintkeeper.core.rules import NOTHING_SAID, Rule, RuleSeen, RuleTaint, RuleView

SUFFERING = frozenset({Phase.HOLDING, Phase.DUE, Phase.CLEARING})
"""Where a rule says something of a node that has no taint of a rule."""


class RuleBook:
    """The rules in force, the nodes that they select, and the timers for both."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._nodes: dict[str, Node] = {}
        self._complete = False
        self._blind = False
        self._timers: list[tuple[float, str, str]] = []
        self._changed: dict[str, None] = {}
        self._touched: dict[str, None] = {}

    def put(self, seen: RuleSeen, now: float) -> None:
        """Take in a rule as it is now. One that makes no sense leaves the version before it in force."""
        entry = self._entries.get(seen.name)
        if entry is not None and entry.seen.uid != seen.uid:
            self.remove(seen.name, now)
            entry = None
        if entry is None:
            entry = self._entries[seen.name] = Entry(seen, seen.rule)
            self._rearrange(entry, now)
        elif not seen.older_than(entry.seen):
            self._replace(entry, seen, now)

    def remove(self, name: str, now: float) -> None:
        """Forget a rule that is gone."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._note_concerned(entry, entry.rule)
            self._rearrange(entry, now)

    def doubt(self) -> None:
        """Note that nodes may change unseen, until :meth:`rely`."""
        self._blind = True

    def rely(self) -> None:
        """Note that all rules have been listed: from now on, a rule that is not in the book does not exist.

        All nodes have been seen as they are now, too.
        """
        self._blind = False
        if not self._complete:
            self._complete = True
            self._changed.update(dict.fromkeys(self._nodes))

    def see(self, node: Node, now: float) -> None:
        """Take in a node as it is now. Whoever tells must look at its view in any case."""
        known = self._nodes.get(node.name)
        if known is not None and known.uid != node.uid:
            self.forget(node.name)
        self._nodes[node.name] = node
        for entry in self._entries.values():
            self._look(entry, node, now)

    def forget(self, name: str) -> None:
        """Forget a node that is gone."""
        self._nodes.pop(name, None)
        self._changed.pop(name, None)
        for entry in self._entries.values():
            if entry.drop(name):
                self._touched[entry.seen.name] = None

    def advance(self, now: float) -> list[str]:
        """Let time pass, and compare every rule with its limit; return the nodes to look at again.

        Call it after all that has been seen was told: a limit is judged by the whole, not by its first half.
        """
        while self._timers and self._timers[0][0] <= now:
            self._ring(*heapq.heappop(self._timers), now)
        for entry in self._entries.values():
            self._judge_limit(entry, now)
        changed, self._changed = self._changed, {}
        return list(changed)

    def wake_at(self) -> float | None:
        """Return when to call :meth:`advance` again, in seconds since the epoch."""
        return self._timers[0][0] if self._timers else None

    def entry(self, name: str) -> Entry:
        """Return a rule with its numbers; raises KeyError where it is not in the book."""
        return self._entries[name]

    def take_touched(self) -> list[str]:
        """Return the rules whose numbers may have changed since the last call."""
        touched, self._touched = self._touched, {}
        return list(touched)

    def view(self, node: Node) -> RuleView:
        """Return what the rules say about a node that was told with :meth:`see`."""
        if not self._entries and not node.rule_taints:
            return NOTHING_SAID
        wanted: dict[TaintId, RuleTaint] = {}
        kept: set[TaintId] = set()
        decided: set[TaintId] = set()
        unlimited: set[TaintId] = set()
        values: dict[TaintId, str] = {}
        for entry, rule in self._selecting(node.name):
            taint_id = rule.taint_id
            value = values.setdefault(taint_id, rule.value)
            if rule.built_in:
                decided.add(taint_id)
            if entry.adds(node.name):
                wanted[taint_id] = _joined(wanted.get(taint_id), rule, value, _because(rule, node))
            elif entry.cases[node.name].phase is not Phase.CLEAR:
                kept.add(taint_id)
            else:
                continue
            if not rule.rate_limited:
                unlimited.add(taint_id)
        limited = (kept | wanted.keys()) - unlimited
        over: dict[TaintId, str] = {}
        for taint_id, rule_name in node.rule_taints.items():
            if taint_id in wanted or taint_id in kept:
                continue
            if self._may_be_wanted(rule_name):
                kept.add(taint_id)
            else:
                over[taint_id] = self._why_over(rule_name, taint_id, node.name)
        return RuleView(wanted, frozenset(kept - wanted.keys()), frozenset(decided), frozenset(limited), over)

    def _selecting(self, name: str) -> Iterator[tuple[Entry, Rule]]:
        for entry in self._entries.values():
            if (rule := entry.in_force) is not None and name in entry.cases:
                yield entry, rule

    def _may_be_wanted(self, rule_name: str) -> bool:
        """Say whether it is not known what the rule says: not all are listed, or this one never made sense to us."""
        entry = self._entries.get(rule_name)
        return not self._complete or (entry is not None and entry.rule is None)

    def _why_over(self, rule_name: str, taint_id: TaintId, node: str) -> str:
        entry = self._entries.get(rule_name)
        if entry is None:
            return f"rule {rule_name} is gone"
        rule = entry.in_force
        if rule is None or rule.taint_id != taint_id or node not in entry.cases:
            return f"rule {rule_name} does not ask for it any more"
        return f"condition {rule.condition_type} is no longer {rule.condition_status}, by rule {rule_name}"

    def _replace(self, entry: Entry, seen: RuleSeen, now: float) -> None:
        before, after = entry.rule, seen.rule or entry.rule
        entry.seen, entry.rule = seen, after
        if after == before:
            return
        self._note_concerned(entry, before)
        if before is not None and after is not None and _other_condition(before, after):
            for name in list(entry.cases):
                entry.drop(name)
        self._rearrange(entry, now)

    def _rearrange(self, changed: Entry, now: float) -> None:
        """Put the rules in order after one of them is new, changed or gone, and look at every node anew."""
        self._entries = dict(sorted(self._entries.items()))
        affected = [changed] if self._entries.get(changed.seen.name) is changed else []
        for name, entry in self._entries.items():
            before, entry.earlier = entry.earlier, self._earlier(name, entry)
            if changed in before or changed in entry.earlier:
                affected.append(entry)
        for entry in affected:
            for node in self._nodes.values():
                self._look(entry, node, now)
            self._note_concerned(entry, entry.rule)

    def _note_concerned(self, entry: Entry, rule: Rule | None) -> None:
        """Have those nodes looked at for which this rule makes a difference, now that it is another.

        Without a taint or a condition that calls for one, a node is of no concern to a rule; but where the rule decides
        about a built-in taint, its silence is a decision.
        """
        if rule is not None and rule.built_in:
            self._changed.update(dict.fromkeys(self._nodes))
            return
        self._changed.update((name, None) for name, node in self._nodes.items() if node.rule_taints)
        self._changed.update((name, None) for name, case in entry.cases.items() if case.phase in SUFFERING)

    def _earlier(self, name: str, entry: Entry) -> tuple[Entry, ...]:
        rule = entry.in_force
        if rule is None:
            return ()
        others = ((each, other) for each in self._entries.values() if (other := each.in_force) is not None)
        return tuple(each for each, other in others if other.taint_id == rule.taint_id and each.seen.name < name)

    def _look(self, entry: Entry, node: Node, now: float) -> None:
        rule = entry.rule
        if rule is None:
            return
        if not rule.selector.matches(node.labels):
            if entry.drop(node.name):
                self._touched[rule.name] = None
            return
        condition = node.condition(rule.condition_type)
        case = entry.cases.get(node.name)
        if case is None:
            entry.cases[node.name] = Case.begin(rule, condition, now)
        else:
            case.observe(rule, condition, now, blind=self._blind)
        self._assess(entry, rule, node, now)

    def _assess(self, entry: Entry, rule: Rule, node: Node, now: float) -> None:
        case = entry.assess(rule, node, now)
        self._touched[rule.name] = None
        ends_at = case.ends_at(rule)
        if ends_at is not None and (not case.armed or ends_at < case.armed[-1]):
            # A timer that rings too early is set again then, so that a node that flaps leaves no trail of them.
            case.armed = (*case.armed, ends_at)
            heapq.heappush(self._timers, (ends_at, node.name, rule.name))

    def _ring(self, at: float, node_name: str, rule_name: str, now: float) -> None:
        entry = self._entries.get(rule_name)
        case = None if entry is None else entry.cases.get(node_name)
        if entry is None or entry.rule is None or case is None or case.armed[-1:] != (at,):
            return
        case.armed = case.armed[:-1]
        self._assess(entry, entry.rule, self._nodes[node_name], now)
        self._changed[node_name] = None

    def _judge_limit(self, entry: Entry, now: float) -> None:
        if entry.over_limit is not entry.capped:
            entry.capped = entry.over_limit
            self._changed.update(entry.due)
            self._touched[entry.seen.name] = None
        rule = entry.rule
        if rule is not None and rule.dry_run and not entry.capped:
            for name in list(entry.due):
                entry.cases[name].granted = True
                self._assess(entry, rule, self._nodes[name], now)


def _other_condition(before: Rule, after: Rule) -> bool:
    return (before.condition_type, before.condition_status) != (after.condition_type, after.condition_status)


def _joined(other: RuleTaint | None, rule: Rule, value: str, reason: str) -> RuleTaint:
    """Return the taint that two rules want: the first by name stands for both, and one without rate limit is enough."""
    if other is None:
        return RuleTaint(rule.name, value, reason, rule.rate_limited)
    return RuleTaint(other.rule, other.value, other.reason, other.rate_limited and rule.rate_limited)


def _because(rule: Rule, node: Node) -> str:
    condition = node.condition(rule.condition_type) or Condition(rule.condition_type, rule.condition_status)
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"condition {condition.type} is {condition.status}{reason}, by rule {rule.name}"
