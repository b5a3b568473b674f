"""Rules for built-in taints: they decide in place of the operator when a node gets them."""

import pytest

from taintkeeper.core.first_seen import NOT_READY, UNREACHABLE
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint
from taintkeeper.core.rules import Limit, Rule
from taintkeeper.core.selectors import Selector
from tests.unit.core.builders import not_ready, unreachable
from tests.unit.core.rule_bench import RuleBench, rule

PREFIX = "node.kubernetes.io/"
PRESSURE = f"{PREFIX}memory-pressure"
READY = {"Ready": "True"}


def pressure(**facts: object) -> Rule:
    return rule("pressure", **{"condition_type": "MemoryPressure", "key": PRESSURE, **facts})


def lost(effect: str = NO_EXECUTE, **facts: object) -> Rule:
    given = {"condition_type": "Ready", "condition_status": "Unknown", "key": UNREACHABLE, "effect": effect}
    return rule(f"lost-{effect.lower()}", **{**given, "rate_limited": effect == NO_EXECUTE, **facts})


def broken(effect: str = NO_EXECUTE, **facts: object) -> Rule:
    given = {"condition_type": "Ready", "condition_status": "False", "key": NOT_READY, "effect": effect}
    return rule(f"broken-{effect.lower()}", **{**given, "rate_limited": effect == NO_EXECUTE, **facts})


def short(bench: RuleBench) -> set[str]:
    return {taint.removeprefix(PREFIX) for taint in bench.taints()}


def test_the_rules_hold_takes_the_place_of_at_once() -> None:
    bench = RuleBench(pressure(for_seconds=60.0))
    bench.add(conditions={**READY, "MemoryPressure": "False"})
    bench.report(MemoryPressure="True")
    bench.pass_time(59.9)
    assert bench.writes == []
    bench.pass_time(0.1)
    assert short(bench) == {"memory-pressure:NoSchedule"}
    bench.report(MemoryPressure="False")
    assert short(bench) == set()


@pytest.mark.reported("kubernetes/kubernetes#115516")
def test_a_pressure_that_comes_and_goes_costs_two_writes_with_a_rule() -> None:
    bench = RuleBench(pressure(clear_seconds=300.0))
    bench.add(conditions={**READY, "MemoryPressure": "False"})
    for _ in range(3):
        bench.report(MemoryPressure="True")
        bench.pass_time(20.0)
        bench.report(MemoryPressure="False")
        bench.pass_time(20.0)
    bench.pass_time(300.0)
    assert [line.replace(PREFIX, "") for line in bench.writes] == [
        "n1 +memory-pressure:NoSchedule",
        "n1 -memory-pressure:NoSchedule",
    ]


def test_a_built_in_taint_is_ours_without_being_remembered() -> None:
    bench = RuleBench(pressure())
    bench.add("n1", Taint(PRESSURE, NO_SCHEDULE), conditions={**READY, "MemoryPressure": "False"}, since=0.0)
    assert short(bench) == set()
    bench.report(MemoryPressure="True")
    assert bench.nodes["n1"].rule_taints == {}


def test_a_rule_decides_for_the_nodes_that_it_selects_only_and_never_in_a_dry_run() -> None:
    for made in (
        pressure(for_seconds=60.0, selector=Selector((("a", "b"),))),
        pressure(for_seconds=60.0, dry_run=True),
    ):
        bench = RuleBench(made)
        bench.add(conditions={**READY, "MemoryPressure": "True"}, since=bench.now)
        assert short(bench) == {"memory-pressure:NoSchedule"}


def test_without_the_rule_the_built_in_behaviour_is_back() -> None:
    bench = RuleBench(pressure(for_seconds=3600.0))
    bench.add(conditions={**READY, "MemoryPressure": "True"}, since=bench.now)
    assert short(bench) == set()
    bench.remove("pressure")
    assert short(bench) == {"memory-pressure:NoSchedule"}
    bench.put(pressure(for_seconds=3600.0))
    assert short(bench) == {"memory-pressure:NoSchedule"}, "a rule that is new takes nothing away"


def test_a_limit_holds_for_a_built_in_taint() -> None:
    bench = RuleBench(pressure(limit=Limit(0)))
    bench.add(conditions={**READY, "MemoryPressure": "True"})
    assert short(bench) == set()
    assert bench.numbers("pressure") == (1, 0, 0, 1)


