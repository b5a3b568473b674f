"""Which taints a node's own conditions call for, and the one change that gets it there.

The table is ``nodeConditionToTaintKeyStatusMap`` in kubernetes/kubernetes
``pkg/controller/nodelifecycle/node_lifecycle_controller.go``. Only the keys named here, with the effects named here,
are ours; every other taint stays as it is, whatever happens.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from taintkeeper.core.first_seen import NOT_READY, SIBLINGS, UNREACHABLE
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node, Taint

PREFIX = "node.kubernetes.io/"
UNSCHEDULABLE = PREFIX + "unschedulable"
OUT_OF_DISK = PREFIX + "out-of-disk"

CONDITION_TAINTS: dict[tuple[str, str], str] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): PREFIX + "memory-pressure",
    ("DiskPressure", "True"): PREFIX + "disk-pressure",
    ("PIDPressure", "True"): PREFIX + "pid-pressure",
    ("NetworkUnavailable", "True"): PREFIX + "network-unavailable",
    ("OutOfDisk", "True"): OUT_OF_DISK,
}
"""Condition type and status to the key of the taint that stands for it."""

KEYS_OF_CONDITION: dict[str, frozenset[str]] = {
    type_: frozenset(key for (other, _), key in CONDITION_TAINTS.items() if other == type_)
    for type_, _ in CONDITION_TAINTS
}

SILENT_WHEN_MISSING = frozenset({"Ready", "OutOfDisk"})
"""Conditions without which nothing is known: a kubelet that never reported, and one that no longer knows OutOfDisk."""

EXECUTE_KEYS = (NOT_READY, UNREACHABLE)
"""The keys that come with NoExecute too, at the pace of the zone."""

TaintId = tuple[str, str]
"""Key and effect: what the API holds unique on a node."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a node's conditions call for.

    ``no_schedule`` maps each key to the condition that asks for it, for the event; ``execute`` is the key that
    deserves NoExecute, None when the node is ready. ``unknown`` are taints about which nothing can be said, since the
    condition behind them is missing: they are neither added nor removed.
    """

    no_schedule: dict[str, str]
    execute: str | None
    unknown: frozenset[TaintId]

    def ids(self, *, execute: bool) -> set[TaintId]:
        """Return the taints that should be there; ``execute`` says whether NoExecute may be among them."""
        ids = {(key, NO_SCHEDULE) for key in self.no_schedule}
        if execute and self.execute is not None:
            ids.add((self.execute, NO_EXECUTE))
        return ids


@dataclass(frozen=True, slots=True)
class Change:
    """The change that a node's taints need: the whole new list, and what differs from the old one."""

    taints: tuple[Taint, ...]
    added: tuple[Taint, ...]
    removed: tuple[Taint, ...]

    @property
    def ids(self) -> set[TaintId]:
        """Which taints it adds or removes."""
        return ids_of((*self.added, *self.removed))


def wanted(node: Node) -> Wanted:
    """Read the node's conditions and ``spec.unschedulable`` into the taints that they call for."""
    reasons: dict[str, str] = {}
    unknown: set[TaintId] = set()
    for type_, keys in KEYS_OF_CONDITION.items():
        condition = node.condition(type_)
        if condition is None and type_ in SILENT_WHEN_MISSING:
            unknown.update((key, effect) for key in keys for effect in _effects(key))
        elif condition is not None and (key := CONDITION_TAINTS.get((type_, condition.status))) is not None:
            reasons[key] = _because(condition)
    if node.unschedulable:
        reasons[UNSCHEDULABLE] = "spec.unschedulable is true"
    execute = next((key for key in EXECUTE_KEYS if key in reasons), None)
    return Wanted(reasons, execute, frozenset(unknown))


def execute_taint(node: Node) -> Taint | None:
    """Return the NoExecute taint for not-ready or unreachable that the node carries, if any."""
    return next((t for t in node.taints if t.effect == NO_EXECUTE and t.key in EXECUTE_KEYS), None)


def plan(node: Node, want: Wanted, *, execute: bool, may_add: bool, now: float) -> Change | None:
    """Return the one change that brings the node's taints to what is wanted, or None if they are right.

    ``execute`` says whether the NoExecute taint that the node deserves may be there now. ``may_add`` is False when
    what we know may be stale: then taints are only taken away, and none whose successor would have to be added.
    A taint that takes the place of its sibling (not-ready, unreachable) keeps the sibling's time.
    """
    ids = want.ids(execute=execute)
    present = {(taint.key, taint.effect): taint for taint in node.taints}
    missing = sorted(ids - present.keys())
    removable = {identity for identity in present.keys() & _OURS if identity not in ids | want.unknown}
    if missing and not may_add:
        missing = []
        removable = set() if execute else {identity for identity in removable if identity[1] == NO_EXECUTE}
    if not missing and not removable:
        return None
    added = tuple(_new_taint(i, present, now) for i in missing)
    kept = tuple(taint for i, taint in present.items() if i not in removable)
    return Change(kept + added, added, tuple(present[i] for i in present if i in removable))


def ids_of(taints: Iterable[Taint]) -> set[TaintId]:
    """Return which taints these are."""
    return {(taint.key, taint.effect) for taint in taints}


def undone(
    before: Node, after: Node, want_before: Wanted, want_after: Wanted, *, execute: bool
) -> tuple[set[TaintId], set[TaintId]]:
    """Compare two states of a node that follow one another: return what others did to our taints against our wishes.

    First come the taints that vanished although they are called for, then those that appeared although they are not.
    What was called for in one of the states only is nobody's fault. ``execute`` says whether NoExecute may be there.
    """
    had, has = ids_of(before.taints), ids_of(after.taints)
    wanted_before, wanted_after = (want.ids(execute=execute) for want in (want_before, want_after))
    lost = (had - has) & wanted_before & wanted_after
    forced = (has - had) & _OURS - wanted_before - wanted_after - want_before.unknown - want_after.unknown
    return lost, forced


def _because(condition: Condition) -> str:
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"condition {condition.type} is {condition.status}{reason}"


def _new_taint(identity: TaintId, present: dict[TaintId, Taint], now: float) -> Taint:
    key, effect = identity
    sibling = present.get((SIBLINGS.get(key, ""), effect))
    if sibling is not None and sibling.time_added is not None:
        return replace(sibling, key=key, value="")
    return Taint(key, effect, time_added=now)


def _effects(key: str) -> Iterable[str]:
    return (NO_SCHEDULE, NO_EXECUTE) if key in EXECUTE_KEYS else (NO_SCHEDULE,)


_OURS: frozenset[TaintId] = frozenset(
    [(key, effect) for key in CONDITION_TAINTS.values() for effect in _effects(key)] + [(UNSCHEDULABLE, NO_SCHEDULE)]
)
