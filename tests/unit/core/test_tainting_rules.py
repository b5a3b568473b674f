"""Rules in the taint engine: when their taints come and go, and what is remembered, reported and left alone."""

from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.core.first_seen import NOT_READY, UNREACHABLE
from taintkeeper.core.messages import Knowledge, NodeSeen, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node, Taint
from taintkeeper.core.rules import Limit, RuleStatus, WriteRuleStatus
from taintkeeper.core.taint_messages import PatchTaints, TaintsChanged
from tests.unit.core.builders import FOREIGN, node
from tests.unit.core.rule_bench import DEADLOCK, rule
from tests.unit.core.tainting_bench import TaintBench, failing

ID = (DEADLOCK, NO_SCHEDULE)
WELL = {"Ready": "True", "KernelDeadlock": "False"}
SICK = {"Ready": "True", "KernelDeadlock": "True"}
PRESSURE = "node.kubernetes.io/memory-pressure"


def nodes(count: int = 5, conditions: dict[str, str] | None = None) -> list[Node]:
    return [node(f"n{number}", FOREIGN, conditions=conditions or WELL) for number in range(1, count + 1)]


def numbers(bench: TaintBench, name: str = "deadlock") -> tuple[int, int, int, int]:
    status = bench.statuses[name]
    return status.matched, status.waiting, status.tainted, status.held_back


def active(bench: TaintBench, name: str = "deadlock") -> tuple[str, str]:
    found = bench.statuses[name].condition("Active")
    assert found is not None
    return found.status, found.reason


def tainted(bench: TaintBench, key: str = DEADLOCK) -> set[str]:
    return {name for name, each in bench.server.items() if any(taint.key == key for taint in each.taints)}


@pytest.mark.reported("kubernetes/node-problem-detector#457")
def test_a_condition_that_lasts_long_enough_taints_the_node_and_goes_once_it_is_clear_for_long_enough() -> None:
    bench = TaintBench(*nodes(), rules=[rule(for_seconds=60.0, clear_seconds=120.0)])
    bench.run_until(100.0)
    bench.condition("n1", "KernelDeadlock", "True", "DockerHung")
    bench.run_until(1000.0)
    bench.condition("n1", "KernelDeadlock", "False")
    bench.run_until(2000.0)
    assert [at for at, _ in bench.of(PatchTaints)] == [160.0, 1120.0]
    added, removed = (effect for _, effect in bench.of(TaintsChanged))
    assert added.change.added == (Taint(DEADLOCK, NO_SCHEDULE, time_added=160.0),)
    assert added.reasons == {ID: "condition KernelDeadlock is True (DockerHung), by rule deadlock"}
    assert removed.reasons == {ID: "condition KernelDeadlock is no longer True, by rule deadlock"}


@pytest.mark.reported("kubernetes/kubernetes#115516")
def test_a_built_in_taint_with_a_clear_time_costs_two_writes_however_the_condition_flaps() -> None:
    made = rule(condition_type="DiskPressure", key="node.kubernetes.io/disk-pressure", clear_seconds=300.0)
    bench = TaintBench(*nodes(), rules=[made])
    for _ in range(3):
        bench.condition("n1", "DiskPressure", "True")
        bench.run_until(bench.now + 20.0)
        bench.condition("n1", "DiskPressure", "False")
        bench.run_until(bench.now + 20.0)
    bench.run_until(1000.0)
    assert [at for at, _ in bench.of(PatchTaints)] == [0.0, 400.0]
    bench.condition("n2", "DiskPressure", "True")
    assert bench.of(TaintsChanged)[-1][1].reasons == {
        (made.key, NO_SCHEDULE): "condition DiskPressure is True, by rule deadlock"
    }


def test_all_that_a_node_needs_goes_in_one_write_with_what_it_is_to_remember() -> None:
    bench = TaintBench(*nodes(), rules=[rule(), rule("hot", key="hot", condition_type="MemoryPressure", value="yes")])
    bench.change("n1", conditions=node(conditions={**SICK, "MemoryPressure": "True"}).conditions)
    ((_, patch),) = bench.of(PatchTaints)
    assert {str(taint) for taint in patch.change.added} == {
        f"{PRESSURE}:NoSchedule",
        f"{DEADLOCK}:NoSchedule",
        "hot=yes:NoSchedule",
    }
    assert patch.rule_taints == {ID: "deadlock", ("hot", NO_SCHEDULE): "hot"}
    assert bench.server["n1"].taints[0] is FOREIGN


