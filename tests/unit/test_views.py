"""What the controllers are told of the cluster, and when they may rely on it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from taintkeeper.core.health_messages import LeaseGone, LeaseSeen
from taintkeeper.core.messages import BudgetGone, BudgetSeen, Knowledge, NodeGone, NodeSeen, PodGone, PodSeen
from taintkeeper.core.objects import Node, Taint
from taintkeeper.core.policy_messages import NamespaceGone, NamespaceSeen, VolumeGone, VolumeSeen
from taintkeeper.views import Audience, Views
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import (
    LOST,
    Answer,
    ApiByPath,
    Late,
    ScriptedApi,
    Stream,
    bookmark,
    error,
    line,
    page,
)

pytestmark = pytest.mark.looptime

NODES = "nodes"
POD, BUDGET, NODE = wires.pod(), wires.budget(), wires.node()
LEASE = {"metadata": wires.metadata("n1", namespace="kube-node-lease"), "spec": {"renewTime": wires.BORN}}
NAMESPACE = {"metadata": {**wires.metadata("team"), "labels": {"tier": "prod"}}}
CLAIM = {"namespace": "team", "name": "data"}
VOLUME = {"metadata": wires.metadata("pv"), "spec": {"local": {"path": "/mnt"}, "claimRef": CLAIM}}
NODE_LIST = page(17, NODE)
OBJECTS = {
    "pods": POD,
    "poddisruptionbudgets": BUDGET,
    "namespaces": NAMESPACE,
    "persistentvolumes": VOLUME,
    "leases": LEASE,
}
ALL = frozenset({NODES, *OBJECTS})


@dataclass
class Controller:
    """Notes what it is told, when it may rely on it, and how much it knew by then."""

    told: list[Any] = field(default_factory=list)
    fresh: list[tuple[float, bool]] = field(default_factory=list)
    known: int = 0

    def feed(self, event: Any) -> None:
        if isinstance(event, Knowledge):
            self.known = len(self.told)
            self.fresh.append((asyncio.get_running_loop().time(), event.fresh))
        else:
            self.told.append(event)


@dataclass
class Bench:
    """Two controllers before the same views: one that needs everything, one that needs nodes alone."""

    views: Views
    everything: Controller
    nodes: Controller
    failed: list[str]


def listed(*things: Any, then: tuple[bytes | float | Exception, ...] = ()) -> Stream:
    return Stream(*(line("ADDED", each) for each in things), bookmark(17, end=True), *then, *(30.0, b"\n") * 1000)


@asynccontextmanager
async def looking_at(
    first: Mapping[str, Answer | Sequence[Answer]] = MappingProxyType({}),
    *,
    then_nodes: Answer = NODE_LIST,
    as_seen: Callable[[Node], Node] = lambda node: node,
) -> AsyncIterator[Bench]:
    """Run the views; ``first`` is what the first requests for a resource get, if not what every later one gets."""
    forever = {NODES: then_nodes, **{name: listed(each) for name, each in OBJECTS.items()}}
    given = {NODES: NODE_LIST, **first}
    scripts = {name: script if isinstance(script, list) else [script] for name, script in given.items()}
    api = ApiByPath(**{name: ScriptedApi(*scripts.get(name, ()), forever=each) for name, each in forever.items()})
    everything, nodes_alone = Controller(), Controller()
    failed: list[str] = []
    audiences = [Audience(everything, ALL), Audience(nodes_alone, frozenset({NODES}))]
    views = Views(api, Random(0), audiences, as_seen=as_seen, failed=lambda resource, _: failed.append(resource))
    tasks = [asyncio.create_task(run()) for run in views.tasks().values()]
    try:
        yield Bench(views, everything, nodes_alone, failed)
    finally:
        for task in tasks:
            task.cancel()


async def test_each_controller_is_told_of_what_it_needs() -> None:
    async with looking_at() as bench:
        await asyncio.sleep(1.0)
    kinds = {NodeSeen, PodSeen, BudgetSeen, NamespaceSeen, VolumeSeen, LeaseSeen}
    assert {type(event) for event in bench.everything.told} == kinds
    assert NamespaceSeen("team", {"tier": "prod"}) in bench.everything.told
    assert VolumeSeen("pv", ("team", "data")) in bench.everything.told
    assert {type(event) for event in bench.nodes.told} == {NodeSeen}


@pytest.mark.reported("kubernetes/kubernetes#26511")
@pytest.mark.parametrize("late", sorted(ALL))
async def test_nothing_is_relied_on_before_everything_that_it_rests_on_is_listed(late: str) -> None:
    answers: dict[str, Answer] = {NODES: NODE_LIST, **{name: listed(each) for name, each in OBJECTS.items()}}
    async with looking_at({late: Late(30.0, answers[late])}) as bench:
        await asyncio.sleep(60.0)
    assert bench.everything.fresh == [(30.0, True)]
    assert bench.everything.known == 6
    assert bench.nodes.fresh == [(30.0 if late == NODES else 0.0, True)]


@pytest.mark.parametrize("broken", OBJECTS)
@pytest.mark.parametrize("how", [LOST, error(500), error(410), b"garbage\n"], ids=["lost", "500", "410", "garbage"])
async def test_as_soon_as_one_watch_breaks_nothing_that_rests_on_it_is_relied_on(
    broken: str, how: bytes | Exception
) -> None:
    async with looking_at({broken: listed(OBJECTS[broken], then=(60.0, how))}) as bench:
        await asyncio.sleep(59.0)
        assert bench.views.stale() == []
        await asyncio.sleep(61.0)
    assert [fresh for _, fresh in bench.everything.fresh] == [True, False, True]
    assert bench.everything.fresh[1][0] == 60.0
    assert [fresh for _, fresh in bench.nodes.fresh] == [True, False, True], "Kopf's watch may be broken as well"
    assert bench.failed == [broken]


async def test_whoever_reaches_the_server_again_hurries_those_who_make_a_pause() -> None:
    script: list[Answer] = [listed(POD, then=(60.0, LOST)), *[LOST] * 7]
    async with looking_at({"pods": script}) as bench:
        await asyncio.sleep(60.0 + 50.0)
        assert "pods" in bench.views.stale()
        bench.views.interrupted(True)
        bench.views.interrupted(False)
        await asyncio.sleep(1.0)
        assert bench.views.stale() == []


async def test_nodes_are_stale_for_as_long_as_kopf_cannot_watch_them() -> None:
    async with looking_at() as bench:
        await asyncio.sleep(10.0)
        bench.views.interrupted(True)
        await asyncio.sleep(30.0)
        assert bench.views.stale() == [NODES]
        bench.views.interrupted(False)
        await asyncio.sleep(1.0)
        assert bench.views.stale() == []
    assert bench.everything.fresh == [(0.0, True), (10.0, False), (40.0, True)]


async def test_after_standing_still_all_nodes_are_listed_before_anything_is_relied_on() -> None:
    async with looking_at(then_nodes=Late(5.0, NODE_LIST)) as bench:
        await asyncio.sleep(10.0)
        bench.views.distrust()
        await asyncio.sleep(10.0)
    assert bench.everything.fresh == [(0.0, True), (10.0, False), (15.0, True)]


async def test_a_list_of_nodes_that_fails_concerns_every_controller() -> None:
    async with looking_at(then_nodes=LOST) as bench:
        await asyncio.sleep(299.0)
        assert bench.views.stale() == []
        await asyncio.sleep(11.0)
        assert bench.views.stale() == [NODES]
    assert [fresh for _, fresh in bench.everything.fresh] == [True, False]
    assert [fresh for _, fresh in bench.nodes.fresh] == [True, False]


async def test_what_is_stale_is_named() -> None:
    async with looking_at({"pods": Late(60.0, listed(POD)), "poddisruptionbudgets": [LOST, LOST]}) as bench:
        await asyncio.sleep(0.1)
        assert bench.views.stale() == ["poddisruptionbudgets", "pods"]
        await asyncio.sleep(120.0)
        assert bench.views.stale() == []


async def test_what_vanishes_is_told() -> None:
    vanishing = {name: listed(each, then=(1.0, line("DELETED", each))) for name, each in OBJECTS.items()}
    async with looking_at(vanishing) as bench:
        await asyncio.sleep(0.5)
        bench.views.node_event({"type": "DELETED", "object": NODE})
        await asyncio.sleep(5.0)
    gone = [PodGone("p1-uid"), BudgetGone("default", "b1"), NamespaceGone("team"), VolumeGone("pv"), LeaseGone("n1")]
    assert bench.everything.told[-6] == NodeGone("n1")
    assert set(bench.everything.told[-5:]) == set(gone)
    assert bench.nodes.told[-1] == NodeGone("n1")


async def test_nodes_are_shown_as_they_are_to_be_seen() -> None:
    taint = Taint("foo", "NoExecute")
    async with looking_at(as_seen=lambda node: replace(node, taints=(taint,))) as bench:
        await asyncio.sleep(1.0)
        bench.views.node_event({"type": "MODIFIED", "object": NODE})
    seen = [event.node.taints for event in bench.nodes.told]
    assert seen == [(taint,), (taint,)]


async def test_it_knows_when_each_resource_was_last_heard_of() -> None:
    async with looking_at({NODES: Late(3.0, NODE_LIST), "pods": Late(5.0, listed(POD))}) as bench:
        assert set(bench.views.last_heard().values()) == {float("-inf")}
        await asyncio.sleep(10.0)
        assert bench.views.last_heard() == {**dict.fromkeys(ALL, 0.0), "nodes": 3.0, "pods": 5.0}


async def test_only_what_somebody_needs_is_watched() -> None:
    audience = Audience(Controller(), frozenset({NODES}))
    views = Views(ApiByPath(), Random(0), [audience], as_seen=lambda node: node, failed=lambda *_: None)
    assert list(views.tasks()) == [NODES]
    assert views.stale() == [NODES]


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ([("a", True)], []),
        ([("a", True), ("b", True)], [True]),
        ([("a", True), ("b", True), ("b", True)], [True]),
        ([("a", True), ("b", True), ("a", False), ("b", False)], [True, False]),
        ([("a", True), ("b", True), ("a", False), ("a", True)], [True, False, True]),
        ([("a", False), ("b", True), ("c", True)], []),
    ],
)
async def test_an_audience_is_told_only_when_the_whole_changes(notes: list[tuple[str, bool]], told: list[bool]) -> None:
    controller = Controller()
    audience = Audience(controller, frozenset({"a", "b"}))
    for resource, alive in notes:
        audience.note(resource, alive)
    assert [fresh for _, fresh in controller.fresh] == told
