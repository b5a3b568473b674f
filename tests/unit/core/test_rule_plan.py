"""Whose taint it is, two rules for one taint, and what knowledge and zones allow."""

from dataclasses import replace

import pytest

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Taint
from taintkeeper.core.rule_plan import forced_by_others, lost_to_others, plan_rules
from taintkeeper.core.selectors import Selector
from tests.unit.core.builders import FOREIGN, node
from tests.unit.core.rule_bench import DEADLOCK, RuleBench, rule, seen

TAINTED = {f"{DEADLOCK}:NoSchedule"}
SICK = {"KernelDeadlock": "True", "Overheated": "False"}
ID = (DEADLOCK, NO_SCHEDULE)
OVERHEATED = {"condition_type": "Overheated"}


# Whose taint it is


@pytest.mark.reported("uswitch/nidhogg#24")
def test_a_start_up_taint_of_somebody_else_is_never_touched() -> None:
    startup = Taint("readiness.k8s.io/x", NO_SCHEDULE)
    bench = RuleBench(rule())
    bench.add("n1", startup, conditions=SICK)
    assert bench.taints() == TAINTED | {str(startup)}
    bench.report(KernelDeadlock="False")
    bench.remove()
    assert bench.taints() == {str(startup)}


@pytest.mark.parametrize("value", ["", "other"])
def test_the_same_taint_set_by_somebody_else_does_as_well_and_is_never_claimed(value: str) -> None:
    theirs = Taint(DEADLOCK, NO_SCHEDULE, value)
    bench = RuleBench(rule())
    bench.add("n1", theirs, conditions=SICK)
    assert bench.writes == []
    assert bench.numbers() == (1, 0, 1, 0)
    bench.report(KernelDeadlock="False")
    bench.remove()
    assert bench.nodes["n1"].taints == (theirs,)
    assert bench.writes == []


def test_a_taint_of_ours_that_somebody_removes_comes_back() -> None:
    bench = RuleBench(rule())
    bench.add(conditions=SICK)
    bench.set_taints("n1", FOREIGN)
    assert bench.taints() == TAINTED | {str(FOREIGN)}


def test_a_taint_that_is_not_there_any_more_is_not_remembered_as_ours() -> None:
    bench = RuleBench(rule(clear_seconds=60.0))
    bench.add(conditions=SICK)
    bench.report(KernelDeadlock="False")
    bench.set_taints("n1")
    assert bench.writes[-1] == "n1 memory"
    assert bench.nodes["n1"].rule_taints == {}
    bench.set_taints("n1", Taint(DEADLOCK, NO_SCHEDULE))
    bench.pass_time(600.0)
    assert bench.taints() == TAINTED, "this one is theirs"


def test_the_node_remembers_which_rule_brought_a_taint() -> None:
    bench = RuleBench(rule("b"), rule("a", key="other"))
    bench.add(conditions=SICK)
    assert bench.writes == [f"n1 +{DEADLOCK}:NoSchedule +other:NoSchedule"]
    assert bench.nodes["n1"].rule_taints == {ID: "b", ("other", NO_SCHEDULE): "a"}


def test_a_memory_of_a_built_in_taint_means_nothing() -> None:
    pressure = Taint("node.kubernetes.io/memory-pressure", NO_SCHEDULE)
    bench = RuleBench()
    bench.add("n1", pressure, conditions={"MemoryPressure": "True"}, rule_taints={(pressure.key, NO_SCHEDULE): "x"})
    assert bench.writes == ["n1 memory"]
    assert bench.nodes["n1"].taints == (pressure,)


def test_only_a_taint_of_ours_that_rules_want_throughout_is_lost_to_others() -> None:
    bench = RuleBench(rule(), rule("hot", key="hot", **OVERHEATED))
    bench.add("n1", Taint("theirs", NO_SCHEDULE), conditions={"KernelDeadlock": "True", "Overheated": "True"})
    before = bench.nodes["n1"]
    view = bench.book.view(before)
    stripped = replace(before, taints=())
    assert lost_to_others(before, before, view, view) == set()
    assert lost_to_others(before, stripped, view, view) == {ID, ("hot", NO_SCHEDULE)}
    assert lost_to_others(replace(before, rule_taints={}), stripped, view, view) == set(), "those are not ours"
    cooler = replace(stripped, conditions=(Condition("KernelDeadlock", "True"), Condition("Overheated", "False")))
    bench.book.see(cooler, bench.now)
    after = bench.book.view(cooler)
    assert lost_to_others(before, cooler, view, after) == {ID}
    assert lost_to_others(before, cooler, after, view) == {ID}