def test_what_a_node_remembers_is_right_whatever_fails() -> None:
    bench = TaintBench(*nodes(), rules=[rule()], results=failing(*[WriteResult.FAILED] * 3, WriteResult.CONFLICT))
    bench.condition("n1", "KernelDeadlock", "True")
    bench.run_until(60.0)
    assert bench.server["n1"].rule_taints == {ID: "deadlock"}
    assert tainted(bench) == {"n1"}


def test_a_write_about_built_in_taints_alone_leaves_what_the_node_remembers_as_it_is() -> None:
    bench = TaintBench(*nodes(), rules=[rule()])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.condition("n1", "MemoryPressure", "True")
    assert bench.writes()[-1][1].rule_taints is None
    assert bench.server["n1"].rule_taints == {ID: "deadlock"}


def test_too_many_nodes_that_suffer_keep_others_from_the_taint_and_its_removal_works() -> None:
    bench = TaintBench(*nodes(), rules=[rule(limit=Limit(40, percent=True))])
    for name in ("n1", "n2", "n3"):
        bench.condition(name, "KernelDeadlock", "True")
        bench.run_until(bench.now + 10.0)
    assert tainted(bench) == {"n1", "n2"}
    assert numbers(bench) == (5, 0, 2, 1)
    assert active(bench) == ("False", "MaxUnhealthy")
    bench.condition("n1", "KernelDeadlock", "False")
    bench.run_until(bench.now + 10.0)
    assert tainted(bench) == {"n2", "n3"}
    assert (numbers(bench), active(bench)) == ((5, 0, 2, 0), ("True", "InForce"))


def test_who_suffers_when_we_begin_is_judged_as_a_whole() -> None:
    bench = TaintBench(*nodes(5, SICK), rules=[rule(limit=Limit(4))])
    assert bench.of(PatchTaints) == []
    assert numbers(bench) == (5, 0, 0, 5)


def test_hold_and_clear_times_go_on_after_a_restart() -> None:
    bench = TaintBench(*nodes(), rules=[rule(for_seconds=60.0, clear_seconds=60.0)])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.run_until(40.0)
    bench.restart()
    bench.run_until(100.0)
    bench.condition("n1", "KernelDeadlock", "False")
    bench.run_until(140.0)
    bench.restart()
    bench.run_until(1000.0)
    assert [at for at, _ in bench.of(PatchTaints)] == [60.0, 160.0]


def test_a_deleted_rule_takes_its_taints_with_it() -> None:
    bench = TaintBench(*nodes(), rules=[rule(clear_seconds=3600.0)])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.delete_rule("deadlock")
    assert bench.server["n1"].taints == (FOREIGN,)
    assert bench.server["n1"].rule_taints == {}
    assert bench.of(TaintsChanged)[-1][1].reasons == {ID: "rule deadlock is gone"}


@pytest.mark.reported("kubernetes-sigs/node-readiness-controller#382")
def test_a_rule_that_was_deleted_while_we_were_down_takes_its_taints_with_it() -> None:
    bench = TaintBench(*nodes(), rules=[rule(clear_seconds=3600.0)])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.delete_rule("deadlock", seen=False)
    bench.restart()
    assert (bench.server["n1"].taints, bench.server["n1"].rule_taints) == ((FOREIGN,), {})


def test_nothing_goes_before_all_rules_are_known() -> None:
    remembered = node("n1", Taint(DEADLOCK, NO_SCHEDULE), conditions=SICK, rule_taints={ID: "deadlock"})
    bench = TaintBench(remembered, fresh=False)
    bench.run_until(100.0)
    bench.put_rule(rule())
    bench.tell(Knowledge(True))
    bench.run_until(200.0)
    assert bench.of(PatchTaints) == []


def test_while_what_is_known_may_be_stale_taints_only_go_and_no_status_is_written() -> None:
    bench = TaintBench(*nodes(), rules=[rule(), rule("hot", key="hot", condition_type="Hot")])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.run_until(60.0)
    bench.tell(Knowledge(False))
    reported = len(bench.of(WriteRuleStatus))
    bench.condition("n2", "KernelDeadlock", "True")
    bench.condition("n1", "Hot", "True")
    bench.condition("n1", "KernelDeadlock", "False")
    bench.run_until(1000.0)
    assert (tainted(bench), tainted(bench, "hot")) == (set(), set())
    assert len(bench.of(WriteRuleStatus)) == reported
    bench.tell(Knowledge(True))
    assert (tainted(bench), tainted(bench, "hot")) == ({"n2"}, {"n1"})


def test_a_hold_that_ends_while_what_is_known_may_be_stale_taints_once_it_is_fresh() -> None:
    bench = TaintBench(*nodes(), rules=[rule(for_seconds=60.0)])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.tell(Knowledge(False))
    bench.run_until(600.0)
    assert tainted(bench) == set()
    bench.tell(Knowledge(True))
    assert tainted(bench) == {"n1"}


