"""Somebody else is of another opinion about our taints, and as persistent as we are."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from taintkeeper.core.conditions import CONDITION_TAINTS
from taintkeeper.core.messages import NodeSeen, NodeWritten, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node, Taint
from taintkeeper.core.taint_messages import PatchTaints, TaintContested, TaintsChanged
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates
from tests.unit.core.builders import FOREIGN, node
from tests.unit.core.tainting_bench import TaintBench

PREFIX = "node.kubernetes.io/"
DISK = (PREFIX + "disk-pressure", NO_SCHEDULE)
TEN_MINUTES = 600.0

Opinion = Callable[[tuple[Taint, ...]], tuple[Taint, ...]]


def nodes(number: int = 5) -> list[Node]:
    return [node(f"n{index}", FOREIGN, conditions={"Ready": "True"}) for index in range(1, number + 1)]


def without(*effects: str) -> Opinion:
    """Let the opponent remove our taints with these effects."""
    ours = set(CONDITION_TAINTS.values())
    return lambda taints: tuple(taint for taint in taints if taint.key not in ours or taint.effect not in effects)


def with_taint(key: str, effect: str = NO_SCHEDULE) -> Opinion:
    """Let the opponent add this taint."""
    added = Taint(PREFIX + key, effect)
    return lambda taints: (*(taint for taint in taints if (taint.key, taint.effect) != (added.key, effect)), added)


def quarrel(bench: TaintBench, opinion: Opinion, *, every: float = 0.5, until: float = TEN_MINUTES) -> int:
    """Let an opponent see to it that n1 has the taints that it wants; return how often we wrote to the node."""
    while bench.now < until:
        taints = bench.server["n1"].taints
        if opinion(taints) != taints:
            bench.change("n1", taints=opinion(taints))
        bench.run_until(bench.now + every)
    return len(bench.writes())


@pytest.mark.parametrize("every", [0.01, 0.5, 5.0, 25.0, 90.0, 140.0])
def test_a_taint_that_somebody_removes_each_time_costs_few_writes(every: float) -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    assert quarrel(bench, without(NO_SCHEDULE), every=every) <= 10


def test_a_taint_that_somebody_adds_each_time_costs_few_writes_too() -> None:
    bench = TaintBench(*nodes())
    assert quarrel(bench, with_taint("disk-pressure")) <= 10
    ((_, contest),) = bench.of(TaintContested)
    assert (contest.node.name, contest.taint, contest.reason) == ("n1", DISK, None)


@pytest.mark.parametrize("effects", [(NO_SCHEDULE,), (NO_EXECUTE,), (NO_SCHEDULE, NO_EXECUTE)])
def test_a_node_that_somebody_else_holds_for_ready_costs_few_writes(effects: tuple[str, ...]) -> None:
    bench = TaintBench(*nodes(), options=TaintOptions(Rates(normal=100.0)))
    bench.ready("False", "n1")
    assert quarrel(bench, without(*effects)) <= 20
    for _, patch in bench.writes():
        found = {(taint.key, taint.effect) for taint in patch.change.taints}
        assert (PREFIX + "not-ready", NO_EXECUTE) not in found or (PREFIX + "not-ready", NO_SCHEDULE) in found


def test_a_node_that_somebody_else_evicts_from_while_every_zone_has_failed_costs_few_writes() -> None:
    bench = TaintBench(*nodes())
    bench.ready("Unknown")
    assert quarrel(bench, with_taint("unreachable", NO_EXECUTE)) <= 10
    ((_, contest),) = bench.of(TaintContested)
    assert (contest.taint, contest.reason) == ((PREFIX + "unreachable", NO_EXECUTE), None)


def test_a_contest_is_told_once_with_the_condition_that_calls_for_the_taint() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True", "KubeletHasDiskPressure")
    quarrel(bench, without(NO_SCHEDULE))
    ((_, contest),) = bench.of(TaintContested)
    assert (contest.taint, contest.reason) == (DISK, "condition DiskPressure is True (KubeletHasDiskPressure)")


def test_when_the_opponent_gives_up_the_taint_is_there_within_five_minutes() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    quarrel(bench, without(NO_SCHEDULE))
    bench.run_until(TEN_MINUTES + 375.0)
    assert bench.keys() == {FOREIGN.key, "disk-pressure"}


def test_after_a_long_peace_a_taint_that_is_removed_comes_back_at_once_again() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    quarrel(bench, without(NO_SCHEDULE))
    bench.run_until(2000.0)
    bench.change("n1", taints=())
    assert bench.keys() == {"disk-pressure"}


def test_a_contest_about_one_taint_holds_up_no_other() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    quarrel(bench, without(NO_SCHEDULE), until=100.0)
    bench.change("n1", taints=())
    written = len(bench.writes())
    bench.condition("n1", "PIDPressure", "True")
    assert len(bench.writes()) == written + 1
    assert bench.keys() >= {"pid-pressure"}
    bench.condition("n2", "DiskPressure", "True")
    assert bench.keys("n2") == {FOREIGN.key, "disk-pressure"}


def test_a_contest_of_a_node_does_not_go_over_to_the_next_of_its_name() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    quarrel(bench, without(NO_SCHEDULE), until=100.0)
    bench.delete("n1")
    bench.add(replace(nodes()[0], uid="second"))
    bench.condition("n1", "DiskPressure", "True")
    bench.change("n1", taints=())
    assert bench.keys() == {"disk-pressure"}


@pytest.mark.parametrize("latency", [0.0, 2.0])
def test_what_we_do_ourselves_is_no_contest(latency: float) -> None:
    bench = TaintBench(*nodes(), latency=latency, options=TaintOptions(grace_seconds=0.0))
    for number in range(20):
        bench.condition("n1", "DiskPressure", "False" if number % 2 else "True")
        bench.ready("Unknown" if number % 4 == 0 else "True")
        bench.run_until(bench.now + 3.0)
    bench.run_until(1000.0)
    assert bench.of(TaintContested) == []
    assert all(not effect.again for _, effect in bench.of(TaintsChanged))


def test_no_execute_that_arrives_when_every_zone_has_failed_meanwhile_is_no_contest() -> None:
    options = TaintOptions(Rates(normal=100.0, cooldown_seconds=0.0), grace_seconds=0.0)
    bench = TaintBench(*nodes(2), options=options, latency=5.0)
    for _ in range(6):
        bench.ready("False", "n1")
        bench.run_until(bench.now + 1.0)
        bench.ready("False", "n2")
        bench.run_until(bench.now + 20.0)
        bench.ready("True")
        bench.run_until(bench.now + 20.0)
    assert [name for _, name in bench.executed()].count("n1") == 6
    assert bench.of(TaintContested) == []


@pytest.mark.parametrize("answered", ["before", "after"])
def test_a_removal_that_the_watch_shows_before_our_write_is_answered_is_noticed(answered: str) -> None:
    bench = TaintBench(*nodes(), latency=1e9)
    bench.condition("n1", "DiskPressure", "True")
    for number in range(4):
        patch = bench.writes()[-1][1]
        assert len(bench.writes()) == min(number + 1, 3)
        version = int(patch.node.resource_version)
        written = replace(patch.node, taints=patch.change.taints, resource_version=str(version + 1))
        removed = replace(written, taints=(FOREIGN,), resource_version=str(version + 2))
        answer = NodeWritten("n1", WriteResult.DONE, written)
        if answered == "before":
            bench.tell(NodeSeen(written), answer, NodeSeen(removed))
        else:
            bench.tell(NodeSeen(written), NodeSeen(removed), answer)
        if bench.of(TaintContested):
            break
    assert [len(effect.again) for _, effect in bench.of(TaintsChanged)] == [0, 1, 1]
    assert len(bench.of(TaintContested)) == 1


@pytest.mark.parametrize("ahead", [True, False])
def test_another_that_does_the_same_as_we_is_no_opponent(ahead: bool) -> None:
    bench = TaintBench(*nodes(), latency=0.2)
    for number in range(20):
        pressure = number % 2 == 0
        bench.condition("n1", "DiskPressure", "True" if pressure else "False")
        if ahead:
            opinion = with_taint("disk-pressure") if pressure else without(NO_SCHEDULE)
            bench.change("n1", taints=opinion(bench.server["n1"].taints))
        bench.run_until(bench.now + 2.0)
    assert bench.of(TaintContested) == []
    assert bench.keys() == {FOREIGN.key}


def test_a_taint_that_was_never_ours_may_come_and_go() -> None:
    bench = TaintBench(*nodes())
    for number in range(20):
        bench.change("n1", taints=(FOREIGN,) if number % 2 else ())
        bench.run_until(bench.now + 1.0)
    assert (bench.of(PatchTaints), bench.of(TaintContested)) == ([], [])
