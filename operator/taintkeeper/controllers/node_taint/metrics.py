"""What Prometheus sees of taints and zones. Labels are taint keys and zones, never nodes."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from taintkeeper.core import messages as m
from taintkeeper.core import taint_messages as t
from taintkeeper.core.conditions import EXECUTE_KEYS
from taintkeeper.core.objects import NO_EXECUTE
from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import ZoneState


class TaintMetrics:
    """Counts what the engine's effects tell, and reads the rest from its zones when Prometheus asks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._added = Counter(
            "taintkeeper_taints_added", "Taints added to nodes.", ["key", "effect"], registry=registry
        )
        self._removed = Counter(
            "taintkeeper_taints_removed", "Taints removed from nodes.", ["key", "effect"], registry=registry
        )
        self._failures = Counter(
            "taintkeeper_taint_write_failures",
            "Writes of taints that did not succeed and are tried again, by result.",
            ["result"],
            registry=registry,
        )
        self._contests = Counter(
            "taintkeeper_taint_contests",
            "Taints about which somebody else is of another opinion, so that they are written less and less often.",
            ["key", "effect"],
            registry=registry,
        )
        self._flaps = Counter(
            "taintkeeper_node_flaps", "How often a node became ready, or was ready no longer.", registry=registry
        )
        self._upstream_evictions = Counter(
            "node_collector_evictions",
            "Number of Node evictions that happened since current instance of NodeController started.",
            ["zone"],
            registry=registry,
        )

    def observe(self, book: ZoneBook) -> None:
        """Serve the numbers of these zones."""
        self._registry.register(_ZoneCollector(book))

    def count(self, effect: t.TaintsChanged) -> None:
        """Count the taints that were written."""
        for taint in effect.change.added:
            self._added.labels(taint.key, taint.effect).inc()
            if taint.effect == NO_EXECUTE and taint.key in EXECUTE_KEYS:
                self._upstream_evictions.labels(effect.node.zone).inc()
        for taint in effect.change.removed:
            self._removed.labels(taint.key, taint.effect).inc()

    def count_failure(self, result: m.WriteResult) -> None:
        """Count a write that did not succeed."""
        self._failures.labels(result.value).inc()

    def count_contest(self, effect: t.TaintContested) -> None:
        """Count a taint that became contested."""
        self._contests.labels(*effect.taint).inc()

    def count_flap(self) -> None:
        """Count a node whose readiness changed."""
        self._flaps.inc()


class _ZoneCollector(Collector):
    def __init__(self, book: ZoneBook) -> None:
        self._book = book

    def collect(self) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "taintkeeper_zone_state", "1 for the state that a zone is in, 0 for the others.", labels=["zone", "state"]
        )
        rate = GaugeMetricFamily(
            "taintkeeper_zone_rate", "Nodes per second that may be tainted NoExecute in a zone.", labels=["zone"]
        )
        waiting = GaugeMetricFamily(
            "taintkeeper_zone_queue_length", "Nodes of a zone that wait to be tainted NoExecute.", labels=["zone"]
        )
        health = GaugeMetricFamily(
            "node_collector_zone_health", "Gauge measuring percentage of healthy nodes per zone.", labels=["zone"]
        )
        size = GaugeMetricFamily(
            "node_collector_zone_size", "Gauge measuring number of registered Nodes per zones.", labels=["zone"]
        )
        unhealthy = GaugeMetricFamily(
            "node_collector_unhealthy_nodes_in_zone",
            "Gauge measuring number of not Ready Nodes per zones.",
            labels=["zone"],
        )
        evicting = GaugeMetricFamily(
            "taintkeeper_evicting_nodes",
            "Nodes that are tainted NoExecute as not-ready, as unreachable or by a rule, or are about to be.",
            self._book.evicting,
        )
        limit = GaugeMetricFamily(
            "taintkeeper_evicting_nodes_limit",
            "How many of them there may be at once; infinite where no limit is set.",
            self._book.most_evicting,
        )
        for zone in self._book.zones():
            for each in ZoneState:
                state.add_metric([zone.name, each.value], float(each is zone.state))
            rate.add_metric([zone.name], zone.queue.bucket.rate)
            waiting.add_metric([zone.name], len(zone.queue))
            health.add_metric([zone.name], 100.0 * zone.ready / zone.size if zone.size else 100.0)
            size.add_metric([zone.name], zone.size)
            unhealthy.add_metric([zone.name], zone.not_ready)
        yield from (state, rate, waiting, evicting, limit, health, size, unhealthy)