def test_two_rules_for_one_taint_agree_on_it_and_the_second_says_whose_value_it_has() -> None:
    first = rule("a", value="a")
    second = rule("b", value="b", condition_type="Overheated")
    bench = TaintBench(*nodes(), rules=[second, first])
    bench.condition("n1", "Overheated", "True")
    for status in ("True", "False") * 10:
        bench.condition("n1", "KernelDeadlock", status)
        bench.run_until(bench.now + 1.0)
    bench.run_until(100.0)
    assert [taint.value for taint in bench.server["n1"].taints if taint.key == DEADLOCK] == ["a"]
    assert len(bench.of(PatchTaints)) == 1
    assert (active(bench, "a"), active(bench, "b")) == (("True", "InForce"), ("False", "Superseded"))
    bench.condition("n1", "Overheated", "False")
    assert tainted(bench) == set()


def test_a_dry_run_writes_nothing_to_nodes_and_says_what_it_would_do() -> None:
    bench = TaintBench(*nodes(), rules=[rule(dry_run=True, for_seconds=60.0)])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.run_until(10.0)
    assert numbers(bench) == (5, 1, 0, 0)
    bench.run_until(100.0)
    assert (numbers(bench), active(bench)) == ((5, 0, 1, 0), ("False", "DryRun"))
    assert bench.of(PatchTaints) == []
    bench.put_rule(rule(for_seconds=60.0))
    assert tainted(bench) == {"n1"}
    bench.put_rule(rule(dry_run=True, for_seconds=60.0))
    assert tainted(bench) == set()


def test_a_taint_that_somebody_else_set_does_as_well_and_is_never_changed_or_removed() -> None:
    theirs = Taint(DEADLOCK, NO_SCHEDULE, "theirs")
    bench = TaintBench(node("n1", theirs, conditions=WELL), rules=[rule(value="ours")])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.condition("n1", "KernelDeadlock", "False")
    bench.delete_rule("deadlock")
    assert bench.of(PatchTaints) == []
    assert bench.server["n1"].taints == (theirs,)


def test_an_edit_holds_at_once_and_nonsense_leaves_the_rule_as_it_was_and_is_reported() -> None:
    bench = TaintBench(*nodes(), rules=[rule()])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.put_rule(rule(key="other", effect=NO_EXECUTE))
    ours = [taint for taint in bench.server["n1"].taints if taint is not FOREIGN]
    assert [str(taint) for taint in ours] == ["other:NoExecute"]
    assert len(bench.of(PatchTaints)) == 2, "the old taint goes as the new one comes"
    bench.put_rule(None, name="deadlock", fault="spec.taint.key: '' is no key")
    bench.condition("n2", "KernelDeadlock", "True")
    bench.run_until(60.0)
    assert tainted(bench, "other") == {"n1", "n2"}
    accepted = bench.statuses["deadlock"].condition("Accepted")
    assert accepted is not None
    assert (accepted.status, accepted.message) == (
        "False",
        "spec.taint.key: '' is no key; the last version that made sense stays in force",
    )
    assert bench.statuses["deadlock"].generation == 3


def test_a_status_is_written_when_something_changes_and_never_otherwise() -> None:
    bench = TaintBench(*nodes(), rules=[rule()], latency=0.5)
    bench.run_until(3600.0)
    assert [at for at, _ in bench.of(WriteRuleStatus)] == [0.0]
    for name in bench.server:
        bench.condition(name, "KernelDeadlock", "True")
    bench.run_until(7200.0)
    assert [at for at, _ in bench.of(WriteRuleStatus)] == [0.0, 3600.0, 3605.0]
    bench.restart()
    bench.run_until(9000.0)
    assert len(bench.of(WriteRuleStatus)) == 3
    assert bench.statuses["deadlock"] == RuleStatus(1, 5, 0, 5, 0, bench.statuses["deadlock"].conditions)


def test_a_node_that_comes_back_under_its_name_is_another_one() -> None:
    bench = TaintBench(*nodes(), rules=[rule(for_seconds=60.0)])
    bench.condition("n1", "KernelDeadlock", "True")
    bench.run_until(50.0)
    bench.delete("n1")
    bench.add(replace(nodes()[0], uid="second"))
    bench.condition("n1", "KernelDeadlock", "True")
    bench.run_until(100.0)
    assert tainted(bench) == set()
    bench.run_until(110.0)
    assert tainted(bench) == {"n1"}
    bench.delete("n1")
    bench.run_until(200.0)
    assert numbers(bench) == (4, 0, 0, 0)


