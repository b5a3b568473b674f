"""What Prometheus sees of the health of nodes. Labels are statuses and results, never nodes or pods."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from taintkeeper.core import health_messages as h
from taintkeeper.core.health_engine import UNREPORTED, HealthEngine
from taintkeeper.core.messages import WriteResult

STATUSES = ("True", "False", "Unknown", UNREPORTED)


class HealthMetrics:
    """Counts what the engine's effects tell, and reads the rest from the engine when Prometheus asks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._declared = Counter(
            "taintkeeper_node_health_declared_unknown",
            "Nodes declared Unknown, since they had shown no sign of life for the grace period.",
            registry=registry,
        )
        self._transitions = Counter(
            "taintkeeper_node_health_transitions",
            "Times that the Ready condition of a node went to this status from another one: how much nodes flap.",
            ["status"],
            registry=registry,
        )
        self._reads = Counter(
            "taintkeeper_node_health_lease_reads",
            "Leases read from the API server before their nodes would be declared Unknown, by result.",
            ["result"],
            registry=registry,
        )
        self._alive = Counter(
            "taintkeeper_node_health_found_alive",
            "Nodes whose Lease, when read, turned out to have been renewed: the watch was silent, not the node.",
            registry=registry,
        )
        self._marks = Counter(
            "taintkeeper_node_health_pod_marks",
            "Writes that mark a pod as not ready since its node is not, by result.",
            ["result"],
            registry=registry,
        )
        self._failures = Counter(
            "taintkeeper_node_health_write_failures",
            "Writes of conditions or labels of nodes that did not succeed and are tried again, by result.",
            ["write", "result"],
            registry=registry,
        )

    def observe(self, engine: HealthEngine) -> None:
        """Serve the numbers of this engine."""
        self._registry.register(_NodeCollector(engine))

    def count(self, effect: h.HealthEffect) -> None:
        """Count what an effect tells."""
        match effect:
            case h.DeclaredUnknown(transition=True):
                self._declared.inc()
            case h.ReadyChanged(after=after):
                self._transitions.labels(after).inc()
            case h.FoundAlive():
                self._alive.inc()
            case _:
                pass

    def count_read(self, result: h.ReadResult) -> None:
        """Count a live read of a Lease."""
        self._reads.labels(result.value).inc()

    def count_mark(self, result: h.PodResult) -> None:
        """Count a write of a pod's status."""
        self._marks.labels(result.value).inc()

    def count_failure(self, write: str, result: WriteResult) -> None:
        """Count a write to a node that did not succeed."""
        self._failures.labels(write, result.value).inc()


class _NodeCollector(Collector):
    def __init__(self, engine: HealthEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        nodes = GaugeMetricFamily(
            "taintkeeper_node_health_nodes",
            f"Nodes by the status of their Ready condition; {UNREPORTED} where there is none.",
            labels=["status"],
        )
        for status in STATUSES:
            nodes.add_metric([status], self._engine.statuses[status])
        yield nodes
        yield GaugeMetricFamily(
            "taintkeeper_node_health_pods_waiting",
            "Pods that are to be marked as not ready and are not yet.",
            self._engine.pods.waiting,
        )
