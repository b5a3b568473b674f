"""The node-taint controller: what it writes to nodes, and when, and what it says of it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from taintkeeper.cluster.client import CONNECTIONS
from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_writer import DryCustomWriter
from taintkeeper.cluster.events import Notice
from taintkeeper.cluster.writer import RuleTaints
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.node_taint.controller import PERMISSIONS
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core.answers import Answer
from taintkeeper.core.messages import Knowledge, NodeSeen, NodeWritten, WriteResult
from taintkeeper.core.objects import Node, PodRef, Taint
from taintkeeper.core.rules import Limit, RuleGone
from taintkeeper.core.taint_messages import TaintInput
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.writing import CONCURRENT_WRITES
from tests.unit.core.builders import node
from tests.unit.core.rule_bench import rule, seen

pytestmark = pytest.mark.looptime

FRESH = Knowledge(fresh=True)
PRESSURE = {"Ready": "True", "DiskPressure": "True"}
WELL = {"Ready": "True"}
DONE = WriteResult.DONE


@dataclass
class ScriptedWriter:
    """Writes taints after a while, with a result by a function of the node and of how often it was tried before."""

    result: Callable[[Node, int], WriteResult] = lambda _node, _tries: DONE
    seconds: Callable[[Node], float] = lambda _: 0.01
    journal: list[str] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    most_under_way: int = 0

    async def write_taints(
        self, node: Node, taints: tuple[Taint, ...], rule_taints: RuleTaints | None = None
    ) -> NodeWritten:
        tries, self.tries[node.name] = self.tries[node.name], self.tries[node.name] + 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self.journal.append(f"write {node.name}")
        await asyncio.sleep(self.seconds(node))
        self.under_way -= 1
        self.journal.append(f"answer {node.name}")
        result = self.result(node, tries)
        version = str(int(node.resource_version) + 1)
        memory = node.rule_taints if rule_taints is None else rule_taints
        written = replace(node, taints=taints, rule_taints=memory, resource_version=version)
        after = written if result is DONE else None
        return NodeWritten(node.name, result, after, "" if after else f"it was {result}")

    async def delete(self, pod: PodRef, grace: int | None, why: str, at: float) -> Answer:
        raise NotImplementedError

    async def evict(self, pod: PodRef, grace: int | None = None) -> Answer:
        raise NotImplementedError

    async def write_first_seen(self, name: str, uid: str, memory: Mapping[str, float]) -> NodeWritten:
        raise NotImplementedError

    def as_seen(self, node: Node) -> Node:
        return node


class TaintBench:
    """The controller, what it wrote and what it reported, in one journal."""

    def __init__(self, writer: ScriptedWriter | None = None, options: TaintOptions | None = None) -> None:
        self.writer = writer or ScriptedWriter()
        self.registry = CollectorRegistry()
        self.crashes: list[BaseException] = []
        self.notices: list[Notice] = []
        self.controller = NodeTaint(
            options or TaintOptions(),
            Surroundings(
                writer=self.writer,
                custom_writer=DryCustomWriter(),
                send=self._send,
                registry=self.registry,
                clock=SteadyClock(),
                random=Random(0),
                crashed=self.crashes.append,
                stalled=print,
            ),
        )

    def _send(self, notice: Notice) -> None:
        self.notices.append(notice)
        self.writer.journal.append(f"{notice.reason} {notice.subject.name}")

    def feed(self, *events: TaintInput) -> None:
        for event in events:
            self.controller.feed(event)

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


def under_pressure(count: int) -> list[TaintInput]:
    return [NodeSeen(node(f"n{number}", conditions=PRESSURE)) for number in range(count)]


@pytest.mark.reported("kubernetes/kubernetes#76325")
async def test_a_pressure_taints_within_a_second_and_the_event_follows_the_answer() -> None:
    bench = TaintBench()
    bench.feed(NodeSeen(node("n1", conditions=WELL)), FRESH)
    await asyncio.sleep(10.0)
    assert bench.writer.journal == []
    bench.feed(NodeSeen(node("n1", conditions=PRESSURE, resource_version="2")))
    await asyncio.sleep(1.0)
    assert bench.writer.journal == ["write n1", "answer n1", "TaintAdded n1"]
    labels = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    assert bench.metric("taintkeeper_taints_added_total", **labels) == 1.0


async def test_nothing_is_added_before_everything_is_listed_or_while_it_is_not_followed() -> None:
    bench = TaintBench()
    bench.feed(*under_pressure(1))
    await asyncio.sleep(3600.0)
    assert bench.writer.journal == []
    bench.feed(Knowledge(fresh=False))
    await asyncio.sleep(3600.0)
    assert bench.writer.journal == []


async def test_when_many_nodes_fail_together_only_so_many_are_written_at_once() -> None:
    bench = TaintBench()
    bench.feed(FRESH, *under_pressure(600))
    await asyncio.sleep(10.0)
    assert bench.writer.most_under_way == CONCURRENT_WRITES
    assert sum(bench.writer.tries.values()) == 600


def test_writes_of_taints_leave_connections_for_everything_else() -> None:
    assert CONNECTIONS >= CONCURRENT_WRITES + 100


@pytest.mark.reported("kubernetes/kubernetes#110341")
@pytest.mark.parametrize("storm", [WELL, {"Ready": "False"}], ids=["all recover", "all fail"])
async def test_five_hundred_writes_of_two_seconds_each_are_done_within_five(storm: dict[str, str]) -> None:
    bench = TaintBench(ScriptedWriter(seconds=lambda _: 2.0))
    others = [NodeSeen(node(f"well{number}", conditions=WELL)) for number in range(500)]
    stale = Taint("node.kubernetes.io/disk-pressure", "NoSchedule", time_added=1.0)
    bench.feed(FRESH, *others, *(NodeSeen(node(f"n{number}", stale, conditions=storm)) for number in range(500)))
    await asyncio.sleep(4.9)
    assert sum(notice.reason == "TaintRemoved" for notice in bench.notices) == 500
    await bench.controller.stop()


@pytest.mark.reported("kubernetes/kubernetes#110341")
async def test_a_write_that_takes_long_holds_no_other_node_back() -> None:
    bench = TaintBench(ScriptedWriter(seconds=lambda each: 3600.0 if each.name == "n0" else 2.0))
    bench.feed(FRESH, *under_pressure(30))
    await asyncio.sleep(5.0)
    assert len(bench.writer.tries) == 30
    assert bench.writer.under_way == 1
    await bench.controller.stop()


@pytest.mark.parametrize("result", [WriteResult.FAILED, WriteResult.CONFLICT])
async def test_a_write_that_fails_is_tried_again_until_it_is_right_and_counted(
    result: WriteResult, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "taintkeeper")
    bench = TaintBench(ScriptedWriter(result=lambda _, tries: DONE if tries >= 5 else result))
    bench.feed(FRESH, NodeSeen(node("n1", conditions=PRESSURE)))
    for version in range(2, 20):
        await asyncio.sleep(10.0)
        bench.feed(NodeSeen(node("n1", conditions=PRESSURE, resource_version=str(version))))
        if bench.notices:
            break
    assert bench.writer.tries == {"n1": 6}
    assert [notice.reason for notice in bench.notices] == ["TaintAdded"]
    assert bench.metric("taintkeeper_taint_write_failures_total", result=result.value) == 5.0
    assert [f"it was {result}" in line for line in caplog.messages] == [True] * 5 + [False]


async def test_an_hour_of_failures_ends_nothing_and_costs_little() -> None:
    bench = TaintBench(ScriptedWriter(result=lambda *_: WriteResult.FAILED))
    bench.feed(FRESH, *under_pressure(1))
    await asyncio.sleep(3600.0)
    assert bench.crashes == []
    assert 60 <= bench.writer.tries["n0"] <= 130
    assert bench.notices == []


async def test_a_taint_that_is_no_longer_called_for_goes_and_is_counted() -> None:
    ours = Taint("node.kubernetes.io/disk-pressure", "NoSchedule", time_added=1.0)
    bench = TaintBench()
    bench.feed(FRESH, NodeSeen(node("n1", ours, conditions=WELL)))
    await asyncio.sleep(1.0)
    assert [notice.message for notice in bench.notices] == [
        "Taint node.kubernetes.io/disk-pressure:NoSchedule removed: its condition is over"
    ]
    assert bench.metric("taintkeeper_taints_removed_total", key=ours.key, effect="NoSchedule") == 1.0


@pytest.mark.reported("medik8s/self-node-remediation#17")
async def test_a_node_that_is_back_with_the_out_of_service_taint_is_told_of() -> None:
    bench = TaintBench()
    off = Taint("node.kubernetes.io/out-of-service", "NoExecute", "nodeshutdown")
    bench.feed(FRESH, NodeSeen(node("other", conditions=WELL)))
    for version, (taints, ready) in enumerate((((), "True"), ((off,), "False"), ((off,), "True"), ((), "True"))):
        bench.feed(NodeSeen(node("n1", *taints, conditions={"Ready": ready}, resource_version=str(10 + version))))
    bench.feed(NodeSeen(node("other", conditions={"Ready": "False"}, resource_version="20")))
    bench.feed(NodeSeen(node("other", conditions=WELL, resource_version="21")))
    told = [notice for notice in bench.notices if notice.reason == "OutOfServiceTaintLeft"]
    assert [(notice.type, notice.subject.name) for notice in told] == [("Warning", "n1")]
    await bench.controller.stop()


async def test_what_others_undo_and_how_nodes_flap_is_counted() -> None:
    bench = TaintBench()
    bench.feed(FRESH, NodeSeen(node("other", conditions=WELL)), NodeSeen(node("n1", conditions=PRESSURE)))
    await asyncio.sleep(1.0)
    for version in range(10, 30):
        bench.feed(NodeSeen(node("n1", conditions=PRESSURE, resource_version=str(10 * version))))
        await asyncio.sleep(1.0)
    labels = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    assert bench.metric("taintkeeper_taint_contests_total", **labels) == 1.0
    assert [notice.reason for notice in bench.notices].count("TaintContested") == 1
    assert bench.writer.tries["n1"] == 4
    for version, status in ((400, "False"), (401, "True"), (402, "True")):
        bench.feed(NodeSeen(node("other", conditions={"Ready": status}, resource_version=str(version))))
    assert bench.metric("taintkeeper_node_flaps_total") == 2.0
    await bench.controller.stop()


async def test_zones_can_be_followed() -> None:
    bench = TaintBench()
    down = {"Ready": "False"}
    nodes = [node(f"n{n}", conditions=down if n < 3 else WELL, zone="z1") for n in range(4)]
    bench.feed(*map(NodeSeen, nodes), NodeSeen(node("other", conditions=WELL, zone="z2")), FRESH)
    await asyncio.sleep(1.0)
    states = ("Normal", "PartialDisruption", "FullDisruption")
    found = {state: bench.metric("taintkeeper_zone_state", zone="z1", state=state) for state in states}
    assert found == {"Normal": 0.0, "PartialDisruption": 1.0, "FullDisruption": 0.0}
    assert bench.metric("node_collector_zone_health", zone="z1") == 25.0
    assert bench.metric("node_collector_zone_size", zone="z1") == 4.0
    assert bench.metric("node_collector_unhealthy_nodes_in_zone", zone="z1") == 3.0
    assert bench.metric("taintkeeper_zone_rate", zone="z2") == 0.1
    assert bench.metric("taintkeeper_zone_rate", zone="z1") == 0.0
    assert bench.metric("taintkeeper_zone_queue_length", zone="z1") == 3.0
    assert bench.metric("taintkeeper_evicting_nodes") == 0.0


@pytest.mark.parametrize(("limit", "value"), [(None, float("inf")), (Limit(7), 7.0), (Limit(50, percent=True), 2.0)])
async def test_the_cap_can_be_seen(limit: Limit | None, value: float) -> None:
    bench = TaintBench(options=TaintOptions(most_evicting=limit))
    bench.feed(*(NodeSeen(node(f"n{number}", conditions=WELL)) for number in range(4)))
    assert bench.metric("taintkeeper_evicting_nodes_limit") == value


async def test_a_node_that_is_tainted_noexecute_counts_as_upstream_counts_it() -> None:
    bench = TaintBench()
    nodes = [node("n1", conditions={"Ready": "Unknown"}, zone="z1"), node("n2", conditions=WELL, zone="z1")]
    bench.feed(*map(NodeSeen, nodes), FRESH)
    await asyncio.sleep(1.0)
    assert bench.metric("node_collector_evictions_total", zone="z1") == 1.0
    assert bench.metric("taintkeeper_evicting_nodes") == 1.0
    added = {
        effect: bench.metric("taintkeeper_taints_added_total", key="node.kubernetes.io/unreachable", effect=effect)
        for effect in ("NoSchedule", "NoExecute")
    }
    assert added == {"NoSchedule": 1.0, "NoExecute": 1.0}
    assert bench.writer.tries == {"n1": 1}


async def test_what_a_rule_brings_is_no_eviction_that_upstream_knows_of() -> None:
    drain = rule(condition_type="DiskPressure", effect="NoExecute")
    bench = TaintBench()
    bench.feed(seen(drain), NodeSeen(node("n1", conditions=PRESSURE, zone="z1")), FRESH)
    await asyncio.sleep(1.0)
    brought = {"key": drain.key, "effect": "NoExecute"}
    assert bench.metric("taintkeeper_taints_added_total", **brought) == 1.0
    assert bench.metric("node_collector_evictions_total", zone="z1") == 0.0
    bench.feed(RuleGone(drain.name))
    await asyncio.sleep(1.0)
    assert bench.metric("taintkeeper_taints_removed_total", **brought) == 1.0


async def test_a_writer_that_fails_in_a_way_of_its_own_is_a_fault_of_ours_and_ends_everything() -> None:
    def fail(_: Node, __: int) -> WriteResult:
        raise ZeroDivisionError

    bench = TaintBench(ScriptedWriter(result=fail))
    bench.feed(FRESH, *under_pressure(3))
    await asyncio.sleep(3600.0)
    assert [type(each) for each in bench.crashes] == [ZeroDivisionError]


async def test_after_stopping_nothing_is_written_and_nobody_is_waited_for_long() -> None:
    bench = TaintBench(ScriptedWriter(seconds=lambda _: 3600.0))
    bench.feed(FRESH, *under_pressure(300))
    await asyncio.sleep(1.0)
    await bench.controller.stop()
    assert asyncio.get_running_loop().time() == 3.0
    await asyncio.sleep(7200.0)
    assert len(bench.writer.tries) == CONCURRENT_WRITES
    assert bench.notices == []


def test_it_asks_for_the_permissions_that_it_needs() -> None:
    assert sorted(map(str, PERMISSIONS)) == [
        "list nodes",
        "list nodetaintrules.taintkeeper.io",
        "patch nodes",
        "patch nodetaintrules.taintkeeper.io/status",
        "watch nodes",
        "watch nodetaintrules.taintkeeper.io",
    ]