def test_a_pressure_can_be_made_to_evict_slowly_beside_the_built_in_taint() -> None:
    bench = RuleBench(pressure(effect=NO_EXECUTE, rate_limited=True, for_seconds=60.0))
    bench.tokens = False
    bench.add(conditions={**READY, "MemoryPressure": "True"}, since=bench.now)
    assert short(bench) == {"memory-pressure:NoSchedule"}
    bench.pass_time(60.0)
    assert bench.needs_token()
    bench.tokens = True
    bench.report(DiskPressure="False")
    assert short(bench) == {"memory-pressure:NoSchedule", "memory-pressure:NoExecute"}
    bench.report(MemoryPressure="False")
    assert short(bench) == set()


# Ready


def test_no_execute_waits_for_its_rule_and_no_schedule_does_not() -> None:
    bench = RuleBench(lost(for_seconds=600.0))
    bench.add(conditions={"Ready": "Unknown"}, since=bench.now)
    assert short(bench) == {"unreachable:NoSchedule"}
    bench.pass_time(600.0)
    assert short(bench) == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    bench.report(Ready="True")
    assert short(bench) == set()


def test_no_execute_waits_for_its_twin_where_a_rule_delays_that() -> None:
    bench = RuleBench(lost(NO_SCHEDULE, for_seconds=60.0))
    bench.add(conditions={"Ready": "Unknown"}, since=bench.now)
    assert bench.writes == []
    bench.pass_time(60.0)
    assert short(bench) == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    assert len(bench.writes) == 1


def test_no_execute_need_not_wait_for_a_twin_that_is_there_already() -> None:
    bench = RuleBench(broken(NO_SCHEDULE, for_seconds=60.0))
    bench.add("n1", Taint(NOT_READY, NO_SCHEDULE), conditions={"Ready": "False"}, since=bench.now)
    assert short(bench) == {"not-ready:NoSchedule", "not-ready:NoExecute"}


def test_the_twin_stays_as_long_as_a_rule_keeps_no_execute() -> None:
    bench = RuleBench(lost(clear_seconds=60.0))
    bench.add(conditions={"Ready": "Unknown"})
    bench.report(Ready="True")
    assert short(bench) == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    bench.pass_time(60.0)
    assert short(bench) == set()
    assert len(bench.writes) == 2


def test_not_ready_and_unreachable_exclude_each_other_even_where_a_rule_would_keep_one() -> None:
    bench = RuleBench(lost(clear_seconds=600.0), lost(NO_SCHEDULE, clear_seconds=600.0))
    bench.add(conditions={"Ready": "Unknown"})
    added = bench.now
    bench.pass_time(30.0)
    bench.report(Ready="False")
    assert short(bench) == {"not-ready:NoSchedule", "not-ready:NoExecute"}
    assert [taint.time_added for taint in bench.nodes["n1"].taints] == [added, added], "the countdown goes on"


def test_the_one_that_is_kept_bridges_the_hold_of_the_other() -> None:
    bench = RuleBench(lost(clear_seconds=60.0), broken(for_seconds=60.0))
    bench.add(conditions={"Ready": "Unknown"})
    bench.report(Ready="False")
    bench.pass_time(59.9)
    assert short(bench) == {"not-ready:NoSchedule", "unreachable:NoExecute"}
    bench.pass_time(0.1)
    assert short(bench) == {"not-ready:NoSchedule", "not-ready:NoExecute"}


@pytest.mark.reported("kubernetes/autoscaler#5657")
def test_at_the_start_a_taint_that_a_rule_held_is_removed_from_a_node_that_is_ready() -> None:
    bench = RuleBench(lost(for_seconds=600.0), lost(NO_SCHEDULE))
    bench.add("n1", unreachable(), Taint(UNREACHABLE, NO_SCHEDULE), conditions=READY, since=0.0)
    assert bench.nodes["n1"].taints == ()


def test_without_the_ready_condition_nothing_is_known_with_rules_as_without() -> None:
    bench = RuleBench(broken(), broken(NO_SCHEDULE))
    taints = (not_ready(), Taint(NOT_READY, NO_SCHEDULE))
    bench.add("n1", *taints, conditions={"MemoryPressure": "False"})
    assert bench.nodes["n1"].taints == taints
    assert bench.writes == []


@pytest.mark.reported("kubernetes/kubernetes#12041")
def test_a_node_that_flips_every_half_minute_costs_two_writes_with_rules() -> None:
    bench = RuleBench(broken(NO_SCHEDULE, clear_seconds=120.0), broken(NO_EXECUTE, clear_seconds=120.0))
    bench.add(conditions=READY)
    for _ in range(10):
        bench.report(Ready="False")
        bench.pass_time(30.0)
        bench.report(Ready="True")
        bench.pass_time(30.0)
    assert len(bench.writes) == 1
    bench.pass_time(120.0)
    assert short(bench) == set()
    assert len(bench.writes) == 2
