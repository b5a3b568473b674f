"""What Prometheus sees, as a whole."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from random import Random

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_writer import DryCustomWriter
from taintkeeper.cluster.dry_writer import DryWriter
from taintkeeper.cluster.status_writer import DryStatusWriter
from taintkeeper.controllers.node_health import NodeHealth
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.controllers.taint_eviction import TaintEviction
from taintkeeper.core.answers import Outcome
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.health_messages import (
    DeclaredUnknown,
    FoundAlive,
    LeaseRead,
    PodResult,
    ReadResult,
    ReadyChanged,
)
from taintkeeper.core.messages import (
    BudgetSeen,
    Cancelled,
    Evicted,
    EvictionFailed,
    Knowledge,
    NodeSeen,
    NodeUnread,
    PodSeen,
    Skipped,
    WriteResult,
)
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.metrics import RuntimeMetrics
from tests.unit.core.builders import FORBIDDEN, budget, lasting, no_execute, node, pod

NAMES_OF_THINGS = {"pod", "node", "name", "namespace", "uid"}

pytestmark = pytest.mark.looptime


async def unreadable(name: str) -> NodeUnread:
    """Read no node."""
    return NodeUnread(name, "no answer")


async def unreadable_lease(name: str) -> LeaseRead:
    """Read no Lease."""
    return LeaseRead(name, ReadResult.FAILED)


def count_health(health: NodeHealth) -> None:
    """Have the controller of node health count something of every kind."""
    down = node("n1", conditions={"Ready": "False"})
    for effect in (DeclaredUnknown(down, 50.0), FoundAlive("n1"), ReadyChanged(down, "True", "False")):
        health._metrics.count(effect)
    health._metrics.count_read(ReadResult.FOUND)
    health._metrics.count_mark(PodResult.DONE)
    health._metrics.count_failure("labels", WriteResult.FAILED)


def everything() -> CollectorRegistry:
    """Return the registry of an operator that has seen something of every kind."""
    metrics = RuntimeMetrics(dry_run=False)
    metrics.request("create", "pods/eviction", 201, 0.01)
    metrics.request("list", "nodes", 0, 30.0)
    metrics.watch_failed("pods")
    metrics.event_dropped()
    metrics.observe_knowledge(lambda: {"nodes": 0.0, "pods": float("-inf")}, lambda: {"pods": 1}, lambda: True)
    writer = DryWriter(lambda _: None)
    around = Surroundings(
        writer=writer,
        custom_writer=DryCustomWriter(),
        send=print,
        registry=metrics.registry,
        clock=SteadyClock(),
        random=Random(0),
        crashed=print,
        stalled=print,
    )
    eviction = TaintEviction(EvictionOptions(), around, unreadable)
    taint = NodeTaint(TaintOptions(), around)
    count_health(NodeHealth(HealthOptions(), around, DryStatusWriter(print), unreadable_lease))
    down = node("n1", no_execute("foo"), conditions={"Ready": "Unknown"}, zone="z1")
    for event in (NodeSeen(down), NodeSeen(node("n2", conditions={"Ready": "True"}, zone="z1")), Knowledge(fresh=True)):
        writer.feed(event)
        taint.feed(event)
        eviction.feed(event)
    for each in (PodSeen(pod("p1", lasting("foo", 300))), PodSeen(pod("p2")), PodSeen(pod("p3", mirror=True))):
        eviction.feed(each)
    eviction.feed(BudgetSeen(budget("b1")))
    reference, deadline = pod("p4").ref, next(iter(eviction._engine.queue.tracks)).deadline
    for effect in (
        EvictionFailed(reference, Outcome.FORBIDDEN, FORBIDDEN, (), 1.0),
        Cancelled(reference, deadline),
        Skipped(reference, "mirror", deadline),
        Evicted(reference, "n1", deadline, 0.0, 201),
    ):
        eviction._metrics.count(effect)
    return metrics.registry


@pytest.fixture
async def families() -> list[Metric]:
    """All metrics of an operator at work."""
    registry = everything()
    for _ in range(10):
        await asyncio.sleep(0)  # what is under way takes no time
    return list(registry.collect())


def names(families: list[Metric]) -> Iterator[str]:
    for family in families:
        yield family.name if family.type != "counter" else f"{family.name}_total"


async def test_no_label_grows_with_the_cluster(families: list[Metric]) -> None:
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert labels == {
        *("verb", "resource", "code", "outcome", "reason", "result", "key", "effect", "zone", "state", "le", "version"),
        *("status", "write", "policy", "how"),
    }
    assert not labels & NAMES_OF_THINGS


async def test_own_names_begin_with_ours_and_upstreams_are_those_of_dashboards(families: list[Metric]) -> None:
    foreign = {name for name in names(families) if not name.startswith(("taintkeeper_", "process_"))}
    assert foreign == {
        "taint_eviction_controller_pod_deletions_total",
        "taint_eviction_controller_pod_deletion_duration_seconds",
        "node_collector_zone_health",
        "node_collector_zone_size",
        "node_collector_unhealthy_nodes_in_zone",
        "node_collector_evictions_total",
    }


async def test_all_that_an_administrator_needs_is_there(families: list[Metric]) -> None:
    assert {
        "taintkeeper_build_info",
        "taintkeeper_pending_evictions",
        "taintkeeper_blocked_oldest_seconds",
        "taintkeeper_terminating_pods",
        "taintkeeper_eviction_requests_total",
        "taintkeeper_eviction_lateness_seconds",
        "taintkeeper_eviction_concurrency_limit",
        "taintkeeper_evictions_cancelled_total",
        "taintkeeper_pods_skipped_total",
        "taintkeeper_taints_added_total",
        "taintkeeper_taints_removed_total",
        "taintkeeper_taint_write_failures_total",
        "taintkeeper_taint_contests_total",
        "taintkeeper_node_flaps_total",
        "taintkeeper_evicting_nodes",
        "taintkeeper_evicting_nodes_limit",
        "taintkeeper_node_health_nodes",
        "taintkeeper_node_health_declared_unknown_total",
        "taintkeeper_node_health_transitions_total",
        "taintkeeper_node_health_lease_reads_total",
        "taintkeeper_node_health_found_alive_total",
        "taintkeeper_node_health_pod_marks_total",
        "taintkeeper_node_health_pods_waiting",
        "taintkeeper_node_health_write_failures_total",
        "taintkeeper_zone_state",
        "taintkeeper_zone_rate",
        "taintkeeper_zone_queue_length",
        "taintkeeper_watch_age_seconds",
        "taintkeeper_watch_failures_total",
        "taintkeeper_knowledge_fresh",
        "taintkeeper_api_request_duration_seconds",
        "taintkeeper_events_dropped_total",
    } <= set(names(families))


async def test_every_metric_says_what_it_is_in_a_sentence(families: list[Metric]) -> None:
    for family in families:
        assert family.documentation.endswith("."), family.name


async def test_creation_times_are_left_out(families: list[Metric]) -> None:
    assert not [sample.name for family in families for sample in family.samples if sample.name.endswith("_created")]


@pytest.mark.reported("KEP-4563#6405")
async def test_prometheus_own_tool_has_nothing_to_say_against_our_names() -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not on the PATH")
    registry = everything()
    await asyncio.sleep(1.0)
    process = subprocess.run(  # noqa: ASYNC221, S603 - time is virtual, the tool is ours
        [tool, "check", "metrics"], input=generate_latest(registry), capture_output=True, check=False
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")


async def test_names_follow_prometheus_rules(families: list[Metric]) -> None:
    for family in families:
        name = family.name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert not re.search(r"_(milliseconds|minutes|hours|days|kilobytes|megabytes)$", name), name
        if family.type != "counter":
            assert not name.endswith(("_total", "_count", "_sum", "_bucket")), name


async def test_ages_of_watches_are_told_by_resource() -> None:
    metrics = RuntimeMetrics(dry_run=False)
    fresh = False
    metrics.observe_knowledge(lambda: {"nodes": 40.0, "pods": float("-inf")}, dict, lambda: fresh)
    await asyncio.sleep(100.0)
    age = "taintkeeper_watch_age_seconds"
    assert metrics.registry.get_sample_value(age, {"resource": "nodes"}) == pytest.approx(60.0)
    assert metrics.registry.get_sample_value(age, {"resource": "pods"}) == float("inf")
    assert metrics.registry.get_sample_value("taintkeeper_knowledge_fresh") == 0.0
    fresh = True
    assert metrics.registry.get_sample_value("taintkeeper_knowledge_fresh") == 1.0


async def test_requests_are_counted_by_what_they_did_and_how_they_ended() -> None:
    metrics = RuntimeMetrics(dry_run=False)
    metrics.request("create", "pods/eviction", 201, 0.25)
    metrics.request("create", "pods/eviction", 0, 30.0)
    name = "taintkeeper_api_request_duration_seconds"
    labels = {"verb": "create", "resource": "pods/eviction"}
    assert metrics.registry.get_sample_value(f"{name}_sum", {**labels, "code": "201"}) == 0.25
    assert metrics.registry.get_sample_value(f"{name}_count", {**labels, "code": "0"}) == 1.0


@pytest.mark.parametrize(("dry_run", "value"), [(False, 0.0), (True, 1.0)])
def test_a_dry_run_can_be_told_from_a_real_one(*, dry_run: bool, value: float) -> None:
    assert RuntimeMetrics(dry_run=dry_run).registry.get_sample_value("taintkeeper_dry_run") == value
