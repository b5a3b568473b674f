"""What people read of evictions: events on pods, and log lines."""

import logging
from collections.abc import Callable

from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.core import messages as m
from taintkeeper.core.answers import Outcome
from taintkeeper.core.budgets import Budget
from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.objects import OUT_OF_SERVICE, PodRef

logger = logging.getLogger("taintkeeper.taint-eviction")

EVICTION = "TaintManagerEviction"
BLOCKED = "EvictionBlocked"
FAILED = "EvictionFailed"
PAUSED = "EvictionPaused"
ESCALATED = "EvictionEscalated"
SKIPPED = "EvictionSkipped"
STUCK = "PodStuckTerminating"
ISSUED = "EvictionsIssued"
MISCONFIGURED = "BudgetMisconfigured"


class EvictionReports:
    """Tells of effects: each to the log, those that concern a pod's owner as an event too."""

    def __init__(self, send: Callable[[Notice], None]) -> None:
        self._send = send

    def tell(self, effect: m.EvictionEffect) -> None:
        """Report an effect that has come true; those that are still to be carried out say nothing."""
        match effect:
            case m.Evicted():
                self._evicted(effect)
            case m.EvictionFailed():
                self._failed(effect)
            case m.FoundGone(pod, answer):
                logger.info("pod %s is gone already: %s", pod, answer.message or answer.status)
            case m.Held(pod, budgets, hints):
                self._blocked(pod, budgets, hints)
            case m.BudgetMisconfigured(budget, why):
                self._misconfigured(budget, why)
            case m.Paused():
                self._paused(effect)
            case m.Cancelled(pod, deadline):
                logger.info("pod %s stays: its eviction because of taint %s is cancelled", pod, deadline.taint)
                self._send(Notice(_subject(pod), "Normal", EVICTION, f"Cancelling deletion of Pod {pod}"))
            case m.Stuck():
                self._stuck(effect)
            case m.Vacated():
                self._vacated(effect)
            case m.Rehearsed(pod, node, deadline):
                logger.info("pod %s on node %s would be evicted now: %s; %s", pod, node, deadline, deadline.decision)
            case m.Skipped():
                self._skipped(effect)
            case _:
                pass

    def _evicted(self, effect: m.Evicted) -> None:
        logger.info(
            "pod %s on node %s %s, %.3f s after it was due: %s; %s",
            effect.pod,
            effect.node,
            "deleted" if effect.deleted else "evicted",
            effect.lateness,
            effect.deadline,
            effect.deadline.decision,
        )
        self._send(Notice(_subject(effect.pod), "Normal", EVICTION, f"Marking for deletion Pod {effect.pod}"))
        if effect.blocked_seconds is not None:
            self._escalated(effect.pod, effect.deadline, effect.blocked_seconds)

    def _escalated(self, pod: PodRef, deadline: Deadline, seconds: float) -> None:
        policy = deadline.decision.policy.name
        message = f"Deleted pod {pod}, which disruption budgets had held for {seconds:.0f} s, by policy {policy}"
        self._send(Notice(_subject(pod), "Warning", ESCALATED, message))

    def _skipped(self, effect: m.Skipped) -> None:
        pod, decision = effect.pod, effect.deadline.decision
        if effect.reason != decision.exempt:
            logger.debug("pod %s is not evicted: %s", pod, effect.reason)
            return
        message = f"Pod {pod} is not evicted because of taint {effect.deadline.taint}: {decision}"
        logger.info("%s", message)
        self._send(Notice(_subject(pod), "Normal", SKIPPED, message))

    def _stuck(self, effect: m.Stuck) -> None:
        pod, node = effect.pod, effect.node
        logger.warning("pod %s on node %s should have been gone %.0f s ago", pod, node, effect.seconds)
        message = (
            f"Pod {pod} is still terminating, {effect.seconds:.0f} s after its grace period. It is never deleted by "
            f"force here: if node {node} is off for good, taint it {OUT_OF_SERVICE}=nodeshutdown:NoExecute, and its "
            "pods are"
        )
        self._send(Notice(_subject(pod), "Warning", STUCK, message, key=node))

    def _vacated(self, effect: m.Vacated) -> None:
        node = effect.node
        message = f"Every pod that has to leave node {node.name} was told to; still terminating: {effect.terminating}"
        logger.info("%s", message)
        self._send(Notice(Subject("Node", node.name, node.uid), "Normal", ISSUED, message))

    def _failed(self, effect: m.EvictionFailed) -> None:
        if effect.outcome is Outcome.BUDGET:
            self._blocked(effect.pod, effect.budgets, effect.hints)
            return
        if effect.answer.status == 409:
            # It will be gone, or another try will do; nobody has to know.
            logger.debug("pod %s: %s, next try in %.0f s", effect.pod, effect.answer.message, effect.retry_in)
            return
        why = effect.answer.message or ("an answer without a message" if effect.answer.status else "no answer")
        logger.warning(
            "pod %s cannot be evicted (%s, status %d), next try in %.0f s: %s",
            effect.pod,
            effect.outcome,
            effect.answer.status,
            effect.retry_in,
            why,
        )
        if effect.outcome is Outcome.SEVERAL_BUDGETS:
            why = f"the Eviction API supports one disruption budget a pod, this one has {', '.join(effect.budgets)}"
        if effect.outcome is not Outcome.THROTTLED:
            key = " ".join((effect.outcome, *effect.budgets))
            message = f"Cannot evict pod {effect.pod}: {why}"
            self._send(Notice(_subject(effect.pod), "Warning", FAILED, message, key))

    def _paused(self, effect: m.Paused) -> None:
        pod, taint = effect.pod, effect.deadline.taint
        logger.info("pod %s on node %s waits: too much of the node's zone has failed at once", pod, effect.node)
        message = f"Eviction of pod {pod} because of taint {taint} is paused while most of its node's zone is not ready"
        self._send(Notice(_subject(pod), "Normal", PAUSED, message))

    def _misconfigured(self, budget: Budget, why: str) -> None:
        name = f"{budget.namespace}/{budget.name}"
        logger.warning("disruption budget %s holds pods that have to leave: %s", name, why)
        subject = Subject("PodDisruptionBudget", budget.name, budget.uid, budget.namespace, "policy/v1")
        self._send(Notice(subject, "Warning", MISCONFIGURED, f"Pods have to leave, but are held: {why}"))

    def _blocked(self, pod: PodRef, budgets: tuple[str, ...], hints: tuple[str, ...]) -> None:
        names = ", ".join(f"{pod.namespace}/{budget}" for budget in budgets) or "unknown"
        logger.info("pod %s is held by disruption budget %s", pod, names)
        why = "".join(f"; {hint}" for hint in hints)
        message = f"Eviction of pod {pod} is blocked by disruption budget {names}{why}"
        self._send(Notice(_subject(pod), "Warning", BLOCKED, message, key=names))


def _subject(pod: PodRef) -> Subject:
    return Subject("Pod", pod.name, pod.uid, pod.namespace)
