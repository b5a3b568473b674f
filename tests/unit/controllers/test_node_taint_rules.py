"""The node-taint controller with rules: what it writes for them, and what it says of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from taintkeeper.cluster.client import Call, Reply
from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_kind import CustomKind, Status
from taintkeeper.cluster.events import Notice
from taintkeeper.cluster.rule_wire import RULES
from taintkeeper.cluster.writer import ApiWriter
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core.messages import Knowledge, NodeSeen
from taintkeeper.core.rules import RuleGone
from taintkeeper.core.tainting import TaintOptions
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import ScriptedApi, reply
from tests.unit.core.builders import node
from tests.unit.core.rule_bench import DEADLOCK, rule, seen

pytestmark = pytest.mark.looptime

SICK = {"Ready": "True", "KernelDeadlock": "True"}
ANNOTATION = "taintkeeper.io/rule-taints"


class Nodes(ScriptedApi):
    """An API server that takes every write to a node."""

    async def send(self, call: Call) -> Reply:
        self.bodies: list[dict[str, Any]] = [*getattr(self, "bodies", []), call.body]
        annotations = call.body["metadata"].get("annotations", {})
        kept = {name: text for name, text in annotations.items() if text is not None}
        meta = {"resourceVersion": str(1 + len(self.bodies)), "annotations": kept}
        conditions = [{"type": type_, "status": status} for type_, status in SICK.items()]
        taints = call.body["spec"]["taints"]
        return reply(200, wires.node("n1", *taints, meta=meta, status={"conditions": conditions}))


@dataclass
class Statuses:
    """Takes statuses after a while; the first attempts fail."""

    failures: int = 0
    written: list[tuple[float, str, Any]] = field(default_factory=list)

    async def write_status(self, kind: CustomKind[Any, Status], name: str, status: Status) -> bool:
        assert kind is RULES
        self.written.append((asyncio.get_running_loop().time(), name, status))
        await asyncio.sleep(0.01)
        self.failures -= 1
        return self.failures < 0


class Bench:
    """The controller between a node, a rule and those who take what it writes."""

    def __init__(self, failures: int = 0) -> None:
        self.nodes = Nodes()
        self.statuses = Statuses(failures)
        self.notices: list[Notice] = []
        self.crashes: list[BaseException] = []
        self.controller = NodeTaint(
            TaintOptions(),
            Surroundings(
                writer=ApiWriter(self.nodes),
                custom_writer=self.statuses,
                send=self.notices.append,
                registry=CollectorRegistry(),
                clock=SteadyClock(),
                random=Random(0),
                crashed=self.crashes.append,
                stalled=print,
            ),
        )
        for event in (seen(rule()), NodeSeen(node("n1", conditions=SICK)), Knowledge(fresh=True)):
            self.controller.feed(event)

    def annotations(self) -> list[Mapping[str, str | None] | None]:
        """Return what was written into the node's annotations, by write."""
        return [body["metadata"].get("annotations") for body in self.nodes.bodies]


async def test_a_taint_of_a_rule_is_written_with_its_memory_and_told_with_its_rule() -> None:
    bench = Bench()
    await asyncio.sleep(1.0)
    bench.controller.feed(RuleGone("deadlock"))
    await asyncio.sleep(1.0)
    added, removed = bench.nodes.bodies
    assert [(each["key"], each["effect"]) for each in added["spec"]["taints"]] == [(DEADLOCK, "NoSchedule")]
    assert removed["spec"]["taints"] == []
    assert bench.annotations() == [{ANNOTATION: f'{{"{DEADLOCK}:NoSchedule":"deadlock"}}'}, {ANNOTATION: None}]
    assert [(each.reason, each.message) for each in bench.notices] == [
        ("TaintAdded", f"Taint {DEADLOCK}:NoSchedule added: condition KernelDeadlock is True, by rule deadlock"),
        ("TaintRemoved", f"Taint {DEADLOCK}:NoSchedule removed: rule deadlock is gone"),
    ]
    assert bench.crashes == []


async def test_a_status_is_written_once_it_changes_and_again_when_that_fails() -> None:
    bench = Bench(failures=1)
    await asyncio.sleep(600.0)
    first, *_, last = bench.statuses.written
    assert (first[1], last[1]) == ("deadlock", "deadlock")
    assert last[2].tainted == 1
    assert 2 <= len(bench.statuses.written) <= 3
    assert bench.crashes == []
