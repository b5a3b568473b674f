"""A node that shuts down in order is left to its kubelet for a while."""

from dataclasses import replace

import pytest

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node, Taint
from taintkeeper.core.tainting import TaintOptions
from tests.unit.core.builders import node
from tests.unit.core.tainting_bench import TaintBench

pytestmark = pytest.mark.reported("kubernetes/kubernetes#124448")


def bench(*nodes: Node, grace: float = 30.0) -> TaintBench:
    others = [node(f"other{index}", conditions={"Ready": "True"}) for index in range(3)]
    return TaintBench(*others, *nodes, options=TaintOptions(shutdown_seconds=grace), start=1000.0)


def shut_down(cluster: TaintBench) -> None:
    not_ready = node("n1", conditions={"Ready": "False"})
    cluster.change("n1", conditions=not_ready.conditions, shutting_down=True)


def healthy() -> Node:
    return node("n1", conditions={"Ready": "True"})


def test_a_node_that_shuts_down_gets_no_execute_only_after_its_grace_period() -> None:
    cluster = bench(healthy())
    shut_down(cluster)
    assert cluster.keys() == {"not-ready"}
    cluster.run_until(2000.0)
    assert cluster.executed() == [(1030.0, "n1")]


def test_without_a_grace_period_a_node_that_shuts_down_is_as_any_other() -> None:
    cluster = bench(healthy(), grace=0.0)
    shut_down(cluster)
    assert cluster.executed() == [(1000.0, "n1")]


def test_a_node_that_fails_without_shutting_down_is_not_spared() -> None:
    cluster = bench(healthy())
    cluster.ready("False", "n1")
    assert cluster.executed() == [(1000.0, "n1")]


def test_a_node_that_comes_back_in_time_gets_no_execute() -> None:
    cluster = bench(healthy())
    shut_down(cluster)
    cluster.run_until(1020.0)
    cluster.change("n1", conditions=healthy().conditions, shutting_down=False)
    cluster.run_until(2000.0)
    assert cluster.executed() == []
    assert cluster.keys() == set()


def test_a_node_that_falls_silent_while_it_shuts_down_is_spared_no_longer() -> None:
    cluster = bench(healthy())
    shut_down(cluster)
    cluster.run_until(1010.0)
    silent = node("n1", conditions={"Ready": "Unknown"})
    cluster.change("n1", conditions=silent.conditions, shutting_down=False)
    assert cluster.executed() == [(1010.0, "n1")]


def test_a_restart_does_not_prolong_the_grace_period() -> None:
    cluster = bench(healthy())
    shut_down(cluster)
    cluster.run_until(1020.0)
    cluster.restart()
    cluster.run_until(2000.0)
    assert cluster.executed() == [(1030.0, "n1")]


@pytest.mark.parametrize(
    ("added", "executed_at"),
    [
        pytest.param(None, 1000.0, id="no time"),
        pytest.param(9999.0, 1000.0, id="the future"),
        pytest.param(1002.0, 1032.0, id="a clock that is 2 s ahead"),
        pytest.param(900.0, 1000.0, id="long ago"),
    ],
)
def test_a_taint_of_another_hand_cannot_spare_the_node_for_ever(added: float | None, executed_at: float) -> None:
    theirs = Taint("node.kubernetes.io/not-ready", NO_SCHEDULE, time_added=added)
    cluster = bench(replace(node("n1", theirs, conditions={"Ready": "False"}), shutting_down=True))
    cluster.run_until(2000.0)
    assert cluster.executed() == [(executed_at, "n1")]


def test_a_node_that_has_no_execute_already_keeps_it_when_it_shuts_down() -> None:
    cluster = bench(healthy())
    cluster.ready("False", "n1")
    shut_down(cluster)
    assert cluster.keys(effect=NO_EXECUTE) == {"not-ready"}
