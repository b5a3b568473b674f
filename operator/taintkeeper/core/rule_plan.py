"""How the rules' taints and the built-in ones come together into one change of a node.

A rule for a built-in taint changes what :func:`taintkeeper.core.conditions.wanted` calls for (:func:`with_decisions`);
the others are planned on top of the built-in change (:func:`plan_rules`). The two never touch the same taint.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from taintkeeper.core.conditions import Change, TaintId, Wanted
from taintkeeper.core.first_seen import SIBLINGS
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node, Taint
from taintkeeper.core.rules import BUILT_IN, NOTHING_SAID, RuleTaint, RuleView


@dataclass(frozen=True, slots=True)
class RulePlan:
    """What to write to a node, in one patch. ``change`` is the whole change of its taints, None without any.

    ``memory`` is what ``Node.rule_taints`` is to be, None where it is right already. ``reasons`` says why for each
    taint that rules add or remove.
    """

    change: Change | None
    memory: Mapping[TaintId, str] | None
    reasons: Mapping[TaintId, str]


def with_decisions(want: Wanted, view: RuleView, node: Node) -> Wanted:
    """Return what a node calls for once the rules have decided about the built-in taints that are theirs.

    What a rule wants is wanted, what it keeps is neither added nor removed, and the rest is over. Beyond that:

    * not-ready and unreachable exclude each other: one that is wanted takes the place of one that is only kept. One
      that a rule delays does so when it comes; until then the other stays where it is, so that the node is never
      without and the countdown goes on.
    * NoExecute is never without its NoSchedule twin: it waits where a rule delays the twin, and where a rule keeps
      NoExecute after the condition is over, the twin stays too.
    """
    if not view.decided:
        return want
    no_schedule = {key: why for key, why in want.no_schedule.items() if (key, NO_SCHEDULE) not in view.decided}
    wanted = {taint_id: taint for taint_id, taint in view.wanted.items() if taint_id in view.decided}
    no_schedule |= {key: taint.reason for (key, effect), taint in wanted.items() if effect == NO_SCHEDULE}
    kept = view.kept & view.decided
    kept |= {(key, NO_SCHEDULE) for key, effect in kept if effect == NO_EXECUTE}
    unknown = (want.unknown - view.decided) | kept
    execute = want.execute
    if execute is not None:
        delayed = (execute, NO_EXECUTE) in view.decided and (execute, NO_EXECUTE) not in wanted
        twin = execute in no_schedule or ((execute, NO_SCHEDULE) in unknown and _has(node, (execute, NO_SCHEDULE)))
        execute = None if delayed or not twin else execute
    ids = _ids(Wanted(no_schedule, execute, unknown))
    delayed_ids = {taint_id for taint_id in _ids(want) - ids if not _has(node, taint_id)}
    return Wanted(no_schedule, execute, (unknown | _siblings(delayed_ids)) - _siblings(ids))


def lacks_token(node: Node, view: RuleView) -> bool:
    """Say whether the node needs a token of its zone before it gets everything that the rules want."""
    return any(taint.rate_limited and not _is_right(node, i, taint) for i, taint in own_wishes(view).items())


def plan_rules(
    node: Node, base: Change | None, view: RuleView, *, granted: bool, may_add: bool, now: float
) -> RulePlan | None:
    """Return the change that brings a node's taints to what its conditions and the rules want, None if it is right.

    ``base`` is the change that the built-in taints need. ``granted`` says that the node has the token of its zone
    that taints with a rate limit wait for; ``may_add`` is as for :func:`taintkeeper.core.conditions.plan`.

    A taint is ours where the node remembers that a rule brought it. One that is there without that was set by somebody
    else: it does as well, and is never changed, removed or claimed. A taint of ours with another value than it should
    have is replaced by a new one, at the pace of a new one; until then it stays.
    """
    if view is NOTHING_SAID:
        return None if base is None else RulePlan(base, None, {})
    present = {(taint.key, taint.effect): taint for taint in (node.taints if base is None else base.taints)}
    ours = {i: rule for i, rule in node.rule_taints.items() if i in present and i not in BUILT_IN}
    wanted = own_wishes(view)
    new = {
        i: Taint(*i, taint.value, now)
        for i, taint in sorted(wanted.items())
        if may_add
        and (granted or not taint.rate_limited)
        and (i not in present or (i in ours and present[i].value != taint.value))
    }
    gone = {i for i in ours if i not in wanted and i not in view.kept}
    memory = {i: rule for i, rule in ours.items() if i not in gone} | {i: wanted[i].rule for i in new}
    reasons = {i: wanted[i].reason for i in new} | {i: view.over[i] for i in gone}
    change = _joined(base, present, new, gone)
    right = memory == dict(node.rule_taints)
    return None if change is None and right else RulePlan(change, None if right else memory, reasons)


def lost_to_others(before: Node, after: Node, view_before: RuleView, view_after: RuleView) -> set[TaintId]:
    """Return the taints of ours that others spoilt between two states of a node although rules want them, in both.

    A taint is spoilt when it has vanished, and also when it has got another value.
    """
    wanted_before, wanted_after = own_wishes(view_before), own_wishes(view_after)
    return {
        i
        for i in before.rule_taints.keys() & wanted_before.keys() & wanted_after.keys()
        if wanted_before[i].value == wanted_after[i].value
        and _is_right(before, i, wanted_before[i])
        and not _is_right(after, i, wanted_after[i])
    }


def forced_by_others(before: Node, after: Node, view_before: RuleView, view_after: RuleView) -> set[TaintId]:
    """Return the taints that others made ours between two states of a node although no rule asks for them, in any.

    They added it to the node's memory, be the taint there as well or not: we would take away what is there of both.
    """
    asked = {i for view in (view_before, view_after) for i in (*view.wanted, *view.kept)}
    grown = after.rule_taints.keys() - before.rule_taints.keys()
    return {i for i in grown if i in BUILT_IN or i not in asked or not _has(after, i)}


def own_wishes(view: RuleView) -> dict[TaintId, RuleTaint]:
    """Return the taints that rules want of themselves: those that are not built in."""
    return {i: taint for i, taint in view.wanted.items() if i not in BUILT_IN}


def _joined(
    base: Change | None, present: Mapping[TaintId, Taint], new: Mapping[TaintId, Taint], gone: set[TaintId]
) -> Change | None:
    if not new and not gone:
        return base
    kept = tuple(taint for i, taint in present.items() if i not in gone and i not in new)
    removed = tuple(taint for i, taint in present.items() if i in gone or i in new)
    added = tuple(new.values())
    if base is None:
        return Change(kept + added, added, removed)
    return Change(kept + added, base.added + added, base.removed + removed)


def _is_right(node: Node, taint_id: TaintId, taint: RuleTaint) -> bool:
    found = next((each for each in node.taints if (each.key, each.effect) == taint_id), None)
    return found is not None and (taint_id not in node.rule_taints or found.value == taint.value)


def _has(node: Node, taint_id: TaintId) -> bool:
    return any((taint.key, taint.effect) == taint_id for taint in node.taints)


def _siblings(ids: set[TaintId]) -> set[TaintId]:
    return {(SIBLINGS[key], effect) for key, effect in ids if key in SIBLINGS}


def _ids(want: Wanted) -> set[TaintId]:
    ids = {(key, NO_SCHEDULE) for key in want.no_schedule}
    return ids if want.execute is None else ids | {(want.execute, NO_EXECUTE)}
