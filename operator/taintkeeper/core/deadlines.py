"""When a pod must leave its node, and because of which taint.

    start(taint, pod) = the later of: the taint was added, the pod was bound to the node
    due(taint, pod)   = start               no toleration matches
                        start + seconds     tolerated for a time (zero and negative: at once)
                        never               tolerated for ever
    due(pod)          = the earliest of these

The source is ``processPodOnNode`` and ``getMinTolerationTime`` in kubernetes/kubernetes
``pkg/controller/tainteviction/taint_eviction.go``; unlike there, a countdown belongs to the taint's own time, so that
it outlives a restart, and is computed afresh at every change, so that it can become longer as well as shorter.
Countdowns of not-ready and unreachable do not run while the node's zone stands still (:mod:`taintkeeper.core.pauses`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from taintkeeper.core.first_seen import SIBLINGS, started
from taintkeeper.core.objects import NO_EXECUTE, Node, Pod, Taint, Toleration
from taintkeeper.core.pauses import NEVER_PAUSED, ZonePauses
from taintkeeper.core.tolerations import first_match

NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Deadline:
    """Why a pod must leave and when. ``toleration`` is the one that counts, None where none matches.

    ``start`` and ``due`` are in seconds since the epoch. While it is ``paused`` the due time is only what it would be
    if the node's zone went on now.
    """

    taint: Taint
    toleration: Toleration | None
    start: float
    due: float
    paused: bool = False

    def __str__(self) -> str:
        """Tell the reason in the words of an event or a log line."""
        if self.toleration is None:
            return f"taint {self.taint} is not tolerated"
        return f"taint {self.taint} is tolerated for {self.toleration.seconds} s only"


def no_execute(taints: Iterable[Taint]) -> list[Taint]:
    """Return the taints that evict; the other effects concern the scheduler alone."""
    return [taint for taint in taints if taint.effect == NO_EXECUTE]


def deadline(
    pod: Pod, node: Node, memory: Mapping[str, float], *, now: float, pauses: ZonePauses = NEVER_PAUSED
) -> Deadline | None:
    """Return when and why the pod must leave this node, or None when it may stay for ever.

    A countdown that is paused counts only where there is no other.
    """
    candidates = (
        _pause(_deadline_for(taint, pod, node, memory, now), pauses, now) for taint in no_execute(node.taints)
    )
    finite = [candidate for candidate in candidates if candidate.due < NEVER]
    return min(finite, key=lambda candidate: (candidate.paused, candidate.due), default=None)


def _pause(found: Deadline, pauses: ZonePauses, now: float) -> Deadline:
    if found.taint.key not in SIBLINGS or not pauses.spans:
        return found
    return replace(found, due=found.due + pauses.lost(found.start, now), paused=pauses.paused)


def _deadline_for(taint: Taint, pod: Pod, node: Node, memory: Mapping[str, float], now: float) -> Deadline:
    added = started(taint, memory, node_created=node.created, now=now)
    start = max(added, min(pod.bound, now))
    toleration = first_match(pod.tolerations, taint)
    return Deadline(taint, toleration, start, start + _seconds(toleration))


def _seconds(toleration: Toleration | None) -> float:
    if toleration is None:
        return 0.0
    return NEVER if toleration.seconds is None else max(0.0, toleration.seconds)
