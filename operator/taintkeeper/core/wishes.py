"""What a node is to have: what its conditions call for, joined with what the rules say, and the write that it needs.

Once every zone has failed, no pod is better off elsewhere. Then no node keeps NoExecute that goes at the pace of its
zone: not-ready and unreachable neither, nor what rules with ``rateLimited`` bring. What a rule without it brings stays,
and comes: whoever asked for that takes the rule's word over that of the zones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from taintkeeper.core.conditions import Change, TaintId, Wanted, execute_taint, ids_of, plan, undone, wanted
from taintkeeper.core.objects import NO_EXECUTE, Node
from taintkeeper.core.rule_plan import (
    RulePlan,
    forced_by_others,
    lacks_token,
    lost_to_others,
    own_wishes,
    plan_rules,
    with_decisions,
)
from taintkeeper.core.rules import BUILT_IN, RuleView
from taintkeeper.core.taint_messages import PatchTaints

EVERYWHERE = "every zone has failed, so that no pod is better off elsewhere"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a node in this state is to have. ``want`` is about built-in taints, ``view`` about all others.

    ``execute`` says whether NoExecute that goes at the pace of the zone may be on nodes at all now.
    """

    node: Node
    want: Wanted
    view: RuleView
    execute: bool

    @property
    def ids(self) -> set[TaintId]:
        """The taints that should be there, once the zone has let them through."""
        return self.want.ids(execute=self.execute) | own_wishes(self.view).keys()

    @property
    def needs_token(self) -> bool:
        """Whether the node gets everything only once the zone has let it through."""
        executing = self.execute and self.want.execute is not None and execute_taint(self.node) is None
        return executing or lacks_token(self.node, self.view)

    def reason(self, taint: TaintId) -> str:
        """Return why this taint, which is among :attr:`ids`, should be there."""
        wanted_by_rule = self.view.wanted.get(taint)
        return wanted(self.node).no_schedule[taint[0]] if wanted_by_rule is None else wanted_by_rule.reason

    def patch(self, *, granted: bool, may_add: bool, now: float) -> PatchTaints | None:
        """Return the one write that the node needs, None where it is right.

        ``granted`` says that the zone has let the node through; ``may_add`` is False when what we know may be stale.
        """
        execute = self.execute and (granted or execute_taint(self.node) is not None)
        change = plan(self.node, self.want, execute=execute, may_add=may_add, now=now)
        planned = plan_rules(self.node, change, self.view, granted=granted, may_add=may_add, now=now)
        if planned is None:
            return None
        whole = planned.change or Change(self.node.taints, (), ())
        return PatchTaints(self.node, whole, self._reasons(planned, whole), rule_taints=planned.memory)

    def _reasons(self, planned: RulePlan, change: Change) -> Mapping[TaintId, str]:
        added = {taint: self.reason(taint) for taint in ids_of(change.added)}
        removed = {taint: self._why_over(taint, change) for taint in ids_of(change.removed)}
        return removed | added | dict(planned.reasons)

    def _why_over(self, taint: TaintId, change: Change) -> str:
        key, effect = taint
        if key in self.want.no_schedule:
            return EVERYWHERE
        successor = next((added for added in change.added if added.effect == effect and added.key != key), None)
        return "its condition is over" if successor is None else f"{successor} took its place"


def wish(node: Node, view: RuleView, *, all_disrupted: bool, execute: bool) -> Wish:
    """Join what the node's conditions call for with what the rules say about it.

    ``all_disrupted`` says that every zone has failed, ``execute`` is as for :class:`Wish`.
    """
    want = with_decisions(wanted(node), view, node)
    if all_disrupted:
        want = replace(want, unknown=frozenset(taint for taint in want.unknown if taint[1] != NO_EXECUTE))
    return Wish(node, want, view if execute else _spared(view), execute)


def undone_by_others(before: Wish, after: Wish) -> tuple[set[TaintId], set[TaintId]]:
    """Compare two states of a node that follow one another: return what others did to our taints against our wishes.

    First come the taints that vanished although they are called for, then those that appeared although they are not.
    """
    nodes, views = (before.node, after.node), (before.view, after.view)
    lost, forced = undone(*nodes, before.want, after.want, execute=after.execute)
    return lost | lost_to_others(*nodes, *views), forced | forced_by_others(*nodes, *views)


def _spared(view: RuleView) -> RuleView:
    gone = frozenset(taint for taint in view.limited - BUILT_IN if taint[1] == NO_EXECUTE)
    if not gone:
        return view
    left = {taint: found for taint, found in view.wanted.items() if taint not in gone}
    over = {**view.over, **dict.fromkeys(gone, EVERYWHERE)}
    return replace(view, wanted=left, kept=view.kept - gone, over=over)
