"""A book of rules and nodes at a virtual time; what rules want is written to the nodes as the operator would."""

from dataclasses import replace
from typing import Any

from taintkeeper.core.conditions import Change
from taintkeeper.core.objects import NO_SCHEDULE, Condition, Node, Taint
from taintkeeper.core.rule_book import RuleBook
from taintkeeper.core.rule_entry import Entry
from taintkeeper.core.rule_plan import lacks_token
from taintkeeper.core.rules import Rule, RuleSeen, RuleStatus
from taintkeeper.core.wishes import wish
from tests.unit.core.builders import node

DEADLOCK = "example.com/kernel-deadlock"


def rule(name: str = "deadlock", **facts: Any) -> Rule:
    """Return a rule that taints nodes with a kernel deadlock, NoSchedule and at once, unless the facts differ."""
    given = {
        "condition_type": "KernelDeadlock",
        "condition_status": "True",
        "key": DEADLOCK,
        "effect": NO_SCHEDULE,
        **facts,
    }
    return Rule(name, **given)


def seen(
    made: Rule | None, *, name: str = "", fault: str = "", version: int = 1, uid: str = "", **more: Any
) -> RuleSeen:
    """Return what is seen of a rule; its generation is its version."""
    name = name or (made.name if made else "deadlock")
    return RuleSeen(name, uid or f"{name}-uid", str(version), version, made, fault, **more)


class RuleBench:
    """Plays the taint engine, without zones: it gives every node what it is to have, and counts its writes."""

    def __init__(self, *rules: Rule, complete: bool = True) -> None:
        self.now = 1000.0
        self.book = RuleBook()
        self.nodes: dict[str, Node] = {}
        self.writes: list[str] = []
        self.may_add = True
        self.tokens = True
        for each in rules:
            self.book.put(seen(each), self.now)
        if complete:
            self.book.rely()

    def restart(self, *rules: Rule) -> None:
        """Forget everything that is not on the nodes, and begin again with these rules."""
        self.book = RuleBook()
        for each in rules:
            self.book.put(seen(each), self.now)
        self.book.rely()
        for known in self.nodes.values():
            self.book.see(known, self.now)
        self.settle(*self.nodes)

    def put(self, made: Rule | None, **more: Any) -> None:
        """Create or change a rule."""
        self.book.put(seen(made, **more), self.now)
        self.settle()

    def remove(self, name: str = "deadlock") -> None:
        """Delete a rule."""
        self.book.remove(name, self.now)
        self.settle()

    def add(self, name: str = "n1", *taints: Taint, since: float | None = None, **facts: Any) -> None:
        """Make a node; its conditions are as they are since this time, by its own clock."""
        made = node(name, *taints, **facts)
        conditions = tuple(replace(each, transition=since) for each in made.conditions)
        self.see(replace(made, conditions=conditions))

    def report(self, name: str = "n1", **conditions: str | None) -> None:
        """Have a node report conditions: type to status, None to take one away."""
        known = self.nodes[name]
        kept = tuple(each for each in known.conditions if each.type not in conditions)
        new = tuple(Condition(t, status, transition=self.now) for t, status in conditions.items() if status is not None)
        self.see(replace(known, conditions=kept + new))

    def label(self, name: str = "n1", **labels: str) -> None:
        """Give a node other labels."""
        self.see(replace(self.nodes[name], labels=labels))

    def set_taints(self, name: str, *taints: Taint) -> None:
        """Have somebody else set the taints of a node."""
        self.see(replace(self.nodes[name], taints=taints))

    def drop(self, name: str) -> None:
        """Delete a node."""
        del self.nodes[name]
        self.book.forget(name)
        self.settle()

    def see(self, changed: Node) -> None:
        """Take in a node as it is now, and do what follows."""
        self.nodes[changed.name] = changed
        self.book.see(changed, self.now)
        self.settle(changed.name)

    def pass_time(self, seconds: float) -> None:
        """Let time pass and wake the book when it asks for it."""
        end = self.now + seconds
        while (at := self.book.wake_at()) is not None and at <= end:
            self.now = max(self.now, at)
            self.settle()
        self.now = end
        self.settle()

    def settle(self, *names: str) -> None:
        """Write what is to be written, as often as it takes."""
        dirty = dict.fromkeys([*names, *self.book.advance(self.now)])
        while dirty:
            name = next(iter(dirty))
            del dirty[name]
            if name in self.nodes and self._write(self.nodes[name]):
                dirty[name] = None
            dirty.update(dict.fromkeys(self.book.advance(self.now)))

    def _write(self, known: Node) -> bool:
        wished = wish(known, self.book.view(known), all_disrupted=False, execute=True)
        patch = wished.patch(granted=self.tokens, may_add=self.may_add, now=self.now)
        if patch is None:
            return False
        memory = known.rule_taints if patch.rule_taints is None else patch.rule_taints
        self.writes.append(_line(known.name, patch.change))
        written = replace(known, taints=patch.change.taints, rule_taints=memory)
        self.nodes[known.name] = written
        self.book.see(written, self.now)
        return True

    def needs_token(self, name: str = "n1") -> bool:
        """Say whether a node waits for its zone."""
        return lacks_token(self.nodes[name], self.book.view(self.nodes[name]))

    def taints(self, name: str = "n1") -> set[str]:
        """Return the taints of a node as ``key=value:effect``."""
        return {str(taint) for taint in self.nodes[name].taints}

    def tainted(self) -> set[str]:
        """Return the nodes that have any taint."""
        return {name for name, each in self.nodes.items() if each.taints}

    def entry(self, name: str = "deadlock") -> Entry:
        """Return a rule with its numbers."""
        return self.book.entry(name)

    def numbers(self, name: str = "deadlock") -> tuple[int, int, int, int]:
        """Return matched, waiting, tainted and held back."""
        entry = self.entry(name)
        return entry.matched, entry.waiting, entry.tainted, entry.held_back


def _line(name: str, change: Change) -> str:
    if not change.ids:
        return f"{name} memory"
    return " ".join([name, *(f"+{each}" for each in change.added), *(f"-{each}" for each in change.removed)])


def without_times(status: RuleStatus) -> RuleStatus:
    """Return a status without the times of its conditions."""
    return replace(status, conditions=tuple(replace(each, since=0.0) for each in status.conditions))
