"""When a rule wants its taint on a node: how long the condition must be there, and gone."""

from dataclasses import replace

import pytest

from taintkeeper.core.objects import Condition
from taintkeeper.core.selectors import Requirement, Selector
from tests.unit.core.rule_bench import DEADLOCK, RuleBench, rule, seen

TAINTED = {f"{DEADLOCK}:NoSchedule"}
CLEAN: set[str] = set()
SICK = {"Ready": "True", "KernelDeadlock": "True"}
WELL = {"Ready": "True", "KernelDeadlock": "False"}
DAY = 86400.0


def test_a_node_with_the_condition_gets_the_taint_at_once_and_loses_it_at_once() -> None:
    bench = RuleBench(rule())
    bench.add(conditions=WELL)
    assert bench.writes == []
    bench.report(KernelDeadlock="True")
    assert bench.taints() == TAINTED
    assert bench.nodes["n1"].taints[0].time_added == bench.now
    bench.report(KernelDeadlock="False")
    assert bench.taints() == CLEAN
    assert bench.writes == [f"n1 +{DEADLOCK}:NoSchedule", f"n1 -{DEADLOCK}:NoSchedule"]


@pytest.mark.reported("kubernetes/node-problem-detector#457")
def test_a_condition_of_the_users_own_becomes_a_taint_once_it_has_lasted() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=WELL, since=0.0)
    bench.report(KernelDeadlock="True")
    assert bench.book.wake_at() == bench.now + 60.0
    bench.pass_time(59.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_a_condition_that_ends_early_leaves_no_taint_and_begins_anew() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=WELL)
    bench.report(KernelDeadlock="True")
    bench.pass_time(50.0)
    bench.report(KernelDeadlock="Unknown")
    bench.pass_time(5.0)
    bench.report(KernelDeadlock="True")
    bench.pass_time(59.9)
    assert bench.writes == []
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


@pytest.mark.reported("kubernetes/kubernetes#115516")
def test_a_node_that_flaps_costs_two_writes_and_not_twenty() -> None:
    bench = RuleBench(rule(clear_seconds=300.0))
    bench.add(conditions=WELL)
    for _ in range(3):
        bench.report(KernelDeadlock="True")
        bench.pass_time(20.0)
        bench.report(KernelDeadlock="False")
        bench.pass_time(20.0)
    bench.pass_time(279.9)
    assert bench.taints() == TAINTED
    bench.pass_time(0.1)
    assert bench.writes == [f"n1 +{DEADLOCK}:NoSchedule", f"n1 -{DEADLOCK}:NoSchedule"]


@pytest.mark.reported("kubernetes/kubernetes#12041")
def test_a_node_that_flaps_faster_than_the_hold_is_never_tainted_and_one_timer_is_enough() -> None:
    bench = RuleBench(rule(for_seconds=300.0, clear_seconds=10.0))
    bench.add(conditions=WELL)
    for _ in range(20):
        bench.report(KernelDeadlock="True")
        bench.pass_time(15.0)
        bench.report(KernelDeadlock="False")
        bench.pass_time(15.0)
    assert bench.writes == []
    assert len(bench.book._timers) <= 2


@pytest.mark.reported("medik8s/node-healthcheck-operator#238")
def test_a_node_that_is_well_for_three_seconds_keeps_its_taint_even_while_it_holds_anew() -> None:
    bench = RuleBench(rule(for_seconds=60.0, clear_seconds=30.0))
    bench.add(conditions=SICK, since=0.0)
    assert bench.taints() == TAINTED
    bench.report(KernelDeadlock="False")
    bench.pass_time(3.0)
    bench.report(KernelDeadlock="True")
    bench.pass_time(300.0)
    assert bench.writes == [f"n1 +{DEADLOCK}:NoSchedule"]


def test_without_the_condition_nothing_is_known_no_taint_comes_and_none_goes() -> None:
    bench = RuleBench(rule())
    bench.add("never", conditions={"Ready": "True"})
    bench.add("before", conditions=SICK)
    bench.report("before", KernelDeadlock=None)
    bench.pass_time(DAY)
    assert bench.tainted() == {"before"}
    bench.restart(rule())
    bench.pass_time(DAY)
    assert bench.tainted() == {"before"}
    bench.report("before", KernelDeadlock="False")
    assert bench.tainted() == set()


def test_a_condition_that_comes_back_begins_anew() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=SICK, since=bench.now)
    bench.pass_time(50.0)
    bench.report(KernelDeadlock=None)
    bench.pass_time(60.0)
    bench.report(KernelDeadlock="True")
    bench.pass_time(59.9)
    assert bench.writes == []


