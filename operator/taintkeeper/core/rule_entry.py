"""One rule with all the nodes that it selects, counted: the numbers are kept, never summed up anew."""

from collections import Counter
from dataclasses import dataclass, field

from taintkeeper.core.objects import Node
from taintkeeper.core.rule_cases import Case, Phase
from taintkeeper.core.rules import Rule, RuleSeen


@dataclass(slots=True, eq=False)
class Entry:
    """A rule in the book. ``rule`` is the version in force: the last one that made sense, None where none ever did.

    ``due`` are the nodes that are to have the taint and do not have it. ``earlier`` are the rules in force for the same
    taint that come before it by name. ``capped`` is whether the limit was exceeded when it was last looked at.
    """

    seen: RuleSeen
    rule: Rule | None
    cases: dict[str, Case] = field(default_factory=dict)
    due: dict[str, None] = field(default_factory=dict)
    tainted: int = 0
    holding: int = 0
    overruled: Counter[str] = field(default_factory=Counter)
    capped: bool = False
    earlier: tuple["Entry", ...] = ()

    @property
    def in_force(self) -> Rule | None:
        """The rule, if it makes a difference to nodes."""
        return None if self.rule is None or self.rule.dry_run else self.rule

    @property
    def matched(self) -> int:
        """How many nodes the rule selects."""
        return len(self.cases)

    @property
    def unhealthy(self) -> int:
        """How many nodes suffer: they have the condition, or still the taint for it."""
        return self.tainted + self.holding + len(self.due)

    @property
    def over_limit(self) -> bool:
        """Whether more nodes suffer than ``maxUnhealthy`` allows."""
        limit = None if self.rule is None else self.rule.limit
        return limit is not None and self.unhealthy > limit.of(self.matched)

    @property
    def held_back(self) -> int:
        """How many nodes do not get the taint because too many suffer."""
        return len(self.due) if self.capped else 0

    @property
    def waiting(self) -> int:
        """How many nodes will get the taint when their time or their turn comes."""
        return self.holding + (0 if self.capped else len(self.due))

    def adds(self, name: str) -> bool:
        """Say whether this node is to have the taint now; one that has it is not asked to wait for the limit again."""
        case = self.cases[name]
        return case.phase is Phase.DUE and (case.tainted or not self.capped)

    def assess(self, rule: Rule, node: Node, now: float) -> Case:
        """Count a node as what it is now. It must have a case."""
        case = self.cases[node.name]
        self._discount(node.name, case)
        case.phase = case.phase_at(rule, now)
        case.granted = case.granted and case.phase is not Phase.CLEAR
        has_taint = case.granted if rule.dry_run else any((t.key, t.effect) == rule.taint_id for t in node.taints)
        case.tainted = has_taint and case.phase is not Phase.CLEAR
        case.overruled_by = self._overruler(rule, node.name)
        self._count(node.name, case)
        return case

    def drop(self, name: str) -> bool:
        """Forget a node; return whether it was selected."""
        case = self.cases.pop(name, None)
        if case is not None:
            self._discount(name, case)
        return case is not None

    def _overruler(self, rule: Rule, name: str) -> str | None:
        first = next((each for each in self.earlier if name in each.cases), None)
        differs = first is not None and first.rule is not None and first.rule.value != rule.value
        return first.seen.name if first is not None and differs else None

    def _count(self, name: str, case: Case) -> None:
        if case.tainted:
            self.tainted += 1
        elif case.phase is Phase.HOLDING:
            self.holding += 1
        elif case.phase is Phase.DUE:
            self.due[name] = None
        if case.overruled_by is not None:
            self.overruled[case.overruled_by] += 1

    def _discount(self, name: str, case: Case) -> None:
        if case.tainted:
            self.tainted -= 1
        elif case.phase is Phase.HOLDING:
            self.holding -= 1
        elif case.phase is Phase.DUE:
            self.due.pop(name, None)
        if case.overruled_by is not None:
            self.overruled -= Counter((case.overruled_by,))
