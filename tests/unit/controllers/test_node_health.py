"""The node-health controller: what it reads and writes, and when, and what it says of it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_writer import DryCustomWriter
from taintkeeper.cluster.events import Notice
from taintkeeper.cluster.status_writer import Conditions
from taintkeeper.cluster.writer import ApiWriter
from taintkeeper.controllers.node_health import NodeHealth
from taintkeeper.controllers.node_health.controller import CONCURRENT_LABELS, PERMISSIONS
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core import health_messages as h
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.messages import Knowledge, NodeSeen, NodeWritten, PodSeen, WriteResult
from taintkeeper.core.objects import Condition, Node, Pod
from tests.unit.cluster.scripted_api import ScriptedApi
from tests.unit.core.builders import node, pod

pytestmark = pytest.mark.looptime

FRESH = Knowledge(fresh=True)
STABLE = {"kubernetes.io/os": "linux"}
DONE = WriteResult.DONE


@dataclass
class ScriptedWriter:
    """Writes and reads after a while; results by functions of what is asked for."""

    reads: Callable[[str], h.ReadResult] = lambda _: h.ReadResult.MISSING
    status: Callable[[Node], WriteResult] = lambda _: DONE
    mark: Callable[[Pod], h.PodResult] = lambda _: h.PodResult.DONE
    seconds: float = 0.01
    journal: list[str] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    async def _take_time(self, what: str) -> None:
        self.journal.append(what)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(self.seconds)
        self.under_way -= 1

    async def read_lease(self, name: str) -> h.LeaseRead:
        await self._take_time(f"read {name}")
        result = self.reads(name)
        return h.LeaseRead(name, result, "renewed" if result is h.ReadResult.FOUND else "", f"it was {result}")

    async def write_unknown(self, node: Node, conditions: Conditions) -> NodeWritten:
        await self._take_time(f"declare {node.name}")
        result = self.status(node)
        if result is not DONE:
            return NodeWritten(node.name, result, detail=f"it was {result}")
        unknown = tuple(Condition(each.type, "Unknown") for each in conditions)
        version = str(int(node.resource_version) + 1)
        return NodeWritten(node.name, result, replace(node, conditions=unknown, resource_version=version))

    async def write_labels(self, node: Node, labels: Mapping[str, str]) -> NodeWritten:
        await self._take_time(f"label {node.name}")
        result = self.status(node)
        after = replace(node, labels={**node.labels, **labels}) if result is DONE else None
        return NodeWritten(node.name, result, after, f"it was {result}")

    async def mark_pod(self, pod: Pod, at: float) -> h.PodWritten:
        await self._take_time(f"mark {pod.ref.name}")
        result = self.mark(pod)
        return h.PodWritten(pod.ref.uid, result, f"it was {result}")

    def as_seen(self, node: Node) -> Node:
        return node


class Bench:
    """The controller, what it did and what it reported, in one journal."""

    def __init__(self, writer: ScriptedWriter | None = None, options: HealthOptions | None = None) -> None:
        self.writer = writer or ScriptedWriter()
        self.registry = CollectorRegistry()
        self.crashes: list[BaseException] = []
        self.notices: list[Notice] = []
        around = Surroundings(
            writer=ApiWriter(ScriptedApi()),
            custom_writer=DryCustomWriter(),
            send=self._send,
            registry=self.registry,
            clock=SteadyClock(),
            random=Random(0),
            crashed=self.crashes.append,
            stalled=lambda _: None,
        )
        self.controller = NodeHealth(options or HealthOptions(), around, self.writer, self.writer.read_lease)

    def _send(self, notice: Notice) -> None:
        self.notices.append(notice)
        self.writer.journal.append(f"{notice.reason} {notice.subject.name}")

    def feed(self, *events: h.HealthInput) -> None:
        for event in events:
            self.controller.feed(event)

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"taintkeeper_node_health_{name}", labels) or 0.0


def healthy(name: str = "n1", **facts: object) -> NodeSeen:
    return NodeSeen(node(name, conditions={"Ready": "True"}, **facts))


@pytest.mark.reported("kubernetes/kubernetes#19562")
async def test_a_silent_node_is_read_declared_and_told_once_and_its_pods_are_marked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "taintkeeper.node-health")
    bench = Bench()
    bench.feed(healthy(), PodSeen(pod("p1")), FRESH)
    await asyncio.sleep(49.9)
    assert bench.writer.journal == []
    await asyncio.sleep(3600.0)
    assert bench.writer.journal == ["read n1", "declare n1", "NodeNotReady n1", "mark p1", "NodeNotReady p1"]
    assert [(each.subject.kind, each.type, each.reason, each.message) for each in bench.notices] == [
        ("Node", "Normal", "NodeNotReady", "Node n1 status is now: NodeNotReady"),
        ("Pod", "Warning", "NodeNotReady", "Node is not ready"),
    ]
    assert (bench.notices[0].subject.uid, bench.notices[1].subject.namespace) == ("n1-uid", "default")
    assert bench.metric("declared_unknown_total") == 1.0
    assert bench.metric("lease_reads_total", result="missing") == 1.0
    assert bench.metric("transitions_total", status="Unknown") == 1.0
    assert bench.metric("pod_marks_total", result="done") == 1.0
    assert {status: bench.metric("nodes", status=status) for status in ("True", "Unknown")} == {
        "True": 0.0,
        "Unknown": 1.0,
    }
    assert [record.getMessage() for record in caplog.records if record.name == "taintkeeper.node-health"] == [
        "node n1: Ready went from True to Unknown",
        "node n1 declared Unknown: no sign of life for 50 s",
        "pod default/p1 marked as not ready, since node n1 is not",
    ]


async def test_a_node_whose_other_conditions_follow_is_not_counted_again() -> None:
    bench = Bench()
    bench.feed(NodeSeen(node("n1", conditions={"Ready": "Unknown", "DiskPressure": "True"})), FRESH)
    await asyncio.sleep(60.0)
    assert bench.writer.journal == ["read n1", "declare n1"]
    assert bench.metric("declared_unknown_total") == 0.0


async def test_a_node_that_was_not_ready_before_is_declared_without_an_event() -> None:
    bench = Bench()
    bench.feed(NodeSeen(node("n1", conditions={"Ready": "False"})), FRESH)
    await asyncio.sleep(60.0)
    assert bench.writer.journal == ["read n1", "declare n1"]


async def test_a_node_whose_lease_goes_on_is_left_alone() -> None:
    bench = Bench()
    bench.feed(healthy(), FRESH)
    for turn in range(30):
        await asyncio.sleep(10.0)
        bench.feed(h.LeaseSeen("n1", str(turn)))
    assert bench.writer.journal == []


async def test_a_lease_that_was_renewed_unseen_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "taintkeeper")
    bench = Bench(ScriptedWriter(reads=lambda _: h.ReadResult.FOUND))
    bench.feed(healthy(), FRESH)
    await asyncio.sleep(60.0)
    assert bench.writer.journal == ["read n1"]
    assert bench.metric("found_alive_total") == bench.metric("lease_reads_total", result="found") == 1.0
    assert "node n1 lives: its Lease was renewed, though the watch did not show it" in caplog.messages


async def test_a_lease_that_cannot_be_read_is_told_and_nobody_is_declared(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(ScriptedWriter(reads=lambda _: h.ReadResult.FAILED))
    bench.feed(healthy(), FRESH)
    await asyncio.sleep(3600.0)
    assert set(bench.writer.journal) == {"read n1"}
    assert bench.metric("lease_reads_total", result="failed") == len(bench.writer.journal)
    assert "the Lease of node n1 could not be read" in caplog.messages[0]


@pytest.mark.parametrize("result", [WriteResult.FAILED, WriteResult.CONFLICT])
async def test_writes_to_nodes_that_fail_are_counted_and_told(
    result: WriteResult, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "taintkeeper")
    bench = Bench(ScriptedWriter(status=lambda _: result))
    bench.feed(healthy(labels=STABLE), FRESH)
    await asyncio.sleep(60.0)
    for what in ("labels", "conditions"):
        assert bench.metric("write_failures_total", write=what, result=result.value) >= 2.0
        (level,) = {r.levelname for r in caplog.records if r.getMessage().startswith(f"{what} of node n1 could not")}
        assert level == ("WARNING" if result is WriteResult.FAILED else "DEBUG")
    assert bench.notices == []


@pytest.mark.parametrize("result", [each for each in h.PodResult if each is not h.PodResult.DONE])
async def test_marks_that_fail_are_counted_and_no_event_says_otherwise(
    result: h.PodResult, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "taintkeeper")
    bench = Bench(ScriptedWriter(mark=lambda _: result))
    bench.feed(NodeSeen(node("n1", conditions={"Ready": "False"})), PodSeen(pod("p1")), FRESH)
    await asyncio.sleep(1.0)
    assert bench.metric("pod_marks_total", result=result.value) >= 1.0
    assert bench.metric("pods_waiting") == (1.0 if result is h.PodResult.THROTTLED else 0.0)
    assert bench.notices == []
    levels = {r.levelname for r in caplog.records if r.name == "taintkeeper.node-health"}
    assert levels == {"WARNING" if result is h.PodResult.FAILED else "DEBUG"}


@pytest.mark.upstream("TestNodeEventGeneration")
async def test_a_new_node_is_told_as_upstream_does() -> None:
    bench = Bench()
    bench.feed(FRESH, healthy(), healthy())
    ((subject, *words),) = [(each.subject, each.type, each.reason, each.message) for each in bench.notices]
    assert words == ["Normal", "RegisteredNode", "Node n1 event: Registered Node n1 in Controller"]
    assert (subject.kind, subject.name, subject.uid) == ("Node", "n1", "n1-uid")


async def test_in_a_new_cluster_only_so_many_nodes_are_labelled_at_once() -> None:
    bench = Bench()
    bench.feed(*(healthy(f"n{number}", labels=STABLE) for number in range(100)), FRESH)
    await asyncio.sleep(5.0)
    assert bench.writer.most_under_way == CONCURRENT_LABELS
    assert len(bench.writer.journal) == 100


@pytest.mark.reported("kubernetes/kubernetes#80172")
@pytest.mark.parametrize(("grace", "warned"), [(0.0, True), (10.0, True), (19.9, True), (20.0, False), (50.0, False)])
async def test_a_grace_period_too_short_for_kubelets_that_are_well_is_warned_of_and_obeyed(
    grace: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    options = HealthOptions()
    Bench(options=replace(options, patience=replace(options.patience, grace=grace)))
    told = [record.getMessage() for record in caplog.records if record.name == "taintkeeper.node-health"]
    assert [f"--node-monitor-grace-period is {grace:g} s" in line for line in told] == [True] * warned


async def test_a_writer_that_fails_in_a_way_of_its_own_is_a_fault_of_ours_and_ends_everything() -> None:
    def fail(_: str) -> h.ReadResult:
        raise ZeroDivisionError

    bench = Bench(ScriptedWriter(reads=fail))
    bench.feed(healthy(), FRESH)
    await asyncio.sleep(3600.0)
    assert [type(each) for each in bench.crashes] == [ZeroDivisionError]


async def test_after_stopping_nothing_is_written_and_nobody_is_waited_for_long() -> None:
    bench = Bench(ScriptedWriter(seconds=3600.0))
    bench.feed(healthy(), FRESH)
    await asyncio.sleep(51.0)
    await bench.controller.stop()
    assert asyncio.get_running_loop().time() == 53.0
    await asyncio.sleep(7200.0)
    assert bench.writer.journal == ["read n1"]


def test_it_asks_for_the_permissions_that_it_needs() -> None:
    assert sorted(map(str, PERMISSIONS)) == [
        "get leases.coordination.k8s.io",
        "list leases.coordination.k8s.io",
        "list nodes",
        "list pods",
        "patch nodes",
        "patch nodes/status",
        "patch pods/status",
        "watch leases.coordination.k8s.io",
        "watch nodes",
        "watch pods",
    ]
