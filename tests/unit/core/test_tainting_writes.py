"""How the taints get to the node: conflicts, failures, and what happens meanwhile."""

from dataclasses import replace
from itertools import pairwise

import pytest

from taintkeeper.core.messages import Knowledge, NodeGone, NodeSeen, NodeWritten, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.taint_messages import PatchTaints, TaintsChanged
from tests.unit.core.builders import FOREIGN, node
from tests.unit.core.tainting_bench import TaintBench, failing

DONE, CONFLICT, GONE, FAILED = WriteResult.DONE, WriteResult.CONFLICT, WriteResult.GONE, WriteResult.FAILED


def nodes(number: int = 5) -> list[Node]:
    return [node(f"n{index}", conditions={"Ready": "True"}) for index in range(1, number + 1)]


def times(bench: TaintBench, name: str = "n1") -> list[float]:
    return [at for at, _ in bench.writes(name)]


@pytest.mark.parametrize("result", [FAILED, CONFLICT, GONE])
def test_a_write_that_fails_is_tried_again_after_a_growing_pause_until_it_is_right(result: WriteResult) -> None:
    bench = TaintBench(*nodes(), results=failing(*[result] * 9))
    bench.ready("False", "n1")
    bench.run_until(600.0)
    assert bench.keys(effect=NO_EXECUTE) == bench.keys() == {"not-ready"}
    found = times(bench)
    assert len(found) == 10
    pauses = [after - before for before, after in pairwise(found)]
    for pause, least in zip(pauses, [0.5, 1, 2, 4, 8, 16, 30, 30, 30], strict=True):
        assert least <= pause <= least * 1.25


def test_after_a_success_the_next_pause_is_short_again() -> None:
    bench = TaintBench(*nodes(), results=failing(FAILED, FAILED, FAILED, DONE, FAILED))
    bench.ready("False", "n1")
    bench.run_until(100.0)
    bench.ready("True", "n1")
    bench.run_until(200.0)
    assert len(times(bench)) == 6
    assert times(bench)[-1] <= 100.0 + 0.5 * 1.25


def test_a_node_that_needs_nothing_any_more_is_not_written() -> None:
    bench = TaintBench(*nodes(), results=failing(FAILED, FAILED))
    bench.ready("False", "n1")
    bench.run_until(0.6)
    bench.ready("True", "n1")
    bench.run_until(100.0)
    assert bench.server["n1"].taints == ()
    assert len(times(bench)) <= 2


def test_a_write_that_failed_is_not_hurried_by_changes_of_the_node() -> None:
    bench = TaintBench(*nodes(), results=failing(FAILED))
    bench.condition("n1", "DiskPressure", "True")
    for number in range(10):
        bench.condition("n1", "Heartbeat", str(number))
    assert times(bench) == [0.0]
    bench.run_until(0.625)
    assert len(times(bench)) == 2


def test_a_conflict_is_resolved_as_soon_as_the_newer_node_is_seen() -> None:
    bench = TaintBench(*nodes())
    bench.change("n1", seen=False, taints=(FOREIGN,))
    bench.tell(NodeSeen(node("n1", conditions={"Ready": "False"})))
    assert len(times(bench)) == 1
    assert bench.server["n1"].taints == (FOREIGN,)
    bench.ready("False", "n1")
    assert times(bench) == [0.0, 0.0]
    assert bench.server["n1"].taints[0] == FOREIGN
    assert bench.keys() == {FOREIGN.key, "not-ready"}


def test_foreign_taints_survive_whatever_comes_between() -> None:
    bench = TaintBench(*nodes(), latency=1.0)
    bench.ready("False", "n1")
    bench.change("n1", seen=False, taints=(FOREIGN,))
    bench.run_until(100.0)
    assert bench.server["n1"].taints == (FOREIGN,)
    bench.tell(NodeSeen(bench.server["n1"]))
    bench.run_until(200.0)
    assert bench.server["n1"].taints[0] == FOREIGN
    assert bench.keys(effect=NO_EXECUTE) == {"not-ready"}


def test_one_write_is_under_way_for_each_node_and_the_next_follows_its_answer() -> None:
    bench = TaintBench(*nodes(), latency=10.0)
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(5.0)
    bench.condition("n1", "PIDPressure", "True")
    assert times(bench) == [0.0]
    bench.run_until(100.0)
    assert bench.keys() == {"disk-pressure", "pid-pressure"}
    assert times(bench) == [0.0, 10.0]


