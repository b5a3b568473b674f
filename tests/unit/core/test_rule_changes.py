"""Rules that come, change and go, and what becomes of the taints that they brought."""

from dataclasses import replace

import pytest

from taintkeeper.core.objects import NO_EXECUTE, Condition, Taint
from tests.unit.core.builders import FOREIGN
from tests.unit.core.rule_bench import DEADLOCK, RuleBench, rule, seen

TAINTED = {f"{DEADLOCK}:NoSchedule"}
CLEAN: set[str] = set()
SICK = {"Ready": "True", "KernelDeadlock": "True"}
DAY = 86400.0
WELL = {"Ready": "True", "KernelDeadlock": "False"}


def test_a_new_rule_trusts_how_long_the_condition_says_it_has_been_there() -> None:
    bench = RuleBench()
    bench.add(conditions=SICK, since=bench.now - 30.0)
    bench.put(rule(for_seconds=60.0))
    bench.pass_time(29.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_a_rule_that_is_deleted_takes_its_taint_with_it() -> None:
    bench = RuleBench(rule(clear_seconds=300.0))
    bench.add("a", FOREIGN, conditions=SICK)
    bench.remove()
    assert bench.taints("a") == {str(FOREIGN)}
    assert bench.nodes["a"].rule_taints == {}


@pytest.mark.reported("kubernetes-sigs/node-readiness-controller#382")
def test_a_rule_that_was_deleted_while_nobody_looked_takes_its_taint_with_it() -> None:
    bench = RuleBench(rule())
    bench.add("a", FOREIGN, conditions=SICK)
    bench.restart()
    assert bench.taints("a") == {str(FOREIGN)}


def test_before_all_rules_are_listed_no_taint_is_taken_for_an_orphan() -> None:
    bench = RuleBench(complete=False)
    bench.add("a", Taint(DEADLOCK, NO_EXECUTE), conditions=SICK, rule_taints={(DEADLOCK, NO_EXECUTE): "deadlock"})
    assert bench.writes == []
    bench.book.rely()
    bench.settle()
    assert bench.writes == [f"a -{DEADLOCK}:NoExecute"]


def test_a_rule_with_another_taint_swaps_it_in_one_write() -> None:
    bench = RuleBench(rule())
    bench.add(conditions=SICK)
    bench.writes.clear()
    bench.put(rule(key="other"), version=2)
    assert bench.writes == [f"n1 +other:NoSchedule -{DEADLOCK}:NoSchedule"]
    bench.put(rule(key="other", effect=NO_EXECUTE), version=3)
    assert bench.taints() == {"other:NoExecute"}


def test_a_rule_with_another_value_replaces_the_taint_by_a_new_one() -> None:
    bench = RuleBench(rule(value="a"))
    bench.add(conditions=SICK)
    bench.pass_time(60.0)
    bench.put(rule(value="b"), version=2)
    assert [str(taint) for taint in bench.nodes["n1"].taints] == [f"{DEADLOCK}=b:NoSchedule"]
    assert bench.nodes["n1"].taints[0].time_added == bench.now


def test_other_times_hold_for_what_is_under_way() -> None:
    bench = RuleBench(rule(for_seconds=3600.0))
    bench.add(conditions=WELL)
    bench.report(KernelDeadlock="True")
    bench.pass_time(60.0)
    bench.put(rule(for_seconds=90.0), version=2)
    bench.pass_time(29.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_another_condition_is_another_case() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions={**SICK, "Overheated": "True"}, since=0.0)
    assert bench.taints() == TAINTED
    bench.put(rule(condition_type="ReadonlyFilesystem", for_seconds=60.0), version=2)
    assert bench.taints() == TAINTED, "nothing is known of that condition"
    bench.put(rule(condition_status="False", for_seconds=60.0), version=3)
    assert bench.taints() == CLEAN
    assert bench.numbers() == (1, 0, 0, 0)


def test_an_edit_of_the_times_does_not_begin_to_trust_the_nodes_clock() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=WELL)
    sick = tuple(Condition(type_, status, transition=bench.now - DAY) for type_, status in SICK.items())
    bench.see(replace(bench.nodes["n1"], conditions=sick))
    bench.put(rule(for_seconds=50.0), version=2)
    bench.pass_time(49.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_an_edit_of_the_condition_counts_how_long_the_other_one_has_been_there() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=SICK, since=bench.now)
    bench.pass_time(100.0)
    bench.report(Overheated="True")
    bench.put(rule(condition_type="Overheated", key="hot", for_seconds=60.0), version=2)
    bench.pass_time(59.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == {"hot:NoSchedule"}


def test_a_rule_that_is_seen_again_as_it_was_has_no_node_looked_at() -> None:
    bench = RuleBench(rule())
    bench.add(conditions=SICK)
    bench.book.put(seen(rule(), version=2), bench.now)
    assert bench.book.advance(bench.now) == []


def test_an_edit_that_makes_no_sense_leaves_the_rule_as_it_was() -> None:
    bench = RuleBench(rule())
    bench.add("a", conditions=SICK)
    bench.put(None, version=2, fault="spec.taint.key: '' is no qualified name")
    bench.add("b", conditions=SICK)
    assert bench.tainted() == {"a", "b"}
    bench.put(rule(key="other"), version=3)
    assert bench.taints("a") == {"other:NoSchedule"}


def test_after_a_restart_a_rule_that_makes_no_sense_neither_adds_nor_removes() -> None:
    bench = RuleBench(rule())
    bench.add("a", conditions=SICK)
    bench.add("b", conditions=WELL)
    bench.book = RuleBench().book
    bench.put(None, version=2, fault="bad")
    for name in ("a", "b"):
        bench.see(bench.nodes[name])
    bench.report("b", KernelDeadlock="True")
    assert bench.tainted() == {"a"}
    bench.remove()
    assert bench.tainted() == set()


def test_an_older_state_of_a_rule_changes_nothing() -> None:
    bench = RuleBench()
    bench.put(rule(), version=5)
    bench.put(rule(key="old"), version=4)
    bench.add(conditions=SICK)
    assert bench.taints() == TAINTED


def test_a_rule_that_comes_back_under_its_name_is_another_one() -> None:
    bench = RuleBench()
    bench.put(rule(), version=5)
    bench.put(None, version=1, uid="another", fault="bad")
    bench.add(conditions=SICK)
    assert bench.taints() == CLEAN
    assert bench.entry().rule is None


def test_a_rule_that_comes_changes_or_goes_has_only_those_nodes_looked_at_that_it_may_concern() -> None:
    bench = RuleBench()
    bench.add("sick", conditions={"KernelDeadlock": "True"})
    bench.add("well", conditions={"KernelDeadlock": "False"})
    bench.add("other")
    bench.book.advance(bench.now)
    bench.book.put(seen(rule()), bench.now)
    assert bench.book.advance(bench.now) == ["sick"]
    bench.book.put(seen(rule(for_seconds=60.0), version=2), bench.now)
    assert bench.book.advance(bench.now) == ["sick"]
    bench.book.remove("deadlock", bench.now)
    assert bench.book.advance(bench.now) == ["sick"]
    bench.book.put(seen(rule(key="node.kubernetes.io/disk-pressure")), bench.now)
    assert bench.book.advance(bench.now) == ["sick", "well", "other"]