def test_a_value_that_another_rule_gives_since_is_not_spoilt_by_others() -> None:
    bench = RuleBench(rule("a", value="a", selector=Selector((("pool", "gpu"),))), rule("b", value="b"))
    bench.add(conditions=SICK)
    before, view = bench.nodes["n1"], bench.book.view(bench.nodes["n1"])
    spoilt = replace(before, taints=(Taint(DEADLOCK, NO_SCHEDULE, "theirs"),))
    assert lost_to_others(before, spoilt, view, view) == {ID}
    labelled = replace(spoilt, labels={"pool": "gpu"})
    bench.book.see(labelled, bench.now)
    assert lost_to_others(before, labelled, view, bench.book.view(labelled)) == set()


def test_a_memory_of_what_was_asked_for_in_one_of_the_states_is_not_forced_by_others() -> None:
    bench = RuleBench(rule())
    bench.add(conditions=SICK)
    known = bench.nodes["n1"]
    asked = bench.book.view(known)
    blank, other = replace(known, rule_taints={}), replace(known, rule_taints={("hot", NO_SCHEDULE): "x"})
    well = replace(known, conditions=(Condition("KernelDeadlock", "False"),))
    bench.book.see(well, bench.now)
    idle = bench.book.view(well)
    assert forced_by_others(blank, known, asked, idle) == set()
    assert forced_by_others(blank, known, idle, asked) == set()
    assert forced_by_others(blank, known, idle, idle) == {ID}
    assert forced_by_others(blank, other, asked, asked) == {("hot", NO_SCHEDULE)}
    assert forced_by_others(known, known, idle, idle) == set()


# What knowledge and zones allow


def test_while_what_is_known_may_be_stale_nothing_is_added_and_everything_removed() -> None:
    bench = RuleBench(rule(value="a"), rule("hot", key="hot", **OVERHEATED))
    bench.add("a", conditions=SICK)
    bench.may_add = False
    bench.report("a", Overheated="True")
    bench.put(rule(value="b"), version=2)
    assert bench.taints("a") == {f"{DEADLOCK}=a:NoSchedule"}, "no value is swapped either"
    bench.report("a", KernelDeadlock="False")
    assert bench.taints("a") == set()


def test_a_taint_with_a_rate_limit_waits_for_the_zone_and_others_do_not() -> None:
    bench = RuleBench(
        rule("slow", effect=NO_EXECUTE, rate_limited=True),
        rule("quick", effect=NO_EXECUTE, key="quick"),
    )
    bench.tokens = False
    bench.add(conditions=SICK)
    assert bench.taints() == {"quick:NoExecute"}
    assert bench.needs_token()
    bench.tokens = True
    bench.report(Overheated="False")
    assert bench.taints() == {"quick:NoExecute", f"{DEADLOCK}:NoExecute"}
    assert not bench.needs_token()


def test_a_new_value_waits_for_the_zone_and_the_old_one_stays_meanwhile() -> None:
    bench = RuleBench(rule(effect=NO_EXECUTE, rate_limited=True, value="a"))
    bench.add(conditions=SICK)
    bench.tokens = False
    bench.put(rule(effect=NO_EXECUTE, rate_limited=True, value="b"), version=2)
    assert bench.needs_token()
    assert bench.taints() == {f"{DEADLOCK}=a:NoExecute"}


def test_a_node_with_a_taint_of_somebody_else_needs_no_token() -> None:
    bench = RuleBench(rule(effect=NO_EXECUTE, rate_limited=True))
    bench.tokens = False
    bench.add("n1", Taint(DEADLOCK, NO_EXECUTE, "theirs"), conditions=SICK)
    assert not bench.needs_token()


def test_built_in_taints_and_those_of_rules_go_in_one_write() -> None:
    bench = RuleBench(rule())
    bench.add(conditions={"Ready": "False", **SICK})
    not_ready = "node.kubernetes.io/not-ready"
    assert bench.writes == [f"n1 +{not_ready}:NoExecute +{not_ready}:NoSchedule +{DEADLOCK}:NoSchedule"]


