"""How many nodes may suffer before a rule holds back, and what a dry run counts."""

from typing import Any

import pytest

from taintkeeper.core.rules import Limit
from taintkeeper.core.selectors import Selector
from tests.unit.core.rule_bench import DEADLOCK, RuleBench, rule

SICK = {"KernelDeadlock": "True"}
WELL = {"KernelDeadlock": "False"}


def bench_of(nodes: int, **facts: Any) -> RuleBench:
    bench = RuleBench(rule(**facts))
    for index in range(nodes):
        bench.add(f"n{index}", conditions=WELL, since=0.0)
    return bench


def fall_ill(bench: RuleBench, *indices: int) -> None:
    for index in indices:
        bench.report(f"n{index}", **SICK)


def test_as_many_as_the_limit_allows_are_tainted_and_no_more() -> None:
    bench = bench_of(10, limit=Limit(2))
    fall_ill(bench, 0, 1, 2, 3)
    assert bench.tainted() == {"n0", "n1"}
    assert bench.numbers() == (10, 0, 2, 2)


def test_a_limit_in_percent_is_one_of_the_selected_nodes() -> None:
    bench = RuleBench(rule(limit=Limit(50, percent=True), selector=Selector((("pool", "gpu"),))))
    for index in range(20):
        bench.add(f"n{index}", conditions=WELL, labels={"pool": "gpu" if index < 4 else "cpu"})
    fall_ill(bench, 0, 1, 2, 9)
    assert bench.tainted() == {"n0", "n1"}
    assert bench.numbers() == (4, 0, 2, 1)


def test_who_falls_ill_together_and_is_too_many_gets_nothing() -> None:
    bench = bench_of(10, limit=Limit(3), for_seconds=60.0)
    fall_ill(bench, 0, 1, 2, 3)
    bench.pass_time(3600.0)
    assert bench.writes == []
    assert bench.numbers() == (10, 0, 0, 4)


def test_a_node_that_holds_counts_already() -> None:
    bench = bench_of(10, limit=Limit(1), for_seconds=60.0)
    fall_ill(bench, 0)
    bench.pass_time(50.0)
    fall_ill(bench, 1)
    bench.pass_time(20.0)
    assert bench.writes == []
    assert bench.numbers() == (10, 1, 0, 1)


def test_a_node_that_keeps_its_taint_for_a_while_counts_still() -> None:
    bench = bench_of(10, limit=Limit(1), clear_seconds=60.0)
    fall_ill(bench, 0)
    bench.report("n0", **WELL)
    fall_ill(bench, 1)
    assert bench.tainted() == {"n0"}
    bench.pass_time(60.0)
    assert bench.tainted() == {"n1"}


def test_who_was_held_back_gets_the_taint_when_enough_have_recovered() -> None:
    bench = bench_of(10, limit=Limit(3), for_seconds=60.0)
    fall_ill(bench, 0, 1, 2, 3, 4)
    bench.pass_time(60.0)
    bench.report("n0", **WELL)
    assert bench.tainted() == set()
    bench.report("n1", **WELL)
    assert bench.tainted() == {"n2", "n3", "n4"}
    assert bench.numbers() == (10, 0, 3, 0)


def test_nodes_that_leave_the_cluster_make_room_and_lower_a_percentage() -> None:
    bench = bench_of(10, limit=Limit(30, percent=True), for_seconds=60.0)
    fall_ill(bench, 0, 1, 2, 3)
    bench.pass_time(60.0)
    bench.drop("n3")
    assert bench.tainted() == set(), "30% of nine is two"
    bench.drop("n2")
    assert bench.tainted() == {"n0", "n1"}


def test_above_the_limit_removal_works_and_what_is_tainted_stays_so() -> None:
    bench = bench_of(10, limit=Limit(2))
    fall_ill(bench, 0, 1, 2, 3, 4)
    bench.report("n0", **WELL)
    assert bench.tainted() == {"n1"}


def test_a_taint_that_somebody_removes_above_the_limit_does_not_come_back() -> None:
    bench = bench_of(10, limit=Limit(2))
    fall_ill(bench, 0, 1, 2)
    bench.set_taints("n0")
    assert bench.tainted() == {"n1"}
    bench.report("n2", **WELL)
    assert bench.tainted() == {"n0", "n1"}


