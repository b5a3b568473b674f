"""How nodes are read, written and forgotten while they are declared Unknown: failures, races, and how many at once."""

from itertools import pairwise

import pytest

from taintkeeper.core import health_messages as h
from taintkeeper.core.messages import Knowledge, NodeWritten, WriteResult
from taintkeeper.core.objects import Node
from taintkeeper.core.silence import AT_ONCE
from tests.unit.core.builders import node
from tests.unit.core.health_bench import GRACE, HealthBench, constantly, declared, first, impatient


def healthy(name: str = "n1") -> Node:
    """Return a node that is ready."""
    return node(name, conditions={"Ready": "True"})


@pytest.mark.parametrize("result", [WriteResult.FAILED, WriteResult.CONFLICT, WriteResult.GONE])
def test_a_write_that_fails_is_tried_again_with_growing_pauses_each_after_another_live_read(
    result: WriteResult,
) -> None:
    bench = HealthBench(healthy())
    bench.statuses = first(*[result] * 4, then=WriteResult.DONE)
    bench.run_until(100.0)
    assert len(declared(bench)) == 1
    times = bench.times(h.PatchStatus)
    assert len(times) == 5
    assert times == bench.times(h.ReadLease)
    pauses = [after - before for before, after in pairwise(times)]
    assert all(base <= pause <= base * 1.25 for base, pause in zip([0.5, 1.0, 2.0, 4.0], pauses, strict=True))


def test_an_hour_of_failing_writes_costs_little() -> None:
    bench = HealthBench(healthy())
    bench.statuses = constantly(WriteResult.FAILED)
    bench.run_until(3600.0)
    assert 90 <= len(bench.of(h.PatchStatus)) <= 130


def test_a_node_that_reports_while_it_is_being_declared_unknown_is_left_alone() -> None:
    bench = HealthBench(healthy())
    bench.latency = 1.0
    bench.run_until(51.5)
    assert len(bench.of(h.PatchStatus)) == 1
    bench.watching = False
    bench.heartbeat()
    bench.watching = True
    bench.run_until(52.5)
    assert bench.ready() == "True"
    bench.heartbeat()
    bench.run_until(80.0)
    assert (bench.ready(), len(bench.of(h.PatchStatus))) == ("True", 1)


def test_a_conflict_over_something_else_is_settled_as_soon_as_the_newer_node_is_seen() -> None:
    bench = HealthBench(healthy())
    bench.statuses = first(*[WriteResult.CONFLICT] * 6, then=WriteResult.DONE)
    bench.run_until(68.0)
    assert len(bench.of(h.PatchStatus)) == 6
    bench.change("n1", unschedulable=True)
    assert declared(bench) == [68.0]


def test_a_node_that_is_deleted_meanwhile_is_forgotten() -> None:
    bench = HealthBench(healthy(), healthy("n2"))
    bench.latency = 1.0
    bench.run_until(50.5)
    bench.delete("n1")
    bench.tell(h.LabelsWritten(NodeWritten("n1", WriteResult.DONE, healthy())))
    bench.run_until(200.0)
    assert [told.node.name for _, told in bench.of(h.DeclaredUnknown)] == ["n2"]
    assert +bench.engine.statuses == {"Unknown": 1}


def test_a_node_that_is_deleted_before_its_time_or_while_it_waits_is_not_read() -> None:
    bench = HealthBench(*(healthy(f"n{number}") for number in range(AT_ONCE + 2)))
    bench.latency = 1.0
    bench.run_until(40.0)
    bench.delete("n0")
    bench.run_until(50.5)
    bench.delete(f"n{AT_ONCE + 1}")
    bench.run_until(200.0)
    assert {read.node for _, read in bench.of(h.ReadLease)} == {f"n{number}" for number in range(1, AT_ONCE + 1)}


