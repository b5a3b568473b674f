"""Somebody removes our taint while its condition lasts: it comes back, and people are told why."""

from typing import Any

import pytest

from taintkeeper.core.messages import WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.taint_messages import TaintsChanged
from taintkeeper.core.tainting import TaintOptions
from tests.unit.core.builders import node
from tests.unit.core.tainting_bench import TaintBench, failing

PREFIX = "node.kubernetes.io/"


def healthy(name: str) -> Node:
    return node(name, conditions={"Ready": "True"})


def cluster(*nodes: Node, **options: Any) -> TaintBench:
    """Return a bench with these nodes and two healthy ones, so that the zone is not disrupted."""
    return TaintBench(*nodes, healthy("other-1"), healthy("other-2"), **options)


def both(bench: TaintBench, name: str = "n1") -> tuple[set[str], set[str]]:
    return bench.keys(name, NO_SCHEDULE), bench.keys(name, NO_EXECUTE)


@pytest.mark.reported("kubernetes/kubernetes#83668")
def test_a_taint_that_somebody_removes_comes_back_and_says_which_condition_holds_it() -> None:
    bench = cluster(healthy("n1"))
    bench.condition("n1", "DiskPressure", "True", "KubeletHasDiskPressure")
    bench.run_until(60.0)
    bench.change("n1", taints=())
    assert bench.keys() == {"disk-pressure"}
    first, second = (effect for _, effect in bench.of(TaintsChanged))
    assert (set(first.again), set(second.again)) == (set(), {(PREFIX + "disk-pressure", NO_SCHEDULE)})
    assert second.reasons == {
        (PREFIX + "disk-pressure", NO_SCHEDULE): "condition DiskPressure is True (KubeletHasDiskPressure)"
    }


def test_a_twin_that_somebody_removes_comes_back_and_is_told_while_the_other_stays() -> None:
    bench = cluster(healthy("n1"))
    bench.ready("False", "n1")
    bench.run_until(60.0)
    bench.change("n1", taints=tuple(taint for taint in bench.server["n1"].taints if taint.effect == NO_EXECUTE))
    assert both(bench) == ({"not-ready"}, {"not-ready"})
    assert [set(effect.again) for _, effect in bench.of(TaintsChanged)] == [
        set(),
        {(PREFIX + "not-ready", NO_SCHEDULE)},
    ]


def test_what_came_back_by_itself_is_not_told_as_removed_by_somebody() -> None:
    bench = cluster(healthy("n1"))
    for status in ("True", "False", "True"):
        bench.condition("n1", "DiskPressure", status)
    bench.run_until(60.0)
    bench.change("n1", taints=())
    bench.condition("n1", "DiskPressure", "False")
    bench.condition("n1", "DiskPressure", "True")
    assert [sorted(effect.again) for _, effect in bench.of(TaintsChanged)] == [
        [], [], [], [(PREFIX + "disk-pressure", NO_SCHEDULE)], [], [],
    ]  # fmt: skip


NO_LONGER_THERE = [
    pytest.param((NO_EXECUTE,), id="NoExecute alone"),
    pytest.param((NO_EXECUTE, NO_SCHEDULE), id="both"),
]


@pytest.mark.reported("kubernetes/kubernetes#79072")
@pytest.mark.parametrize("gone", NO_LONGER_THERE)
def test_a_no_execute_taint_that_somebody_removes_is_told_of_when_it_comes_back(gone: tuple[str, ...]) -> None:
    bench = cluster(healthy("n1"))
    bench.ready("False", "n1")
    bench.run_until(5.0)
    bench.change("n1", taints=tuple(taint for taint in bench.server["n1"].taints if taint.effect not in gone))
    bench.run_until(100.0)
    assert both(bench) == ({"not-ready"}, {"not-ready"})
    last = bench.of(TaintsChanged)[-1][1]
    assert last.again == {(PREFIX + "not-ready", NO_EXECUTE)}
    assert last.reasons[PREFIX + "not-ready", NO_EXECUTE] == "condition Ready is False"
    told = [taint for _, effect in bench.of(TaintsChanged) for taint in effect.again]
    assert sorted(told) == sorted((PREFIX + "not-ready", effect) for effect in gone)


def test_a_no_execute_taint_that_is_added_first_beside_a_twin_that_comes_back_is_not_told_as_removed() -> None:
    bench = cluster(healthy("n1"), healthy("n2"))
    bench.ready("False", "n2", "n1")
    bench.results = failing(WriteResult.FAILED)
    bench.run_until(9.9)
    bench.change("n1", taints=())
    bench.run_until(100.0)
    (again,) = (effect for _, effect in bench.of(TaintsChanged) if effect.again)
    assert again.again == {(PREFIX + "not-ready", NO_SCHEDULE)}
    assert {taint.effect for taint in again.change.added} == {NO_SCHEDULE, NO_EXECUTE}


@pytest.mark.parametrize("latency", [0.0, 5.0])
def test_a_no_execute_taint_that_we_took_away_ourselves_is_not_told_as_removed_by_somebody(latency: float) -> None:
    bench = cluster(healthy("n1"), options=TaintOptions(grace_seconds=0.0), latency=latency)
    bench.ready("False", "n1")
    bench.run_until(100.0)
    bench.ready("Unknown")
    bench.run_until(106.0)
    bench.ready("True", "other-1")
    bench.run_until(300.0)
    assert both(bench) == ({"unreachable"}, {"unreachable"})
    assert all(not effect.again for _, effect in bench.of(TaintsChanged))


@pytest.mark.reported("kubernetes/kubernetes#79072")
def test_a_no_execute_taint_that_somebody_removes_comes_back_through_the_bucket() -> None:
    bench = cluster(healthy("n1"), healthy("n2"))
    bench.ready("False", "n1")
    bench.run_until(100.0)
    bench.ready("False", "n2")
    bench.change("n1", taints=tuple(taint for taint in bench.server["n1"].taints if taint.effect == NO_SCHEDULE))
    assert both(bench) == ({"not-ready"}, set())
    bench.run_until(200.0)
    assert both(bench) == ({"not-ready"}, {"not-ready"})
    assert bench.executed() == [(0.0, "n1"), (100.0, "n2"), (pytest.approx(110.0), "n1")]
