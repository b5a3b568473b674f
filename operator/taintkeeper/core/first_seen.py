"""Since when a taint or a pod has been there, when it does not say so itself, or cannot be believed.

``timeAdded`` is optional and ``kubectl taint`` never sets it; clients may also send any time they like. What is
missing or unbelievable is replaced by the time the taint was first noticed. The node carries that memory in an
annotation, so that neither a restart nor a change of leader begins a countdown anew.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from taintkeeper.core.objects import NO_EXECUTE, Pod, Taint

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
SIBLINGS = {NOT_READY: UNREACHABLE, UNREACHABLE: NOT_READY}

CLOCK_TOLERANCE_SECONDS = 300.0
"""How far a taint may be older than its node before its time is disbelieved: clocks differ a little."""


def executes(taint: Taint) -> bool:
    """Say whether the taint evicts by its effect alone."""
    return taint.effect == NO_EXECUTE


def believable(taint: Taint, *, node_created: float, now: float) -> bool:
    """Say whether ``timeAdded`` can be true: not in the future, not long before the node existed."""
    return taint.time_added is not None and node_created - CLOCK_TOLERANCE_SECONDS <= taint.time_added <= now


def plausible(memory: Mapping[str, float], *, node_created: float) -> dict[str, float]:
    """Return what of a node's own memory can be true: nothing was seen on a node long before it existed."""
    return {taint: at for taint, at in memory.items() if at >= node_created - CLOCK_TOLERANCE_SECONDS}


def remembered_as(taint: Taint) -> str:
    """Return the name under which a taint is remembered; its own time is part of that, where it has one.

    What is remembered of a taint must not be taken for a later one of the same key, added while nobody looked.
    """
    return str(taint) if taint.time_added is None else f"{taint}@{taint.time_added:.0f}"


def started(taint: Taint, memory: Mapping[str, float], *, node_created: float, now: float) -> float:
    """Return since when the taint counts, in seconds since the epoch; the older of memory and believable time."""
    remembered = min(memory.get(remembered_as(taint), now), now)
    if taint.time_added is not None and believable(taint, node_created=node_created, now=now):
        return min(taint.time_added, remembered)
    return remembered


def remember(
    taints: Iterable[Taint],
    before: Iterable[Taint],
    memory: Mapping[str, float],
    *,
    node_created: float,
    now: float,
    acts: Callable[[Taint], bool] = executes,
) -> dict[str, float]:
    """Return the memory that belongs to these taints: name to first-seen time, in seconds since the epoch.

    Only taints that may have a pod leave are remembered (``acts``), and only where their own time does not do: it is
    missing or unbelievable, or the taint took the place of its sibling (not-ready, unreachable) in one step and goes on
    with its countdown.
    """
    known = {taint.key: taint for taint in before if taint.effect == NO_EXECUTE}
    kept: dict[str, float] = {}
    for taint in taints:
        if not acts(taint):
            continue
        name = remembered_as(taint)
        sibling = known.get(SIBLINGS.get(taint.key, "")) if executes(taint) else None
        if name in memory:
            kept[name] = min(memory[name], now)
        elif sibling is not None and taint.key not in known:
            kept[name] = started(sibling, memory, node_created=node_created, now=now)
        elif not believable(taint, node_created=node_created, now=now):
            kept[name] = now
    return kept


def arrived(pod: Pod, before: Pod | None, *, now: float) -> Pod:
    """Return the pod with a time of its binding that can be true; ``before`` is what was returned for it last.

    A time in the future counts as the time at which the pod was first seen on its node. To count it as now would begin
    its countdown anew at each change of the pod or of its node, for as long as the time stays in the future.
    """
    if pod.bound <= now:
        return pod
    first_seen = before.bound if before is not None and before.node == pod.node else now
    return replace(pod, bound=min(first_seen, now))
