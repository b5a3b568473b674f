"""Where a whole zone has failed, or all of them, pods can be spared from being marked as not ready."""

import pytest

from taintkeeper.core.disruption import Marking
from taintkeeper.core.health import Patience
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.objects import Node
from tests.unit.core.builders import node, pod
from tests.unit.core.health_bench import GRACE, HealthBench


def zones(marking: Marking, *, sick: int = 0) -> HealthBench:
    """Return a bench with ten nodes in z1, two in z2, and a pod on each."""
    nodes: list[Node] = [
        node(f"{zone}-{number}", conditions={"Ready": "True"}, zone=zone)
        for zone, count in (("z1", 10), ("z2", 2))
        for number in range(count)
    ]
    pods = [pod(f"on-{each.name}", node=each.name) for each in nodes]
    return HealthBench(*nodes, pods=tuple(pods), options=HealthOptions(marking=marking))


def renewing_late(bench: HealthBench, zone: str, *, beginning: float) -> None:
    """Have the nodes of a zone renew their Leases a last time, one a second."""
    for number, name in enumerate(name for name in bench.server if name.startswith(zone)):
        bench.run_until(beginning + number)
        bench.renew(name)


@pytest.mark.reported("kubernetes/kubernetes#77864")
@pytest.mark.parametrize(
    ("marking", "expected"), [(Marking.ALWAYS, 10), (Marking.UNLESS_ZONE, 0), (Marking.UNLESS_ALL, 10)]
)
def test_when_a_whole_zone_falls_silent_its_pods_can_be_spared(marking: Marking, expected: int) -> None:
    bench = zones(marking)
    renewing_late(bench, "z1", beginning=0.0)
    bench.run_until(600.0, renewing=("z2-0", "z2-1"))
    assert [bench.ready(name) for name in bench.server].count("Unknown") == 10
    assert len(bench.marked()) == expected


@pytest.mark.reported("kubernetes/kubernetes#77864")
@pytest.mark.parametrize(
    ("marking", "expected"), [(Marking.ALWAYS, 12), (Marking.UNLESS_ZONE, 0), (Marking.UNLESS_ALL, 0)]
)
def test_when_everything_falls_silent_all_pods_can_be_spared(marking: Marking, expected: int) -> None:
    bench = zones(marking)
    renewing_late(bench, "z", beginning=0.0)
    bench.run_until(600.0)
    assert bench.engine.statuses["Unknown"] == 12
    assert len(bench.marked()) == expected


@pytest.mark.parametrize("marking", [Marking.UNLESS_ZONE, Marking.UNLESS_ALL])
def test_once_a_node_is_back_the_pods_of_those_that_are_not_are_marked(marking: Marking) -> None:
    bench = zones(marking)
    bench.run_until(600.0)
    bench.heartbeat("z1-0")
    bench.run_until(601.0, renewing=("z1-0",))
    others = {f"on-z1-{number}-uid" for number in range(1, 10)}
    spared = {"on-z2-0-uid", "on-z2-1-uid"} if marking is Marking.UNLESS_ZONE else set()
    assert set(bench.marked()) == others | {"on-z2-0-uid", "on-z2-1-uid"} - spared


def test_where_pods_can_be_spared_those_of_a_single_node_are_marked_when_the_rest_of_the_zone_has_not_followed() -> (
    None
):
    bench = zones(Marking.UNLESS_ZONE)
    others = tuple(name for name in bench.server if name != "z1-3")
    bench.run_until(GRACE + 10.0, renewing=others)
    bench.change("z1-3", unschedulable=True)
    bench.run_until(GRACE + 19.0, renewing=others)
    assert bench.marked() == []
    bench.run_until(GRACE + 21.0, renewing=others)
    assert bench.marked() == ["on-z1-3-uid"]


@pytest.mark.parametrize("gone", ["deleted", "moved"])
def test_a_zone_ends_with_its_last_node(gone: str) -> None:
    bench = zones(Marking.UNLESS_ALL)
    bench.run_until(600.0, renewing=("z2-0", "z2-1"))
    assert len(bench.marked()) == 10
    for name in ("z2-0", "z2-1"):
        if gone == "deleted":
            bench.delete(name)
        else:
            bench.change(name, zone="z1")
    bench.add_pods(pod("late", node="z1-0"))
    assert ("late-uid" in bench.marked()) is (gone == "moved")


def test_nodes_that_do_not_count_do_not_keep_a_zone_from_counting_as_disrupted() -> None:
    bench = zones(Marking.UNLESS_ZONE)
    bench.change("z1-0", excluded=True)
    bench.run_until(600.0, renewing=("z1-0", "z2-0", "z2-1"))
    assert bench.marked() == []


def excluded(marking: Marking, *nodes: Node) -> HealthBench:
    """Return a bench with these nodes, none of which is declared Unknown for its silence, and a pod on each."""
    pods = [pod(f"on-{each.name}", node=each.name) for each in nodes]
    bench = HealthBench(*nodes, pods=tuple(pods), options=HealthOptions(Patience(grace=1e9, startup=1e9), marking))
    bench.run_until(30.0)
    return bench


DOWN, WELL = {"Ready": "Unknown"}, {"Ready": "True"}


def test_a_zone_in_which_no_node_counts_is_not_disrupted() -> None:
    nodes = node("n1", zone="z1", conditions=DOWN), node("n2", zone="z1", conditions=DOWN, excluded=True)
    bench = excluded(Marking.UNLESS_ZONE, *nodes)
    assert bench.marked() == []
    bench.delete("n1")
    assert bench.marked() == ["on-n2-uid"]


def test_where_no_node_counts_at_all_not_everything_is_disrupted() -> None:
    bench = excluded(Marking.UNLESS_ALL, node("n1", conditions=DOWN, excluded=True))
    assert bench.marked() == ["on-n1-uid"]


def test_a_zone_in_which_no_node_counts_is_spared_with_all_others() -> None:
    nodes = node("n1", zone="z1", conditions=DOWN), node("n2", zone="z2", conditions=DOWN, excluded=True)
    assert excluded(Marking.UNLESS_ALL, *nodes).marked() == []


def test_a_zone_whose_last_node_that_counted_is_gone_no_longer_stands_in_the_way() -> None:
    bench = excluded(
        Marking.UNLESS_ALL,
        node("n1", zone="z1", conditions=DOWN),
        node("n2", zone="z2", conditions=WELL, excluded=True),
        node("n3", zone="z2", conditions=WELL),
    )
    assert bench.marked() == ["on-n1-uid"]
    bench.delete("n3")
    bench.add_pods(pod("late"))
    bench.run_until(60.0)
    assert bench.marked() == ["on-n1-uid"]