@pytest.mark.parametrize("at", [50.5, 51.5], ids=["while its Lease is read", "while it is being written"])
@pytest.mark.parametrize("deleted", [True, False])
def test_a_node_that_comes_again_under_its_name_begins_anew(deleted: bool, at: float) -> None:
    bench = HealthBench(healthy())
    bench.latency = 1.0
    bench.run_until(at)
    if deleted:
        bench.delete("n1")
    bench.add(node("n1", uid="second", created=at, conditions={"Ready": "True"}))
    bench.run_until(at + GRACE - 0.1)
    assert declared(bench) == []
    bench.run_until(200.0)
    ((_, told),) = bench.of(h.DeclaredUnknown)
    assert told.node.uid == "second"
    assert len(bench.of(h.ReadLease)) == 2
    assert len(bench.of(h.PatchStatus)) == (1 if at < 51.0 else 2)


def test_a_node_that_comes_again_while_the_first_is_still_being_read_waits_for_that() -> None:
    bench = HealthBench(healthy())
    bench.latency = 100.0
    bench.run_until(51.0)
    bench.add(node("n1", uid="second", created=51.0, conditions={"Ready": "True"}))
    bench.run_until(400.0)
    assert bench.times(h.ReadLease) == [50.0, 150.0]


def test_a_node_that_changes_while_it_is_being_read_is_declared_as_it_is_then_and_once() -> None:
    bench = HealthBench(healthy())
    bench.latency = 1.0
    bench.run_until(50.5)
    bench.change("n1", unschedulable=True)
    bench.run_until(200.0)
    assert (bench.times(h.ReadLease), bench.times(h.PatchStatus), declared(bench)) == ([50.0], [51.0], [52.0])


def test_what_was_written_is_known_before_the_watch_shows_it() -> None:
    bench = HealthBench(healthy())
    bench.watching = False
    bench.run_until(200.0)
    assert (len(declared(bench)), len(bench.of(h.PatchStatus))) == (1, 1)
    assert +bench.engine.statuses == {"Unknown": 1}


def test_pauses_after_failures_begin_anew_after_a_success() -> None:
    bench = HealthBench(healthy())
    bench.statuses = first(*[WriteResult.FAILED] * 4, WriteResult.DONE, WriteResult.FAILED, then=WriteResult.DONE)
    bench.run_until(100.0)
    bench.heartbeat()
    bench.run_until(200.0)
    assert len(declared(bench)) == 2
    before, after = bench.times(h.PatchStatus)[-2:]
    assert 0.5 <= after - before <= 0.625


def test_only_so_many_nodes_are_read_or_written_at_once_and_all_in_the_end() -> None:
    bench = HealthBench(*(healthy(f"n{number}") for number in range(200)))
    bench.latency = 1.0
    bench.run_until(100.0)
    assert bench.most_under_way[h.ReadLease] == AT_ONCE
    assert len(declared(bench)) == 200
    assert len(bench.of(h.ReadLease)) == len(bench.of(h.PatchStatus)) == 200
    assert max(declared(bench)) == pytest.approx(GRACE + 2.0 * 200 / AT_ONCE, abs=1.0)


def test_a_silent_node_that_shows_life_while_it_waits_for_its_turn_is_not_read() -> None:
    bench = HealthBench(*(healthy(f"n{number}") for number in range(AT_ONCE + 1)))
    bench.latency = 1.0
    bench.run_until(50.5)
    bench.renew(f"n{AT_ONCE}")
    bench.run_until(60.0)
    assert bench.ready(f"n{AT_ONCE}") == "True"
    assert len(bench.of(h.ReadLease)) == AT_ONCE


def test_with_a_grace_period_of_zero_nothing_goes_in_circles() -> None:
    bench = HealthBench(healthy(), options=impatient(0.0), fresh=False)
    bench.reads = constantly(h.ReadResult.FAILED)
    bench.tell(Knowledge(True))
    bench.run_until(60.0)
    assert 5 <= len(bench.of(h.ReadLease)) <= 10
    bench.reads = constantly(None)
    bench.run_until(120.0)
    assert len(declared(bench)) == 1
