"""Which taints of a node act on a pod, by which policy, and how long the pod tolerates them.

Without policies only NoExecute acts (kubernetes/kubernetes ``pkg/controller/tainteviction/taint_eviction.go``). A
policy may have NoSchedule act as well, and may give pods a toleration that the admission plugin
DefaultTolerationSeconds would have given them.
"""

from collections.abc import Iterable

from taintkeeper.core.objects import NO_EXECUTE, Pod, Taint, Toleration
from taintkeeper.core.policies import Decision, Mode, Policy
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.tolerations import first_match


def acting(taints: Iterable[Taint], pod: Pod, book: PolicyBook) -> list[tuple[Taint, Decision]]:
    """Return the taints that may have the pod leave, each with what is decided about it.

    NoExecute is always among them, so that a pod which stays by policy alone can be told from one that tolerates.
    """
    decided = ((taint, book.decide(pod, taint, pod.traits)) for taint in taints)
    return [
        (taint, decision)
        for taint, decision in decided
        if taint.effect == NO_EXECUTE or decision.policy.mode is not Mode.IGNORE
    ]


def toleration_for(pod: Pod, taint: Taint, policy: Policy) -> Toleration | None:
    """Return the toleration that counts for this taint: the pod's own, else what the policy gives, or None.

    The policy gives one to pods that have none for the taint's key, whatever its value, as the admission plugin does
    (kubernetes/kubernetes ``plugin/pkg/admission/defaulttolerationseconds/admission.go``).
    """
    own = first_match(pod.tolerations, taint)
    seconds = policy.default_toleration_seconds
    if own is not None or seconds is None or any(_names(toleration, taint) for toleration in pod.tolerations):
        return own
    return Toleration(taint.key, "Exists", effect=taint.effect, seconds=int(seconds))


def deletes_at(ways: Iterable[tuple[float, Decision]], blocked_since: float | None) -> float | None:
    """Return when a pod that budgets have blocked since then is deleted, not evicted, None for never.

    One that they have not blocked, None, is deleted only where no budget is asked: however little patience a policy
    has, its pods are evicted first.

    ``ways`` are all taints that act on it: when each is due, and what is decided about it. So a node that becomes
    unreachable while a pod is blocked on it because of another taint does not block it for ever. All times are in
    seconds since the epoch.
    """
    times = []
    for due, decision in ways:
        if decision.rank > 0:
            continue
        if decision.policy.mode is Mode.DELETE:
            times.append(due)
        elif blocked_since is not None and (patience := decision.policy.patience) is not None:
            times.append(max(due, blocked_since) + patience)
    return min(times, default=None)


def _names(toleration: Toleration, taint: Taint) -> bool:
    return toleration.key == taint.key and toleration.effect in ("", taint.effect)
