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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from taintkeeper.core.acting import acting, toleration_for
from taintkeeper.core.first_seen import SIBLINGS, started
from taintkeeper.core.objects import Node, Pod, Taint, Toleration
from taintkeeper.core.pauses import ZonePauses
from taintkeeper.core.policies import BY_DEFAULT, Decision
from taintkeeper.core.policy_book import PolicyBook

NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Deadline:
    """Why a pod must leave and when. ``toleration`` is the one that counts, None where none matches.

    ``start`` and ``due`` are in seconds since the epoch. While it is ``paused`` the due time is only what it would be
    if the node's zone went on now. ``decision`` is what the policy in force says about the pod and the taint, ``ways``
    when each taint is due that has the pod leave, and what is decided about it.
    """

    taint: Taint
    toleration: Toleration | None
    start: float
    due: float
    paused: bool = False
    decision: Decision = BY_DEFAULT
    ways: tuple[tuple[float, Decision], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        """Tell the reason in the words of an event or a log line."""
        if self.toleration is None:
            return f"taint {self.taint} is not tolerated"
        return f"taint {self.taint} is tolerated for {self.toleration.seconds} s only"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is: its node with what is remembered of its taints, and when the node's zone stood still."""

    node: Node
    memory: Mapping[str, float]
    pauses: ZonePauses


def deadline(pod: Pod, place: Place, book: PolicyBook, *, now: float) -> Deadline | None:
    """Return when and why the pod must leave its node, or None when no taint there would ever have it leave.

    A taint by which the policy lets the pod stay counts only where there is no other, and so does a countdown that is
    paused: whoever looks is told why the pod is still there.
    """
    candidates = [
        _deadline_for(taint, decision, pod, place, now) for taint, decision in acting(place.node.taints, pod, book)
    ]
    finite = [candidate for candidate in candidates if candidate.due < NEVER]
    if not finite:
        return None
    found = min(finite, key=lambda candidate: (candidate.decision.rank, candidate.paused, candidate.due))
    ways = tuple((each.due, each.decision) for each in finite if each.decision.rank == 0 and not each.paused)
    return replace(found, ways=ways)


def _deadline_for(taint: Taint, decision: Decision, pod: Pod, place: Place, now: float) -> Deadline:
    added = started(taint, place.memory, node_created=place.node.created, now=now)
    start = max(added, min(pod.bound, now))
    toleration = toleration_for(pod, taint, decision.policy)
    due = start + _seconds(toleration)
    if taint.key not in SIBLINGS or not place.pauses.spans:
        return Deadline(taint, toleration, start, due, decision=decision)
    due += place.pauses.lost(start, now)
    return Deadline(taint, toleration, start, due, place.pauses.paused, decision)


def _seconds(toleration: Toleration | None) -> float:
    if toleration is None:
        return 0.0
    return NEVER if toleration.seconds is None else max(0.0, toleration.seconds)
