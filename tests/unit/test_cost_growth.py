"""What one event costs does not grow with the cluster: counted, not timed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count, product
from random import Random
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from taintkeeper.core import messages as m
from taintkeeper.core.disruption import Marking
from taintkeeper.core.eviction import EvictionEngine
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.health_engine import HealthEngine, HealthOptions
from taintkeeper.core.health_messages import LeaseSeen
from taintkeeper.core.objects import Condition
from taintkeeper.core.tainting import TaintEngine, TaintOptions
from tests.unit import cost_worlds as w
from tests.unit.core.builders import FOO, budget, node, pod
from tests.unit.cost_meter import Cost, measure
from tests.unit.cost_worlds import PATIENT, READY, Bench, World

FEW, MANY = 500, 5_000
MOST_INSTRUCTIONS = 20
"""By how much the two may differ: a number is a little longer, a list was moved a little earlier."""
MOST_BYTES = 1_000

_versions = count(10)
Event = Callable[[int], Any]
"""The same event again and again, each time with a later version of its object."""


def pod_again(version: int) -> m.PodSeen:
    return m.PodSeen(replace(PATIENT, version=version))


def pod_changes(version: int) -> m.PodSeen:
    return m.PodSeen(replace(PATIENT, version=version, ready=version % 2 == 0))


def pod_comes(version: int) -> m.PodSeen:
    return m.PodSeen(pod(f"new{version}"))


def pod_goes(version: int) -> m.PodGone:
    return m.PodGone(f"new{version}-uid")


def node_again(version: int) -> m.NodeSeen:
    return m.NodeSeen(replace(_n1(version), conditions=(Condition("Ready", "True", heartbeat=float(version)),)))


def node_flips(version: int) -> m.NodeSeen:
    pressure = Condition("DiskPressure", "True" if version % 2 else "False")
    return m.NodeSeen(replace(_n1(version), conditions=(Condition("Ready", "True"), pressure)))


def node_tainted(version: int) -> m.NodeSeen:
    return m.NodeSeen(replace(_n1(version), taints=(FOO,) if version % 2 else ()))


def budget_again(version: int) -> m.BudgetSeen:
    return m.BudgetSeen(budget("b1", allowed=version % 2, app="one"))


def lease_renewed(version: int) -> LeaseSeen:
    return LeaseSeen("n1", str(version))


def time_passes(_: int) -> m.Woke:
    return m.Woke()


def _n1(version: int) -> Any:
    return node(resource_version=str(version), zone="z1", conditions=READY)


def eviction() -> Bench:
    return Bench(EvictionEngine(EvictionOptions(), Random(7)))


def tainting() -> Bench:
    return Bench(TaintEngine(TaintOptions(), Random(7)), m.PodSeen)


def health() -> Bench:
    return Bench(HealthEngine(HealthOptions(), Random(7)))


def health_by_zone() -> Bench:
    return Bench(HealthEngine(HealthOptions(marking=Marking.UNLESS_ZONE), Random(7)))


Maker = Callable[[], Bench]
POD_EVENTS = (pod_again, pod_changes, pod_comes, pod_goes)
NODE_EVENTS = (node_again, node_flips)
HEALTH_EVENTS = (*POD_EVENTS, *NODE_EVENTS, lease_renewed, time_passes)
EVICTION_WORLDS = (
    *(w.calm, w.many_zones, w.many_budgets, w.counting, w.overdue, w.in_line, w.held, w.terminating),
    *(w.remembering, w.unwritten, w.unread),
)
CASES: dict[Maker, tuple[tuple[World, ...], tuple[Event, ...]]] = {
    eviction: (EVICTION_WORLDS, (*POD_EVENTS, *NODE_EVENTS, node_tainted, budget_again, time_passes)),
    tainting: ((w.calm, w.many_zones, w.counting, w.failed), (*NODE_EVENTS, time_passes)),
    health: ((w.calm, w.many_zones, w.leases, w.failed, w.unheard), HEALTH_EVENTS),
    health_by_zone: ((w.calm, w.many_zones, w.failed), HEALTH_EVENTS),
}


@lru_cache(maxsize=2)
def inhabited(make: Maker, world: World, number: int) -> Bench:
    """Return an engine that knows so many other nodes, and n1 with p1."""
    bench = make()
    bench.tell(m.NodeSeen(_n1(1)), m.PodSeen(PATIENT))
    world(bench, number)
    return bench


def cost(make: Maker, world: World, number: int, event: Event) -> Cost:
    bench = inhabited(make, world, number)
    return measure(lambda: bench.tell(event(next(_versions))))


def rows() -> Iterator[ParameterSet]:
    """Yield every event in every world."""
    for make, (worlds, events) in CASES.items():
        for world, event in product(worlds, events):
            names = (each.__name__ for each in (make, world, event))
            yield pytest.param(make, world, event, id=", ".join(names))


@pytest.mark.parametrize(("make", "world", "event"), list(rows()))
def test_what_an_event_costs_does_not_grow_with_the_cluster(make: Maker, world: World, event: Event) -> None:
    few, many = (cost(make, world, number, event) for number in (FEW, MANY))
    assert many.instructions <= few.instructions + MOST_INSTRUCTIONS
    assert many.bytes <= few.bytes + MOST_BYTES