def test_a_node_that_is_no_longer_selected_loses_the_taint() -> None:
    made: dict[str, Any] = {"labels": {"pool": "gpu"}}
    bench = TaintBench(node("n1", conditions=SICK, **made), rules=[rule()])
    assert tainted(bench) == {"n1"}
    bench.tell(NodeSeen(bench.server["n1"]))
    assert len(bench.of(PatchTaints)) == 1


NOT_READY_LATE = rule("calm", condition_type="Ready", condition_status="False", key=NOT_READY, for_seconds=60.0)


def brought(bench: TaintBench) -> set[str]:
    """Return what n1 has of built-in taints."""
    return {str(taint) for taint in bench.server["n1"].taints} - {str(FOREIGN)}


def test_a_rule_that_delays_the_successor_of_a_taint_leaves_the_taint_until_then_and_its_time_counts_on() -> None:
    bench = TaintBench(*nodes(), rules=[NOT_READY_LATE])
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(40.0)
    assert brought(bench) == {f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"}
    bench.condition("n1", "Ready", "False")
    bench.run_until(99.0)
    assert brought(bench) == {f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"}
    bench.run_until(101.0)
    assert brought(bench) == {f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"}
    assert {taint.time_added for taint in bench.server["n1"].taints if taint.key == NOT_READY} == {0.0}
    bench.condition("n1", "Ready", "True")
    assert brought(bench) == set()


def test_a_node_that_recovers_while_a_rule_delays_the_successor_loses_its_taints() -> None:
    bench = TaintBench(*nodes(), rules=[NOT_READY_LATE])
    bench.condition("n1", "Ready", "Unknown")
    bench.condition("n1", "Ready", "False")
    bench.run_until(30.0)
    bench.condition("n1", "Ready", "True")
    assert brought(bench) == set()


def test_a_node_that_fails_again_within_the_clear_time_of_a_rule_gets_its_no_execute_back() -> None:
    bench = TaintBench(*nodes(), rules=[replace(NOT_READY_LATE, for_seconds=30.0, clear_seconds=300.0)])
    bench.condition("n1", "Ready", "False")
    bench.run_until(40.0)
    bench.condition("n1", "Ready", "True")
    bench.run_until(100.0)
    assert brought(bench) == {f"{NOT_READY}:NoSchedule"}
    bench.condition("n1", "Ready", "False")
    bench.run_until(101.0)
    assert brought(bench) == {f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"}
    assert bench.of(TaintsChanged)[-1][1].reasons == {(NOT_READY, NO_EXECUTE): "condition Ready is False"}


@pytest.mark.parametrize("blind", [True, False])
def test_a_condition_that_came_back_while_nobody_looked_has_to_hold_anew(blind: bool) -> None:
    bench = TaintBench(*nodes(), rules=[rule(for_seconds=600.0)])
    sick = Condition("KernelDeadlock", "True", transition=0.0)
    bench.change("n1", conditions=(Condition("Ready", "True"), sick))
    bench.tell(Knowledge(False), Knowledge(True))
    bench.run_until(500.0)
    bench.tell(Knowledge(not blind))
    bench.run_until(590.0)
    bench.change("n1", conditions=(Condition("Ready", "True"), replace(sick, transition=585.0)))
    bench.tell(Knowledge(True))
    bench.run_until(2000.0)
    assert [at for at, _ in bench.of(PatchTaints)] == [1185.0 if blind else 600.0]


def test_a_condition_that_nobody_saw_change_holds_on_however_wrong_the_clock_of_its_node() -> None:
    bench = TaintBench(*nodes(), rules=[rule(for_seconds=600.0)])
    ahead = Condition("KernelDeadlock", "True", transition=900.0)
    bench.change("n1", conditions=(Condition("Ready", "True"), ahead))
    bench.run_until(500.0)
    bench.tell(Knowledge(False), NodeSeen(bench.server["n1"]), Knowledge(True))
    bench.run_until(2000.0)
    assert [at for at, _ in bench.of(PatchTaints)] == [600.0]


def test_a_rule_keeps_no_sibling_beside_a_taint_that_is_there_already() -> None:
    bench = TaintBench(*nodes(), rules=[replace(NOT_READY_LATE, for_seconds=30.0, clear_seconds=300.0)])
    bench.condition("n1", "Ready", "False")
    bench.run_until(40.0)
    bench.condition("n1", "Ready", "True")
    bench.run_until(100.0)
    bench.condition("n1", "Ready", "False")
    bench.change("n1", taints=(*bench.server["n1"].taints, Taint(UNREACHABLE, NO_SCHEDULE)))
    bench.run_until(101.0)
    assert brought(bench) == {f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"}