def test_a_slow_write_to_one_node_holds_up_no_other() -> None:
    bench = TaintBench(*nodes(), latency=10.0)
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(1.0)
    bench.condition("n2", "DiskPressure", "True")
    assert times(bench, "n2") == [1.0]


@pytest.mark.upstream("TestTryOrdering")
def test_a_write_that_fails_costs_no_second_token_and_holds_up_no_other_node() -> None:
    bench = TaintBench(*nodes(8), results=lambda patch, now: FAILED if patch.node.name == "n1" and now < 60 else DONE)
    bench.ready("False", "n1", "n2", "n3")
    bench.run_until(55.0)
    assert bench.keys("n2", NO_EXECUTE) == bench.keys("n3", NO_EXECUTE) == {"not-ready"}
    bench.ready("False", "n4")
    bench.run_until(100.0)
    assert bench.keys("n1", NO_EXECUTE) == bench.keys("n4", NO_EXECUTE) == {"not-ready"}
    assert [at for at, name in bench.executed() if name == "n4"] == [55.0]


@pytest.mark.upstream("TestTryRemovingWhileTry")
def test_a_node_that_recovers_during_its_write_is_not_tainted_for_long() -> None:
    bench = TaintBench(*nodes(), latency=2.0)
    bench.ready("False", "n1")
    bench.run_until(1.0)
    bench.ready("True", "n1")
    bench.run_until(100.0)
    assert bench.server["n1"].taints == ()
    assert bench.executed() == [(0.0, "n1")]


def test_what_was_written_is_told_with_its_reasons_once_it_is_done() -> None:
    bench = TaintBench(*nodes(), results=failing(FAILED), latency=1.0)
    bench.condition("n1", "DiskPressure", "True", "KubeletHasDiskPressure")
    bench.run_until(100.0)
    ((at, told),) = bench.of(TaintsChanged)
    assert at == times(bench)[1] + 1.0
    assert (told.node.name, [taint.key for taint in told.change.added]) == ("n1", ["node.kubernetes.io/disk-pressure"])
    assert told.reasons == {
        (told.change.added[0].key, NO_SCHEDULE): "condition DiskPressure is True (KubeletHasDiskPressure)"
    }


def test_a_write_whose_answer_shows_no_node_is_not_repeated_before_the_watch_shows_it() -> None:
    bench = TaintBench(*nodes(), latency=1e9)
    bench.ready("False", "n1")
    for _ in range(5):
        bench.tell(NodeWritten("n1", DONE))
    assert len(times(bench)) == 1
    written = replace(bench.server["n1"], taints=bench.writes()[0][1].change.taints, resource_version="9")
    bench.tell(NodeSeen(written))
    bench.tell(NodeSeen(replace(written, resource_version="10", conditions=nodes()[0].conditions)))
    assert len(times(bench)) == 2


def test_answers_about_nodes_that_are_gone_change_nothing() -> None:
    bench = TaintBench(*nodes(), latency=1.0)
    bench.ready("False", "n1")
    bench.delete("n1")
    bench.tell(NodeGone("n1"))
    bench.run_until(10.0)
    bench.tell(NodeWritten("n1", DONE), NodeWritten("n2", FAILED), NodeWritten("unheard", DONE))
    bench.run_until(100.0)
    assert len(bench.of(PatchTaints)) == 1
    assert bench.of(TaintsChanged) == []


def test_a_restart_writes_what_is_missing_and_nothing_twice() -> None:
    bench = TaintBench(*nodes(), latency=1.0)
    bench.ready("False", "n1", "n2")
    bench.run_until(5.0)
    bench.restart()
    bench.run_until(100.0)
    assert bench.keys("n1", NO_EXECUTE) == bench.keys("n2", NO_EXECUTE) == {"not-ready"}
    written = len(bench.of(PatchTaints))
    bench.restart()
    bench.run_until(200.0)
    assert len(bench.of(PatchTaints)) == written


def test_a_write_that_failed_is_not_retried_to_add_while_knowledge_is_stale() -> None:
    bench = TaintBench(*nodes(), results=failing(FAILED))
    bench.ready("False", "n1")
    bench.tell(Knowledge(False))
    bench.run_until(100.0)
    assert len(times(bench)) == 1
    bench.tell(Knowledge(True))
    assert bench.keys(effect=NO_SCHEDULE) == bench.keys(effect=NO_EXECUTE) == {"not-ready"}
