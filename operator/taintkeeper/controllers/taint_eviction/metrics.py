"""What Prometheus sees of evictions. Labels are codes and states, never pods or nodes."""

import re
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from taintkeeper.core import messages as m
from taintkeeper.core.answers import Outcome
from taintkeeper.core.eviction_queue import EvictionQueue
from taintkeeper.core.eviction_states import State

PENDING = (State.COUNTING, State.READY, State.POSTED, State.BLOCKED, State.PAUSING, State.STANDING)
WEBHOOK = re.compile(r'(?:failed calling|admission) webhook "(?P<name>[^"]{1,253})"')
"""How the API server names a webhook, which only its text does; for the label of a metric, no decision rests on it."""
LATENESS_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
UPSTREAM_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class EvictionMetrics:
    """Counts what the engine's effects tell, and reads the rest from its queue when Prometheus asks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._requests = Counter(
            "taintkeeper_eviction_requests",
            "Calls of the Eviction API, by HTTP status code (0: no answer) and what the answer means.",
            ["code", "outcome"],
            registry=registry,
        )
        self._deletions = Counter(
            "taintkeeper_pod_deletions",
            "Pods that were deleted without asking their budgets, since their policy says so, by HTTP status code.",
            ["code", "outcome"],
            registry=registry,
        )
        self._escalations = Counter(
            "taintkeeper_evictions_escalated",
            "Pods that were deleted since disruption budgets had held them for longer than their policy allows.",
            registry=registry,
        )
        self._by_policy = Counter(
            "taintkeeper_policy_evictions",
            "Pods that left by each policy, evicted or deleted, and those that would have left (dry-run).",
            ["policy", "how"],
            registry=registry,
        )
        self._webhooks = Counter(
            "taintkeeper_webhook_refusals",
            "Evictions that an admission webhook refused, or that failed since it is down, by its name.",
            ["webhook"],
            registry=registry,
        )
        self._lateness = Histogram(
            "taintkeeper_eviction_lateness_seconds",
            "Time from when an eviction was due to when the Eviction API accepted it.",
            buckets=LATENESS_BUCKETS,
            registry=registry,
        )
        self._readings = Counter(
            "taintkeeper_live_checks",
            "Times that a node and its pods were read before pods were evicted from it, by result.",
            ["result"],
            registry=registry,
        )
        self._cancelled = Counter(
            "taintkeeper_evictions_cancelled", "Evictions given up since the reason was gone.", registry=registry
        )
        self._skipped = Counter(
            "taintkeeper_pods_skipped",
            "Pods under a taint that they do not tolerate that are never evicted, by reason.",
            ["reason"],
            registry=registry,
        )
        self._upstream_total = Counter(
            "taint_eviction_controller_pod_deletions",
            "Total number of Pods deleted by TaintEvictionController since its start.",
            registry=registry,
        )
        self._upstream_duration = Histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the Pod "
            "and its deletion via TaintEvictionController.",
            buckets=UPSTREAM_BUCKETS,
            registry=registry,
        )

    def observe(self, queue: EvictionQueue, clock: Callable[[], float]) -> None:
        """Serve the numbers of this queue; ``clock`` tells seconds since the epoch."""
        self._registry.register(_QueueCollector(queue, clock))

    def count_reading(self, answer: m.NodeRead | m.NodeUnread) -> None:
        """Count how the reading of a node ended."""
        self._readings.labels("read" if isinstance(answer, m.NodeRead) else "failed").inc()

    def count(self, effect: m.EvictionEffect) -> None:
        """Count what an effect tells."""
        match effect:
            case m.Evicted(lateness=lateness, status=status, deleted=deleted, blocked_seconds=blocked):
                (self._deletions if deleted else self._requests).labels(str(status), Outcome.ACCEPTED.value).inc()
                self._by_policy.labels(effect.deadline.decision.policy.name, "deleted" if deleted else "evicted").inc()
                self._escalations.inc(blocked is not None)
                self._lateness.observe(lateness)
                self._upstream_total.inc()
                self._upstream_duration.observe(lateness)
            case m.FoundGone(answer=answer):
                self._requests.labels(str(answer.status), Outcome.GONE.value).inc()
            case m.EvictionFailed(outcome=outcome, answer=answer):
                self._requests.labels(str(answer.status), outcome.value).inc()
                if (webhook := WEBHOOK.search(answer.message)) is not None:
                    self._webhooks.labels(webhook["name"]).inc()
            case m.Rehearsed(deadline=deadline):
                self._by_policy.labels(deadline.decision.policy.name, "dry-run").inc()
            case m.Cancelled():
                self._cancelled.inc()
            case m.Skipped(reason=reason):
                self._skipped.labels(reason).inc()
            case _:
                pass


class _QueueCollector(Collector):
    def __init__(self, queue: EvictionQueue, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily(
            "taintkeeper_pending_evictions",
            "Pods that will be evicted, by what they wait for.",
            labels=["reason"],
        )
        for state in PENDING:
            pending.add_metric([state.value], self._queue.tracks.counts[state])
        yield pending
        yield GaugeMetricFamily(
            "taintkeeper_terminating_pods",
            "Pods under a taint that they do not tolerate that are terminating and not gone yet.",
            self._queue.tracks.counts[State.LEAVING],
        )
        yield GaugeMetricFamily(
            "taintkeeper_terminating_oldest_seconds",
            "For how long the pod is overdue that should have been gone first, its grace period over.",
            self._queue.oldest_terminating(self._clock()),
        )
        yield GaugeMetricFamily(
            "taintkeeper_blocked_oldest_seconds",
            "For how long disruption budgets have held the pod that they have held longest.",
            self._queue.oldest_blocked(self._clock()),
        )
        yield GaugeMetricFamily(
            "taintkeeper_misconfigured_budgets",
            "Disruption budgets that can never allow an eviction, since they want all of their pods healthy.",
            self._queue.misconfigured_budgets(),
        )
        yield GaugeMetricFamily(
            "taintkeeper_eviction_concurrency_limit",
            "Evictions that may be under way at once; falls when the API server asks to slow down.",
            self._queue.limit,
        )
