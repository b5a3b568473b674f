"""Which taints a node gets: by its conditions, at once or when its zone has a token."""

from typing import Any

import pytest

from taintkeeper.core.messages import Knowledge, NodeSeen
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node, Taint
from taintkeeper.core.taint_messages import PatchTaints
from tests.unit.core.builders import FOREIGN, LONG_AGO, case, node, not_ready, reported, unreachable
from tests.unit.core.tainting_bench import TaintBench

PREFIX = "node.kubernetes.io/"
READY = {"Ready": "True"}


def closed(key: str) -> Taint:
    return Taint(PREFIX + key, NO_SCHEDULE, time_added=0.0)


def healthy(name: str, *taints: Taint, **facts: object) -> Node:
    return node(name, *taints, conditions=READY, **facts)


def cluster(*nodes: Node, **options: Any) -> TaintBench:
    """Return a bench with these nodes and two healthy ones, so that the zone is not disrupted."""
    return TaintBench(*nodes, healthy("other-1"), healthy("other-2"), **options)


def both(bench: TaintBench, name: str = "n1") -> tuple[set[str], set[str]]:
    return bench.keys(name, NO_SCHEDULE), bench.keys(name, NO_EXECUTE)


@pytest.mark.parametrize(
    ("conditions", "taints", "expected"),
    [
        case(
            "TestTaintsNodeByCondition: NetworkUnavailable is true",
            {**READY, "NetworkUnavailable": "True"}, (), ({"network-unavailable"}, set()),
        ),
        case(
            "TestTaintsNodeByCondition: NetworkUnavailable is true, beside a taint that is out of date",
            {**READY, "NetworkUnavailable": "True"}, (closed("memory-pressure"),), ({"network-unavailable"}, set()),
        ),
        case(
            "TestTaintsNodeByCondition: Ready is false",
            {"Ready": "False"}, (closed("network-unavailable"),), ({"not-ready"}, {"not-ready"}),
        ),
        case(
            "TestTaintsNodeByCondition: Ready is unknown",
            {"Ready": "Unknown"}, (closed("not-ready"),), ({"unreachable"}, {"unreachable"}),
        ),
        case("TestApplyNoExecuteTaints: Unknown node", {"Ready": "Unknown"}, (), ({"unreachable"}, {"unreachable"})),
        case("TestApplyNoExecuteTaints: False node", {"Ready": "False"}, (), ({"not-ready"}, {"not-ready"})),
        case(
            "TestApplyNoExecuteTaints: recovering node",
            READY, (closed("not-ready"), not_ready(), closed("unreachable"), unreachable()), (set(), set()),
        ),
        case("TestApplyNoExecuteTaints: node without Ready condition", {"DiskPressure": "False"}, (), (set(), set())),
        reported(
            "kubernetes/kubernetes#76325", "a disk that is full",
            {**READY, "DiskPressure": "True"}, (), ({"disk-pressure"}, set()),
        ),
    ],
)  # fmt: skip
def test_a_node_gets_the_taints_of_its_conditions(
    conditions: dict[str, str], taints: tuple[Taint, ...], expected: tuple[set[str], set[str]]
) -> None:
    bench = cluster(node("n1", *taints, FOREIGN, conditions=conditions))
    bench.run_until(100.0)
    no_schedule, no_execute = expected
    assert both(bench) == ({*no_schedule, FOREIGN.key}, no_execute)


@pytest.mark.reported("kubernetes/kubernetes#76325")
def test_a_pressure_taint_does_not_wait_for_a_token() -> None:
    bench = TaintBench(*(healthy(f"n{number}") for number in range(30)))
    bench.run_until(50.0)
    for name in bench.server:
        bench.condition(name, "DiskPressure", "True")
    assert [at for at, _ in bench.of(PatchTaints)] == [50.0] * 30
    assert all(bench.keys(name) == {"disk-pressure"} for name in bench.server)


def test_all_that_a_node_needs_is_one_write() -> None:
    old = (closed("memory-pressure"), closed("pid-pressure"), unreachable(), closed("unreachable"))
    conditions = {"Ready": "False", "DiskPressure": "True", "NetworkUnavailable": "True"}
    bench = cluster(node("n1", *old, conditions=conditions, unschedulable=True))
    bench.run_until(100.0)
    assert len(bench.writes()) == 1
    assert both(bench) == ({"not-ready", "disk-pressure", "network-unavailable", "unschedulable"}, {"not-ready"})


@pytest.mark.upstream("TestSwapUnreachableNotReadyTaints")
@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [("Unknown", "False", {"not-ready"}), ("False", "Unknown", {"unreachable"})],
)
def test_swapping_is_one_write_at_once_and_keeps_the_time(before: str, after: str, keys: set[str]) -> None:
    bench = cluster(healthy("n1"), healthy("n2"))
    bench.ready(before, "n1")
    bench.ready("False", "n2")
    bench.run_until(1.0)
    bench.ready(after, "n1")
    assert both(bench) == (keys, keys)
    assert [at for at, _ in bench.writes()] == [0.0, 1.0]
    assert {taint.time_added for taint in bench.server["n1"].taints} == {0.0}
    assert bench.keys("n2", NO_EXECUTE) == set()


