"""Nodes that shut down in order: the kubelet ends their pods itself, and is given the time for it.

A kubelet that was told of a shutdown reports Ready=False at once, and then ends the pods by their priority
(KEP-2000, kubernetes/kubernetes ``pkg/kubelet/nodeshutdown``). NoExecute in the midst of that would evict them out of
that order (kubernetes/kubernetes#124448).
"""

import math

from taintkeeper.core.first_seen import NOT_READY
from taintkeeper.core.objects import NO_SCHEDULE, Node

SHUTTING_DOWN = "node is shutting down"
"""What the message of such a node's Ready condition says, alone or among other faults (``ReadyCondition`` in
kubernetes/kubernetes ``pkg/kubelet/nodestatus/setters.go``)."""


def left_alone_until(node: Node, grace_seconds: float, now: float) -> float:
    """Return until when the node gets no NoExecute because it is shutting down, in seconds since the epoch.

    That is ``grace_seconds`` after its not-ready taint with NoSchedule was added, so that a restart of ours does not
    prolong it, and after ``now`` while that one is still missing. Minus infinity for a node that is not shutting down,
    and where that taint has no time that could be true: it is not ours, and must not spare the node for ever.
    """
    if not node.shutting_down or grace_seconds <= 0:
        return -math.inf
    taint = next((each for each in node.taints if (each.key, each.effect) == (NOT_READY, NO_SCHEDULE)), None)
    if taint is None:
        return now + grace_seconds
    if taint.time_added is None or taint.time_added > now + grace_seconds:
        return -math.inf
    return taint.time_added + grace_seconds
