"""What the engine keeps of nodes that go, come back, or have not been listed yet, and when it wants to be woken."""

from dataclasses import replace
from itertools import pairwise

import pytest

from taintkeeper.core.conditions import TaintId
from taintkeeper.core.messages import Knowledge, NodeGone, NodeSeen, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node
from taintkeeper.core.pacing import WRITE_BACKOFF, Backoff
from taintkeeper.core.taint_messages import PatchTaints, TaintsChanged
from tests.unit.core.builders import node, unreachable
from tests.unit.core.tainting_bench import TaintBench, failing

FAILED = WriteResult.FAILED
FULL_DISK = (Condition("Ready", "True"), Condition("DiskPressure", "True"))


def nodes(number: int = 5) -> list[Node]:
    return [node(f"n{index}", conditions={"Ready": "True"}) for index in range(1, number + 1)]


def again(bench: TaintBench) -> list[set[TaintId]]:
    return [set(effect.again) for _, effect in bench.of(TaintsChanged)]


def test_a_deleted_node_is_not_written_when_everything_is_looked_at_again() -> None:
    bench = TaintBench(*nodes(), node("lone", zone="z9", conditions={"Ready": "False"}))
    bench.delete("lone")
    written = len(bench.of(PatchTaints))
    bench.tell(Knowledge(False), Knowledge(True))
    bench.run_until(100.0)
    assert len(bench.of(PatchTaints)) == written


def test_a_node_that_is_deleted_before_all_are_listed_is_forgotten() -> None:
    bench = TaintBench(*nodes(), fresh=False)
    bench.tell(NodeSeen(node("short-lived", conditions={"Ready": "False"})), NodeGone("short-lived"))
    bench.tell(Knowledge(True))
    assert bench.log == []


def test_a_deleted_node_counts_no_longer_in_its_zone() -> None:
    bench = TaintBench(*nodes(1), node("n2", conditions={"Ready": "False"}))
    assert bench.keys("n2", NO_EXECUTE) == {"not-ready"}
    bench.delete("n1")
    assert bench.engine.book.all_disrupted
    assert bench.keys("n2", NO_EXECUTE) == set()


def test_a_node_that_is_deleted_during_a_pause_is_forgotten() -> None:
    bench = TaintBench(*nodes(), results=failing(FAILED))
    bench.condition("n1", "DiskPressure", "True")
    bench.delete("n1")
    bench.run_until(100.0)
    assert len(bench.writes()) == 1


def test_a_new_node_of_the_same_name_does_not_wait_for_what_became_of_the_old_one() -> None:
    bench = TaintBench(*nodes(), latency=10.0)
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(1.0)
    bench.add(node("n1", uid="second", conditions={"Ready": "True", "PIDPressure": "True"}))
    assert [(at, patch.node.uid) for at, patch in bench.writes()] == [(0.0, "n1-uid"), (1.0, "second")]


def test_a_new_node_of_the_same_name_does_not_wait_for_the_pause_of_the_old_one() -> None:
    bench = TaintBench(*nodes(), results=failing(*[FAILED] * 8))
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(60.0)
    bench.add(node("n1", uid="second", conditions={"Ready": "True", "PIDPressure": "True"}))
    assert bench.writes()[-1][0] == 60.0


def test_the_taints_of_the_old_node_are_not_told_as_removed_from_the_new_one() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    bench.add(replace(nodes()[0], uid="second", conditions=FULL_DISK))
    assert again(bench) == [set(), set()]


def test_the_first_pause_is_half_a_second_even_for_a_node_that_was_never_right() -> None:
    bench = TaintBench(*nodes(), node("bad", conditions={"Ready": "False"}), results=failing(FAILED))
    bench.run_until(100.0)
    first, second = (at for at, _ in bench.writes("bad"))
    assert 0.5 <= second - first <= 0.625


def test_the_pause_starts_anew_when_the_node_became_right_by_itself() -> None:
    bench = TaintBench(*nodes(), results=failing(*[FAILED] * 4))
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(1.8)
    bench.condition("n1", "DiskPressure", "False")
    bench.run_until(100.0)
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(200.0)
    last = [at for at, _ in bench.writes() if at >= 100.0]
    assert last[0] == 100.0
    assert all(after - before <= 1.25 for before, after in pairwise(last))


def test_the_pauses_of_writes_double_from_half_a_second_to_half_a_minute() -> None:
    assert Backoff(base=0.5, cap=30.0) == WRITE_BACKOFF


def test_a_taint_that_was_removed_and_then_not_needed_is_not_told_as_removed_later() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    bench.results = failing(FAILED)
    bench.change("n1", taints=())
    bench.condition("n1", "DiskPressure", "False")
    bench.run_until(100.0)
    bench.condition("n1", "DiskPressure", "True")
    assert again(bench) == [set(), set()]


def test_a_taint_that_was_out_of_date_when_somebody_removed_it_is_not_told_as_removed() -> None:
    bench = TaintBench(*nodes())
    bench.condition("n1", "DiskPressure", "True")
    bench.results = failing(FAILED)
    bench.condition("n1", "DiskPressure", "False")
    bench.change("n1", taints=(), conditions=FULL_DISK)
    bench.run_until(100.0)
    assert bench.keys() == {"disk-pressure"}
    assert again(bench) == [set(), set()]


def test_the_engine_asks_to_be_woken_only_when_there_is_something_to_do() -> None:
    bench = TaintBench(*nodes())
    assert bench.engine.wake_at(0.0) is None
    bench.ready("False", "n1")
    assert bench.engine.wake_at(0.0) is None
    bench.ready("False", "n2")
    assert bench.engine.wake_at(0.0) == pytest.approx(10.0)
    bench.ready("Unknown")
    assert bench.engine.book.all_disrupted
    assert bench.engine.wake_at(0.0) is None
    bench.run_until(30.0)
    bench.tell(NodeSeen(bench.server["n1"]))
    assert bench.engine.wake_at(30.0) is None
    bench.ready("True", "n1")
    assert bench.engine.wake_at(30.0) == 80.0


def test_nodes_that_wait_in_a_zone_that_stands_still_need_no_waking() -> None:
    bench = TaintBench(*nodes(2), *(node(f"bad{number}", conditions={"Ready": "False"}) for number in range(3)))
    assert [len(zone.queue) for zone in bench.engine.book.zones()] == [3]
    assert bench.engine.wake_at(0.0) is None


def test_tokens_of_a_stale_time_are_not_saved_up_beyond_one() -> None:
    bench = TaintBench(*nodes(8))
    bench.tell(Knowledge(False))
    for at, name in ((0.0, "n1"), (50.0, "n2")):
        bench.run_until(at)
        bench.ready("False", name)
    bench.run_until(100.0)
    bench.tell(Knowledge(True))
    bench.run_until(200.0)
    assert bench.executed() == [(100.0, "n1"), (pytest.approx(110.0), "n2")]


def test_a_node_without_ready_condition_keeps_what_it_has_while_a_zone_is_well() -> None:
    bench = TaintBench(*nodes(), node("silent", unreachable(), conditions={"DiskPressure": "False"}))
    bench.run_until(100.0)
    assert bench.keys("silent", NO_EXECUTE) == {"unreachable"}
    assert bench.keys("silent", NO_SCHEDULE) == set()