def test_a_limit_is_judged_by_everything_that_was_seen_and_not_by_the_first_half() -> None:
    bench = bench_of(10, limit=Limit(2))
    fall_ill(bench, 0, 1)
    bench.restart(rule(limit=Limit(1)))
    assert bench.tainted() == {"n0", "n1"}, "what is tainted stays so"
    assert bench.entry().capped
    bench.set_taints("n0")
    assert bench.tainted() == {"n1"}


@pytest.mark.parametrize("limit", [Limit(0), Limit(0, percent=True)])
def test_a_limit_of_zero_allows_nothing(limit: Limit) -> None:
    bench = bench_of(1, limit=limit)
    fall_ill(bench, 0)
    assert bench.writes == []
    assert bench.numbers() == (1, 0, 0, 1)


def test_without_a_limit_every_node_may_be_tainted() -> None:
    bench = bench_of(3)
    fall_ill(bench, 0, 1, 2)
    assert bench.numbers() == (3, 0, 3, 0)


def test_another_value_is_no_new_taint_for_the_limit() -> None:
    bench = bench_of(3, limit=Limit(1), value="a")
    fall_ill(bench, 0, 1)
    bench.put(rule(limit=Limit(1), value="b"), version=2)
    assert bench.taints("n0") == {f"{DEADLOCK}=b:NoSchedule"}


def test_who_waits_for_the_zone_is_waiting_and_who_is_held_back_is_not() -> None:
    bench = bench_of(4, limit=Limit(2), rate_limited=True)
    bench.tokens = False
    fall_ill(bench, 0, 1)
    assert bench.numbers() == (4, 2, 0, 0)
    fall_ill(bench, 2)
    assert bench.numbers() == (4, 0, 0, 3)


# Dry runs


def test_a_dry_run_counts_what_would_be_and_writes_nothing() -> None:
    bench = bench_of(10, dry_run=True, limit=Limit(2), clear_seconds=60.0)
    fall_ill(bench, 0, 1, 2, 3)
    assert bench.numbers() == (10, 0, 2, 2)
    bench.report("n0", **WELL)
    bench.report("n3", **WELL)
    assert bench.numbers() == (10, 0, 2, 1), "n0 would keep the taint for a while"
    bench.pass_time(60.0)
    assert bench.numbers() == (10, 0, 2, 0)
    assert bench.writes == []


def test_a_dry_run_waits_as_a_rule_would() -> None:
    bench = bench_of(3, dry_run=True, for_seconds=60.0)
    fall_ill(bench, 0)
    assert bench.numbers() == (3, 1, 0, 0)
    bench.pass_time(60.0)
    assert bench.numbers() == (3, 0, 1, 0)
    bench.report("n0", **WELL)
    assert bench.numbers() == (3, 0, 0, 0)


def test_a_dry_run_grants_nothing_to_nodes_that_are_too_many_from_the_start() -> None:
    bench = RuleBench()
    for name in ("a", "b"):
        bench.add(name, conditions=SICK, since=0.0)
    bench.put(rule(dry_run=True, limit=Limit(1)))
    assert bench.numbers() == (2, 0, 0, 2)


def test_a_dry_run_begins_anew_once_a_node_is_well() -> None:
    bench = bench_of(3, dry_run=True)
    fall_ill(bench, 0)
    bench.put(rule(dry_run=True, for_seconds=60.0), version=2)
    assert bench.numbers() == (3, 0, 1, 0)
    bench.report("n0", **WELL)
    fall_ill(bench, 0)
    assert bench.numbers() == (3, 1, 0, 0)


def test_a_rule_that_becomes_a_dry_run_takes_its_taints_with_it_and_gets_them_back() -> None:
    bench = bench_of(3)
    fall_ill(bench, 0)
    bench.put(rule(dry_run=True), version=2)
    assert bench.tainted() == set()
    assert bench.numbers() == (3, 0, 1, 0)
    bench.put(rule(), version=3)
    assert bench.tainted() == {"n0"}