# What a restart may and may not change


def test_the_hold_goes_on_after_a_restart() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=WELL)
    bench.report(KernelDeadlock="True")
    bench.pass_time(40.0)
    bench.restart(rule(for_seconds=60.0))
    bench.pass_time(19.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_the_clear_time_goes_on_after_a_restart() -> None:
    bench = RuleBench(rule(clear_seconds=60.0))
    bench.add(conditions=SICK)
    bench.report(KernelDeadlock="False")
    bench.pass_time(40.0)
    bench.restart(rule(clear_seconds=60.0))
    bench.pass_time(19.9)
    assert bench.taints() == TAINTED
    bench.pass_time(0.1)
    assert bench.taints() == CLEAN


@pytest.mark.reported("kubernetes-sigs/node-readiness-controller#382")
def test_a_taint_whose_condition_ended_while_nobody_looked_goes_at_the_start() -> None:
    bench = RuleBench(rule(clear_seconds=60.0))
    bench.add(conditions=SICK)
    bench.now += DAY
    well = tuple(Condition(type_, status, transition=bench.now - 60.0) for type_, status in WELL.items())
    bench.nodes["n1"] = replace(bench.nodes["n1"], conditions=well)
    bench.restart(rule(clear_seconds=60.0))
    assert bench.taints() == CLEAN


@pytest.mark.reported("kubernetes/kubernetes#6193")
def test_a_node_whose_clock_is_ahead_is_not_held_for_longer() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=SICK, since=bench.now + 600.0)
    bench.pass_time(60.0)
    assert bench.taints() == TAINTED


@pytest.mark.reported("gardener/machine-controller-manager#563")
def test_while_running_only_what_was_seen_counts_and_not_the_nodes_clock() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=WELL)
    sick = tuple(Condition(type_, status, transition=bench.now - 2 * DAY) for type_, status in SICK.items())
    bench.see(replace(bench.nodes["n1"], conditions=sick))
    bench.pass_time(59.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_a_condition_without_a_time_counts_from_when_it_is_first_seen() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=SICK, since=None)
    bench.pass_time(59.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


# Nodes


def test_a_node_that_comes_back_under_its_name_is_another_one() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add(conditions=WELL)
    bench.report(KernelDeadlock="True")
    bench.pass_time(50.0)
    bench.add(uid="another", conditions=SICK, since=bench.now)
    bench.pass_time(59.9)
    assert bench.taints() == CLEAN
    bench.pass_time(0.1)
    assert bench.taints() == TAINTED


def test_a_node_that_is_gone_is_forgotten_with_its_timers() -> None:
    bench = RuleBench(rule(for_seconds=60.0))
    bench.add("a", conditions=SICK, since=bench.now)
    bench.add("b", conditions=SICK)
    bench.drop("a")
    bench.drop("b")
    bench.pass_time(60.0)
    assert bench.numbers() == (0, 0, 0, 0)
    assert bench.writes == []


def test_a_node_that_is_gone_is_nothing_to_a_rule_that_is_new() -> None:
    bench = RuleBench()
    bench.add("a", conditions=SICK)
    bench.add("b", conditions=SICK)
    bench.drop("a")
    bench.book.put(seen(rule()), bench.now)
    bench.book.forget("b")
    assert bench.book.advance(bench.now) == []
    assert bench.numbers() == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "selector",
    [
        Selector((("pool", "gpu"),)),
        Selector((), (Requirement("pool", "In", frozenset({"gpu", "tpu"})),)),
        Selector((), (Requirement("pool", "Exists"), Requirement("pool", "NotIn", frozenset({"cpu"})))),
    ],
)
def test_a_rule_is_for_the_nodes_that_it_selects(selector: Selector) -> None:
    bench = RuleBench(rule(selector=selector))
    bench.add("gpu", conditions=SICK, labels={"pool": "gpu"})
    bench.add("cpu", conditions=SICK, labels={"pool": "cpu"})
    bench.add("none", conditions=SICK)
    assert bench.tainted() == {"gpu"}
    assert bench.entry().matched == 1


def test_a_node_that_is_no_longer_selected_loses_the_taint_at_once() -> None:
    bench = RuleBench(rule(selector=Selector((("pool", "gpu"),)), clear_seconds=300.0))
    bench.add(conditions=SICK, labels={"pool": "gpu"})
    bench.label(pool="cpu")
    assert bench.taints() == CLEAN
    assert bench.numbers() == (0, 0, 0, 0)
    bench.label(pool="gpu")
    assert bench.taints() == TAINTED
