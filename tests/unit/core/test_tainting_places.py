"""How many writes are under way at once, and who comes first when there are more."""

from typing import Any

import pytest

from taintkeeper.core.messages import NodeWritten, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.taint_messages import PatchTaints
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates
from tests.unit.core.builders import node, not_ready
from tests.unit.core.tainting_bench import TaintBench

READY = {"Ready": "True"}
UNDER_PRESSURE = {"Ready": "True", "DiskPressure": "True"}


def many(count: int, prefix: str = "n", **facts: object) -> list[Node]:
    return [node(f"{prefix}{number}", **{"conditions": READY, **facts}) for number in range(count)]


def slow(*nodes: Node, places: int = 256, seconds: float = 2.0, **options: Any) -> TaintBench:
    """Return a bench whose writes take so long, so many at once."""
    return TaintBench(*nodes, options=TaintOptions(concurrency=places, **options), latency=seconds)


def order(bench: TaintBench) -> list[str]:
    return [patch.node.name for _, patch in bench.of(PatchTaints)]


@pytest.mark.reported("kubernetes/kubernetes#110341")
def test_five_hundred_nodes_that_fail_at_once_have_their_taint_within_five_seconds_of_a_slow_server() -> None:
    bench = TaintBench(*many(500), *many(500, "well"), latency=2.0)
    bench.ready("False", *(f"n{number}" for number in range(500)))
    bench.run_until(4.9)
    assert all(bench.keys(f"n{number}", NO_SCHEDULE) == {"not-ready"} for number in range(500))


@pytest.mark.reported("kubernetes/kubernetes#110341")
def test_five_hundred_nodes_that_recover_at_once_are_free_within_five_seconds_of_a_slow_server() -> None:
    bench = TaintBench(*(node(f"n{number}", not_ready(), conditions=READY) for number in range(500)), latency=2.0)
    bench.run_until(4.9)
    assert all(each.taints == () for each in bench.server.values())


def test_no_more_writes_are_under_way_than_there_are_places() -> None:
    bench = slow(*many(10, conditions=UNDER_PRESSURE), places=4)
    assert len(bench.of(PatchTaints)) == 4
    bench.run_until(100.0)
    assert [at for at, _ in bench.of(PatchTaints)] == [0.0] * 4 + [2.0] * 4 + [4.0] * 2


def test_those_who_wait_are_written_in_order_of_arrival() -> None:
    bench = slow(*many(6, conditions=UNDER_PRESSURE), places=1)
    bench.run_until(100.0)
    assert order(bench) == [f"n{number}" for number in range(6)]


def test_a_node_that_waits_is_planned_anew_when_it_is_its_turn() -> None:
    bench = slow(*many(2, conditions=UNDER_PRESSURE), places=1)
    bench.run_until(1.0)
    bench.condition("n1", "PIDPressure", "True")
    bench.run_until(100.0)
    assert bench.keys("n1") == {"disk-pressure", "pid-pressure"}
    assert len(bench.writes("n1")) == 1


def test_a_node_that_needs_nothing_any_more_when_it_is_its_turn_costs_no_place() -> None:
    bench = slow(*many(3, conditions=UNDER_PRESSURE), places=1)
    bench.run_until(1.0)
    bench.condition("n1", "DiskPressure", "False")
    bench.run_until(2.0)
    assert order(bench) == ["n0", "n2"]


def test_no_execute_waits_behind_no_schedule_and_removals() -> None:
    waiting = [node(f"a{number}", conditions={"Ready": "False"}) for number in range(2)]
    bench = slow(*waiting, *many(8), places=2, rates=Rates(normal=0.25))
    for at, names in ((3.0, ("n0", "n1")), (4.5, ("n2",))):
        bench.run_until(at)
        for name in names:
            bench.condition(name, "DiskPressure", "True")
    bench.ready("True", "a0")
    bench.run_until(100.0)
    assert order(bench)[4:] == ["n2", "a0", "a1"]
    assert bench.executed()[-1] == (7.0, "a1")


def test_a_node_that_is_deleted_while_it_waits_is_forgotten() -> None:
    bench = slow(*many(3, conditions=UNDER_PRESSURE), places=1)
    bench.delete("n1")
    bench.run_until(100.0)
    assert order(bench) == ["n0", "n2"]


def test_a_node_that_is_deleted_while_its_no_execute_waits_is_forgotten() -> None:
    waiting = [node(f"a{number}", conditions={"Ready": "False"}) for number in range(2)]
    bench = slow(*waiting, *many(8), places=1, rates=Rates(normal=0.2))
    bench.run_until(4.5)
    bench.condition("n0", "DiskPressure", "True")
    bench.run_until(5.5)
    bench.delete("a1")
    bench.run_until(100.0)
    assert order(bench) == ["a0", "a1", "n0"]


def test_a_node_that_is_deleted_during_its_write_gives_its_place_back_when_that_is_answered() -> None:
    bench = slow(*many(3, conditions=UNDER_PRESSURE), places=1)
    bench.delete("n0")
    bench.run_until(1.9)
    assert order(bench) == ["n0"]
    bench.run_until(100.0)
    assert order(bench) == ["n0", "n1", "n2"]


def test_the_answer_about_an_old_node_is_not_taken_for_one_about_the_new_one() -> None:
    bench = slow(*many(5), places=2)
    bench.condition("n0", "DiskPressure", "True")
    old = bench.writes("n0")[0][1].node
    bench.add(node("n0", uid="second", conditions=UNDER_PRESSURE))
    bench.tell(NodeWritten("n0", WriteResult.DONE, old))
    bench.ready("Unknown", "n0")
    assert len(bench.writes("n0")) == 2
    bench.run_until(100.0)
    assert bench.server["n0"].uid == "second"
    assert bench.keys("n0", NO_EXECUTE) == {"unreachable"}


def test_answers_that_nobody_waits_for_make_no_places() -> None:
    bench = slow(*many(10), places=2)
    bench.tell(*(NodeWritten("n9", WriteResult.FAILED) for _ in range(5)))
    for number in range(8):
        bench.condition(f"n{number}", "DiskPressure", "True")
    assert len(bench.of(PatchTaints)) == 2


def test_there_are_places_for_two_hundred_and_fifty_six_writes_unless_chosen_otherwise() -> None:
    assert TaintOptions().concurrency == 256
