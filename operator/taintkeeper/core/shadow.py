"""What the Eviction API would answer in a dry run, where nobody asks it.

A dry run evicts nothing, so no budget's status ever shows that a disruption has been used: with three allowed, all of
500 pods would seem to leave. So beside each budget stands how many of the pods that it counts as healthy are gone in
the dry run alone.

A pod counts as gone from when it was answered that it is evicted, for as long as it would be missed: until it is
deleted or terminating in truth, which the budget's own status shows then, or until its node is there without a taint
that evicts, since by then whoever owns the pod would have replaced it long ago.
"""

from collections import Counter
from dataclasses import dataclass

from taintkeeper.core import messages as m
from taintkeeper.core.answers import CAUSE_DISRUPTION_BUDGET, Answer
from taintkeeper.core.budgets import Budget, BudgetBook
from taintkeeper.core.objects import Pod, PodRef, Taint
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.policy_messages import PolicyGone, PolicyInput, PolicySeen

BudgetKey = tuple[str, str]
Seen = m.NodeSeen | m.NodeGone | m.PodSeen | m.PodGone | m.BudgetSeen | m.BudgetGone | PolicyInput | m.Knowledge

ACCEPTED = Answer(201)


@dataclass(slots=True)
class _Absence:
    """A pod that is gone in the dry run alone. ``counted`` says that its budget still counts it as healthy."""

    node: str
    budget: BudgetKey
    counted: bool = False


class ShadowBudgets:
    """Feed it with what is seen of nodes, pods, budgets and policies, and it answers evictions as the API server would.

    The order of its checks is that of ``EvictionREST.Create`` in kubernetes/kubernetes
    ``pkg/registry/core/pod/storage/eviction.go``. What a webhook or a terminating namespace would say, it cannot know.
    """

    def __init__(self) -> None:
        self._budgets = BudgetBook()
        self._policies = PolicyBook()
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._pods: dict[str, Pod] = {}
        self._absences: dict[str, _Absence] = {}
        self._absent_from: dict[str, set[str]] = {}
        self._missing: Counter[BudgetKey] = Counter()

    def feed(self, event: Seen) -> None:
        """Take in what was seen."""
        match event:
            case m.NodeSeen(node):
                self._taints[node.name] = node.taints
                self._look_at(node.name)
            case m.NodeGone(name):
                self._taints.pop(name, None)
                self._look_at(name)
            case m.PodSeen(pod):
                self._pod_seen(pod)
            case m.PodGone(uid):
                self._pods.pop(uid, None)
                self._return(uid)
            case m.BudgetSeen(budget):
                self._budgets.put(budget)
            case m.BudgetGone(namespace, name):
                self._budgets.drop(namespace, name)
            case PolicySeen():
                self._policies.put(event)
                self._look_at(*self._absent_from)
            case PolicyGone(name):
                self._policies.drop(name)
                self._look_at(*self._absent_from)
            case m.Knowledge():
                pass

    def evict(self, ref: PodRef) -> Answer:
        """Answer the eviction of a pod; where it is accepted, the pod counts as gone."""
        pod = self._pods.get(ref.uid)
        if pod is None:
            return Answer(404, "NotFound", message=f'pods "{ref.name}" not found')
        budgets = self._budgets.of(pod)
        if pod.deleting or not budgets or ref.uid in self._absences:
            return ACCEPTED
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return Answer(500, message=text)
        return self._ask(pod, budgets[0])

    def delete(self, ref: PodRef) -> Answer:
        """Answer the deletion of a pod, which asks no budget; the pod counts as gone."""
        pod = self._pods.get(ref.uid)
        if pod is None:
            return Answer(404, "NotFound", message=f'pods "{ref.name}" not found')
        budgets = self._budgets.of(pod)
        if len(budgets) == 1 and not pod.deleting and ref.uid not in self._absences:
            self._miss(pod, budgets[0])
        return Answer(200)

    def _ask(self, pod: Pod, budget: Budget) -> Answer:
        missing = self._missing[budget.key]
        if _lets_unready_go(budget, pod, missing) or budget.allowed > missing:
            self._miss(pod, budget)
            return ACCEPTED
        return _over_budget(budget, budget.healthy - missing)

    def _miss(self, pod: Pod, budget: Budget) -> None:
        self._absences[pod.ref.uid] = _Absence(pod.node, budget.key)
        self._absent_from.setdefault(pod.node, set()).add(pod.ref.uid)
        self._recount(pod)

    def _pod_seen(self, pod: Pod) -> None:
        self._pods[pod.ref.uid] = pod
        if pod.deleting:
            self._return(pod.ref.uid)
        else:
            self._recount(pod)

    def _recount(self, pod: Pod) -> None:
        """Follow a pod that is gone in the dry run alone: its budget counts it only while it is ready."""
        absence = self._absences.get(pod.ref.uid)
        if absence is not None and absence.counted is not pod.ready:
            absence.counted = pod.ready
            self._missing[absence.budget] += 1 if pod.ready else -1

    def _look_at(self, *nodes: str) -> None:
        """Have the pods of nodes without a taint that evicts count as replaced."""
        for node in nodes:
            if not any(self._policies.acts(taint) for taint in self._taints.get(node, ())):
                for uid in tuple(self._absent_from.get(node, ())):
                    self._return(uid)

    def _return(self, uid: str) -> None:
        absence = self._absences.pop(uid, None)
        if absence is None:
            return
        self._missing[absence.budget] -= absence.counted
        if not self._missing[absence.budget]:
            del self._missing[absence.budget]
        absent = self._absent_from[absence.node]
        absent.discard(uid)
        if not absent:
            del self._absent_from[absence.node]


def _lets_unready_go(budget: Budget, pod: Pod, missing: int) -> bool:
    return not pod.ready and (budget.always_allow or budget.healthy - missing >= budget.desired > 0)


def _over_budget(budget: Budget, healthy: int) -> Answer:
    if healthy <= budget.desired:
        why = f"The disruption budget {budget.name} needs {budget.desired} healthy pods and has {healthy} currently"
    else:
        why = f"The disruption budget {budget.name} does not allow evicting pods currently"
    text = f"Cannot evict pod as it would violate the pod's disruption budget. {why}"
    return Answer(429, "TooManyRequests", frozenset({CAUSE_DISRUPTION_BUDGET}), text)
