"""What an event costs that changes nothing, on its way from the wire to the engines: counted, not timed."""

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.wire import decode_node
from taintkeeper.controllers.node_health import NodeHealth
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.taint_eviction import TaintEviction
from taintkeeper.core.eviction import EvictionEngine
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.health_engine import HealthEngine, HealthOptions
from taintkeeper.core.tainting import TaintEngine, TaintOptions
from taintkeeper.views import Audience, Views
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import ScriptedApi, bookmark, line
from tests.unit.cost_meter import Cost, held_by, left_behind, measure
from tests.unit.cost_worlds import Bench

FEW, MANY = 100, 10_000
POD_BYTES = 800
NOW = 2_000_000_000.0
PADDING = {"example.com/padding": "x" * 3_000}


class Stack:
    """The views before all three engines, listed completely, with so many nodes and pods."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._versions = count(100)
        eviction = Bench(EvictionEngine(EvictionOptions(), Random(7)))
        tainting = Bench(TaintEngine(TaintOptions(), Random(7)))
        health = Bench(HealthEngine(HealthOptions(), Random(7)))
        self._benches = (eviction, tainting, health)
        for bench in self._benches:
            bench.now = NOW
        audiences = [
            Audience(eviction, TaintEviction.resources),
            Audience(tainting, NodeTaint.resources),
            Audience(health, NodeHealth.resources),
        ]
        self._views = Views(ScriptedApi(), Random(7), audiences, as_seen=lambda node: node, failed=lambda *_: None)
        for each in range(nodes):
            self._views.node_seen(decode_node(msgspec.json.encode(node(f"n{each}", 1))))
        self._list("leases", (lease(f"n{each}", 1) for each in range(nodes)))
        for resource in ("poddisruptionbudgets", "namespaces", "persistentvolumes"):
            self._list(resource, ())
        self._list("pods", (pod(f"p{each}", f"n{each % nodes}", 1) for each in range(pods)))
        for resource in ("nodes", *self._views.customs):
            self._views._note(resource, True)

    def _list(self, resource: str, objects: Iterator[Any] | tuple[()]) -> None:
        reflector = self._views._reflectors[resource]
        reflector._begin_listing()
        for each in objects:
            reflector._take(line("ADDED", each))
        reflector._take(bookmark(50, end=True))

    def asked(self) -> list[Any]:
        """Return what the engines wanted since the last call."""
        return [each for bench in self._benches for each in bench.take(object)]

    def pod_event(self) -> Callable[[], None]:
        """Return what brings a pod again, as it was, to be read from the wire."""
        return self._watch("pods", lambda: pod("p1", "n1", next(self._versions)))

    def lease_event(self) -> Callable[[], None]:
        """Return what brings a Lease that was renewed."""
        return self._watch("leases", lambda: lease("n1", next(self._versions)))

    def _watch(self, resource: str, make: Callable[[], Any]) -> Callable[[], None]:
        reflector = self._views._reflectors[resource]
        lines = iter([line("MODIFIED", make()) for _ in range(2_000)])
        return lambda: reflector._take(next(lines))

    def node_event(self) -> Callable[[], None]:
        """Return what brings a heartbeat of a node, as Kopf has it."""
        events = iter([{"type": "MODIFIED", "object": node("n1", next(self._versions))} for _ in range(2_000)])
        return lambda: self._views.node_event(next(events))


def pod(name: str, where: str, version: int) -> Any:
    conditions = [wires.condition(each) for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    meta = {"resourceVersion": str(version), "annotations": PADDING, "labels": {"app": "web"}}
    spec = {
        "nodeName": where,
        "tolerations": [{"key": "foo", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return wires.pod(name, meta=meta, spec=spec, status={"conditions": conditions})


def node(name: str, version: int) -> Any:
    found = wires.node(name, meta={"resourceVersion": str(version), "labels": {"topology.kubernetes.io/zone": "z"}})
    found["status"]["images"] = [{"names": [f"example.com/{each}:{'x' * 100}"], "sizeBytes": 1} for each in range(50)]
    found["status"]["conditions"][-1]["lastHeartbeatTime"] = f"2026-01-01T00:{version % 60:02}:00Z"
    return found


def lease(name: str, version: int) -> Any:
    meta = wires.metadata(name, namespace="kube-node-lease", resourceVersion=str(version))
    return {"metadata": meta, "spec": {"holderIdentity": name, "renewTime": f"2026-01-01T00:00:00.{version:06}Z"}}


EVENTS = {"pod": Stack.pod_event, "lease": Stack.lease_event, "node": Stack.node_event}
LIMITS = {"pod": Cost(2_600, 7_000), "lease": Cost(850, 1_600), "node": Cost(7_200, 18_000)}
"""A sixth more than when this was written: reading a pod twice, say, costs more than that."""


@pytest.mark.parametrize("kind", EVENTS)
async def test_an_event_that_changes_nothing_costs_little_and_has_nothing_done(kind: str) -> None:
    stack = Stack(FEW, FEW)
    stack.asked()
    cost = measure(EVENTS[kind](stack))
    assert stack.asked() == []
    assert cost.instructions <= LIMITS[kind].instructions
    assert cost.bytes <= LIMITS[kind].bytes


@pytest.mark.parametrize("kind", EVENTS)
async def test_events_that_change_nothing_leave_nothing_behind(kind: str) -> None:
    assert left_behind(EVENTS[kind](Stack(FEW, FEW)), 1_000) <= 100


@pytest.mark.parametrize("kind", EVENTS)
async def test_an_event_costs_the_same_however_many_others_are_known(kind: str) -> None:
    few, many = (measure(EVENTS[kind](Stack(number, number))) for number in (FEW, MANY))
    assert many.instructions <= few.instructions + 20
    assert many.bytes <= few.bytes + 1_000


@pytest.mark.reported("kopf worker per object (worker_limit None, idle_timeout 5 s)")
@pytest.mark.reported("mitodl/ol-infrastructure#5326")
async def test_a_pod_that_is_known_takes_little_memory() -> None:
    few, many = held_by(lambda: Stack(FEW, FEW)), held_by(lambda: Stack(FEW, FEW + 1_000))
    assert (many - few) / 1_000 <= POD_BYTES
