"""In which order pods that are due at the same time leave."""

from taintkeeper.core.objects import Pod

Urgency = tuple[bool, bool, int, float]
"""Sorts pods: the first to leave is the smallest."""

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})


def urgency(pod: Pod, due: float, *, own: tuple[str, str] | None) -> Urgency:
    """Return the sort key of a pod that is due at ``due``, in seconds since the epoch.

    Lowest priority first, the ``system-*-critical`` classes after all others, then the most overdue. ``own`` is
    namespace and name of the pod that this process runs in: it leaves last, or nobody would be left to evict.
    """
    return (pod.ref.namespace, pod.ref.name) == own, pod.critical, pod.priority, due
