"""What Prometheus sees of the process as a whole, in a registry of its own."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from taintkeeper import __version__

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class RuntimeMetrics:
    """Counts requests, watch failures and lost events."""

    def __init__(self, *, dry_run: bool) -> None:
        # Creation times double the number of series and tell nothing that the process's start time does not.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        info = Gauge("taintkeeper_build_info", "Always 1; the version is a label.", ["version"], registry=self.registry)
        info.labels(__version__).set(1)
        dry = Gauge(
            "taintkeeper_dry_run",
            "1 if nothing is written: then all other metrics count what would have been done.",
            registry=self.registry,
        )
        dry.set(float(dry_run))
        self._latency = Histogram(
            "taintkeeper_api_request_duration_seconds",
            "Time from sending a request to having read the answer.",
            ["verb", "resource", "code"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._watch_failures = Counter(
            "taintkeeper_watch_failures", "Lists and watches that failed.", ["resource"], registry=self.registry
        )
        self._stalls = Counter(
            "taintkeeper_stalls",
            "Times that the process stood still, or the machine slept, so that all had to be looked at again.",
            registry=self.registry,
        )
        self._dropped = Counter(
            "taintkeeper_events_dropped", "Kubernetes events that could not be sent.", registry=self.registry
        )

    def request(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count a request; status 0 where no answer came."""
        self._latency.labels(verb, resource, str(status)).observe(seconds)

    def watch_failed(self, resource: str) -> None:
        """Count a list or watch that failed."""
        self._watch_failures.labels(resource).inc()

    def stood_still(self) -> None:
        """Count a time during which the process did not run."""
        self._stalls.inc()

    def event_dropped(self) -> None:
        """Count an event that could not be sent."""
        self._dropped.inc()

    def observe_leadership(self, name: str, leads: Callable[[], bool]) -> None:
        """Serve whether we hold the Lease of this name; for those who have an election."""
        ours = Gauge("taintkeeper_leader", "1 while this process leads and may write.", registry=self.registry)
        theirs = Gauge(
            "leader_election_master_status",
            "The same under the name that client-go has for it.",
            ["name"],
            registry=self.registry,
        )
        for gauge in (ours, theirs.labels(name)):
            gauge.set_function(lambda: float(leads()))

    def observe_knowledge(
        self,
        last_heard: Callable[[], Mapping[str, float]],
        unreadable: Callable[[], Mapping[str, int]],
        fresh: Callable[[], bool],
    ) -> None:
        """Serve how good our knowledge is; ``last_heard`` is on the event loop's clock, by resource."""
        self.registry.register(_KnowledgeCollector(last_heard, unreadable, fresh))


class _KnowledgeCollector(Collector):
    def __init__(
        self,
        last_heard: Callable[[], Mapping[str, float]],
        unreadable: Callable[[], Mapping[str, int]],
        fresh: Callable[[], bool],
    ) -> None:
        self._last_heard = last_heard
        self._unreadable = unreadable
        self._fresh = fresh

    def describe(self) -> Iterator[Metric]:
        # Without this the registry would collect to find the names, before there is an event loop to ask for the time.
        yield GaugeMetricFamily("taintkeeper_watch_age_seconds", "")
        yield GaugeMetricFamily("taintkeeper_unreadable_objects", "")
        yield GaugeMetricFamily("taintkeeper_knowledge_fresh", "")

    def collect(self) -> Iterator[Metric]:
        now = asyncio.get_running_loop().time()
        age = GaugeMetricFamily(
            "taintkeeper_watch_age_seconds",
            "Time since the API server last told anything of a resource; +Inf before it did.",
            labels=["resource"],
        )
        for resource, heard in self._last_heard().items():
            age.add_metric([resource], now - heard)
        yield age
        unreadable = GaugeMetricFamily(
            "taintkeeper_unreadable_objects",
            "Objects that make no sense to this version and are passed over; the log names them.",
            labels=["resource"],
        )
        for resource, number in self._unreadable().items():
            unreadable.add_metric([resource], number)
        yield unreadable
        yield GaugeMetricFamily(
            "taintkeeper_knowledge_fresh",
            "1 while everything has been listed and no watch is known to be broken; otherwise no taint is added and "
            "nothing evicted.",
            float(self._fresh()),
        )