@pytest.mark.upstream("TestApplyNoExecuteTaintsToUnreachableNode")
def test_only_the_node_that_fell_silent_is_tainted_and_its_next_heartbeat_frees_it() -> None:
    bench = cluster(healthy("n1"), healthy("n2"))
    bench.run_until(600.0)
    bench.ready("Unknown", "n1")
    bench.run_until(601.0)
    assert (both(bench), both(bench, "n2")) == (({"unreachable"}, {"unreachable"}), (set(), set()))
    bench.ready("True", "n1")
    assert both(bench) == (set(), set())


@pytest.mark.reported("kubernetes/kubernetes#101599")
def test_a_node_is_tainted_in_the_same_pass_in_which_it_gets_its_token() -> None:
    bench = cluster(healthy("n1"))
    bench.ready("Unknown", "n1")
    assert bench.executed() == [(0.0, "n1")]


def test_on_recovery_all_taints_go_in_one_write_without_a_token() -> None:
    bench = cluster(healthy("n1"), healthy("n2"))
    bench.ready("Unknown", "n1")
    bench.ready("Unknown", "n2")
    bench.run_until(5.0)
    bench.ready("True", "n1")
    assert both(bench) == (set(), set())
    assert len(bench.writes()) == 2


@pytest.mark.reported("kubernetes-sigs/node-readiness-controller#382")
@pytest.mark.reported("kubernetes/autoscaler#5657")
@pytest.mark.parametrize(
    ("taints", "unschedulable"),
    [
        ((closed("unreachable"), unreachable()), False),
        ((closed("disk-pressure"), closed("memory-pressure"), closed("pid-pressure")), False),
        ((closed("network-unavailable"), closed("unschedulable")), False),
    ],
)
def test_taints_whose_reason_is_gone_are_removed_at_the_start(
    taints: tuple[Taint, ...], *, unschedulable: bool
) -> None:
    bench = cluster(healthy("n1", FOREIGN, *taints, unschedulable=unschedulable))
    assert bench.server["n1"].taints == (FOREIGN,)


def test_a_cordoned_node_is_tainted_and_freed_with_its_field() -> None:
    bench = cluster(healthy("n1"))
    bench.change("n1", unschedulable=True)
    assert bench.keys() == {"unschedulable"}
    bench.change("n1", unschedulable=False)
    assert bench.keys() == set()


def test_nothing_is_written_before_all_nodes_are_listed() -> None:
    bench = TaintBench(node("n1", unreachable(), conditions={"Ready": "True", "DiskPressure": "True"}), fresh=False)
    bench.run_until(100.0)
    assert (bench.log, bench.engine.wake_at(100.0)) == ([], None)
    bench.tell(Knowledge(True))
    assert both(bench) == ({"disk-pressure"}, set())


def test_with_stale_knowledge_taints_go_but_none_comes() -> None:
    bench = cluster(healthy("n1", closed("disk-pressure")), healthy("n2"))
    bench.condition("n1", "DiskPressure", "True")
    bench.tell(Knowledge(False))
    bench.condition("n1", "DiskPressure", "False")
    bench.ready("False", "n2")
    bench.run_until(100.0)
    assert (both(bench, "n1"), both(bench, "n2")) == ((set(), set()), (set(), set()))
    bench.tell(Knowledge(True))
    assert both(bench, "n2") == ({"not-ready"}, {"not-ready"})


def test_a_node_that_is_deleted_and_created_again_is_a_new_node() -> None:
    bench = cluster(healthy("n1"), healthy("n2"))
    bench.ready("False", "n1")
    bench.delete("n1")
    bench.run_until(1.0)
    bench.add(node("n1", uid="second", conditions={"Ready": "False"}))
    assert both(bench) == ({"not-ready"}, set())
    bench.run_until(20.0)
    assert both(bench) == ({"not-ready"}, {"not-ready"})


def test_a_new_uid_under_the_same_name_is_a_new_node_too() -> None:
    bench = cluster(healthy("n1", resource_version="50"))
    bench.ready("False", "n1")
    bench.add(node("n1", uid="second", resource_version="7", conditions={"Ready": "False"}))
    ((_, first), (_, second)) = bench.writes()
    assert (first.node.uid, second.node.uid) == ("n1-uid", "second")
    assert {taint.effect for taint in second.change.added} == {NO_SCHEDULE}


def test_an_earlier_state_of_a_node_that_comes_late_is_ignored() -> None:
    bench = cluster(healthy("n1", resource_version="9", created=LONG_AGO))
    bench.tell(NodeSeen(node("n1", resource_version="8", conditions={"Ready": "False"})))
    assert bench.writes() == []