def test_every_change_has_its_reason() -> None:
    bench = RuleBench(rule())
    bench.add(conditions=SICK)
    sick = bench.nodes["n1"]
    assert bench.book.view(sick).wanted[ID].reason == "condition KernelDeadlock is True, by rule deadlock"
    assert bench.book.view(sick).over == {}
    bench.book.see(replace(sick, conditions=(Condition("KernelDeadlock", "False", "Fine"),)), bench.now)
    assert bench.book.view(sick).over == {ID: "condition KernelDeadlock is no longer True, by rule deadlock"}
    bench.book.put(seen(rule(key="other"), version=2), bench.now)
    assert bench.book.view(sick).over == {ID: "rule deadlock does not ask for it any more"}
    bench.book.remove("deadlock", bench.now)
    assert bench.book.view(sick).over == {ID: "rule deadlock is gone"}
    bench.book.put(seen(rule()), bench.now)
    bench.book.see(replace(sick, conditions=(Condition("KernelDeadlock", "True", "DockerHung"),)), bench.now)
    found = bench.book.view(replace(sick, conditions=(Condition("KernelDeadlock", "True", "DockerHung"),)))
    assert found.wanted[ID].reason == "condition KernelDeadlock is True (DockerHung), by rule deadlock"


def test_a_plan_tells_the_reasons_of_what_rules_add_and_remove() -> None:
    bench = RuleBench(rule())
    made = node(conditions=SICK, rule_taints={("old", NO_SCHEDULE): "gone"})
    made = replace(made, taints=(Taint("old", NO_SCHEDULE),))
    bench.book.see(made, bench.now)
    planned = plan_rules(made, None, bench.book.view(made), granted=True, may_add=True, now=bench.now)
    assert planned is not None
    assert planned.memory == {ID: "deadlock"}
    assert planned.reasons == {
        ID: "condition KernelDeadlock is True, by rule deadlock",
        ("old", NO_SCHEDULE): "rule gone is gone",
    }


# Two rules for one taint


def test_a_taint_is_there_while_any_rule_wants_it() -> None:
    bench = RuleBench(rule("a"), rule("b", **OVERHEATED))
    bench.add(conditions={"KernelDeadlock": "True", "Overheated": "True"})
    bench.report(KernelDeadlock="False")
    assert bench.taints() == TAINTED
    bench.report(Overheated="False")
    assert bench.taints() == set()
    assert len(bench.writes) == 2


def test_the_value_is_that_of_the_first_by_name_whichever_of_them_wants_the_taint() -> None:
    bench = RuleBench(rule("b", value="b", **OVERHEATED), rule("a", value="a"))
    bench.add(conditions=SICK)
    for _ in range(10):
        bench.report(Overheated="True")
        bench.report(KernelDeadlock="False")
        bench.report(KernelDeadlock="True")
        bench.report(Overheated="False")
    assert bench.taints() == {f"{DEADLOCK}=a:NoSchedule"}
    assert len(bench.writes) == 1
    assert bench.entry("b").overruled == {"a": 1}
    bench.remove("a")
    assert bench.taints() == set()
    bench.report(Overheated="True")
    assert bench.taints() == {f"{DEADLOCK}=b:NoSchedule"}
    assert not bench.entry("b").overruled


def test_who_is_overruled_follows_every_change_of_the_other_rule() -> None:
    bench = RuleBench(rule("b", value="b"))
    bench.add(conditions=SICK)
    for version, (other, overruled) in enumerate(
        [
            (rule("a", value="a"), {"a": 1}),
            (rule("a", value="b"), {}),
            (rule("a", value="a", dry_run=True), {}),
            (rule("a", value="a", selector=Selector((("no", "node"),))), {}),
            (rule("a", value="a"), {"a": 1}),
            (rule("a", value="a", key="other"), {}),
        ]
    ):
        bench.put(other, version=version)
        assert dict(bench.entry("b").overruled) == overruled, version
    bench.put(rule("a", value="a"), version=9)
    bench.put(None, name="a", uid="another", fault="bad")
    assert not bench.entry("b").overruled


def test_a_rule_is_overruled_only_where_both_select_the_node_and_their_values_differ() -> None:
    bench = RuleBench(rule("a", value="a"), rule("b", value="a"), rule("c", value="c", effect=NO_EXECUTE))
    bench.add(conditions=SICK)
    assert not any(bench.entry(name).overruled for name in "abc")


def test_a_dry_run_has_no_precedence() -> None:
    bench = RuleBench(rule("a", value="a", dry_run=True), rule("b", value="b"))
    bench.add(conditions=SICK)
    assert bench.taints() == {f"{DEADLOCK}=b:NoSchedule"}
    assert not bench.entry("b").overruled


def test_one_rule_without_a_rate_limit_is_enough() -> None:
    bench = RuleBench(
        rule("a", effect=NO_EXECUTE, rate_limited=True), rule("b", effect=NO_EXECUTE, rate_limited=False, **OVERHEATED)
    )
    bench.tokens = False
    bench.add(conditions=SICK)
    assert bench.writes == []
    bench.report(Overheated="True")
    assert bench.taints() == {f"{DEADLOCK}:NoExecute"}
