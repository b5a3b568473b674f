"""NoExecute by a rule goes at the pace of the zone, as not-ready does, unless the rule says otherwise."""

import pytest

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.rules import Limit, Rule
from taintkeeper.core.taint_messages import TaintsChanged
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates
from tests.unit.core.builders import node
from tests.unit.core.rule_bench import DEADLOCK, rule
from tests.unit.core.tainting_bench import TaintBench

ID = (DEADLOCK, NO_EXECUTE)
NOT_READY = ("node.kubernetes.io/not-ready", NO_EXECUTE)
EVERYWHERE = "every zone has failed, so that no pod is better off elsewhere"
BRIEF = Rates(cooldown_seconds=0.0)


def nodes(count: int = 10) -> list[Node]:
    return [node(f"n{number}", conditions={"Ready": "True"}) for number in range(1, count + 1)]


def slow(**facts: object) -> Rule:
    return rule("deadlock", **{"effect": NO_EXECUTE, "rate_limited": True, **facts})


def quick(**facts: object) -> Rule:
    return rule("quick", **{"effect": NO_EXECUTE, "rate_limited": False, "key": "quick", **facts})


def fall_ill(bench: TaintBench, *names: str) -> None:
    for name in names:
        bench.condition(name, "KernelDeadlock", "True")


def ids(bench: TaintBench, name: str) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in bench.server[name].taints}


def test_nodes_get_it_one_after_another_in_the_order_in_which_they_fell_ill() -> None:
    bench = TaintBench(*nodes(), rules=[slow()])
    fall_ill(bench, "n3", "n1", "n2")
    bench.run_until(60.0)
    assert bench.executed() == [(0.0, "n3"), (pytest.approx(10.0), "n1"), (pytest.approx(20.0), "n2")]
    status = bench.statuses["deadlock"]
    assert (status.tainted, status.waiting) == (3, 0)


def test_not_ready_and_rules_share_the_tokens_of_a_zone_and_one_token_does_for_all_of_a_node() -> None:
    bench = TaintBench(*nodes(), rules=[slow()])
    fall_ill(bench, "n1", "n2")
    bench.ready("False", "n3", "n2")
    bench.run_until(60.0)
    assert bench.executed() == [(0.0, "n1"), (pytest.approx(10.0), "n2"), (pytest.approx(20.0), "n3")]
    assert ids(bench, "n2") >= {ID, NOT_READY}


def test_a_node_that_is_tainted_already_waits_again_for_what_comes_later() -> None:
    bench = TaintBench(*nodes(), rules=[slow()])
    bench.ready("False", "n1", "n2")
    fall_ill(bench, "n1")
    bench.run_until(60.0)
    assert bench.executed() == [(0.0, "n1"), (pytest.approx(10.0), "n2"), (pytest.approx(20.0), "n1")]


def test_who_is_well_again_waits_no_longer_and_costs_no_token() -> None:
    bench = TaintBench(*nodes(), rules=[slow()])
    fall_ill(bench, "n1", "n2", "n3")
    bench.run_until(5.0)
    bench.condition("n2", "KernelDeadlock", "False")
    bench.run_until(60.0)
    assert bench.executed() == [(0.0, "n1"), (pytest.approx(10.0), "n3")]


def test_removal_waits_for_nobody_and_neither_does_a_rule_without_a_rate_limit() -> None:
    bench = TaintBench(*nodes(), rules=[slow(), quick()])
    fall_ill(bench, "n1", "n2", "n3")
    assert [at for at, _ in bench.executed()] == [0.0, 0.0, 0.0], "one write for both of n1"
    assert all(("quick", NO_EXECUTE) in ids(bench, name) for name in ("n1", "n2", "n3"))
    for name in ("n1", "n2", "n3"):
        bench.condition(name, "KernelDeadlock", "False")
    assert all(ids(bench, name) == set() for name in bench.server)


def test_no_schedule_of_a_rule_waits_for_no_zone() -> None:
    bench = TaintBench(*nodes(), rules=[rule()])
    fall_ill(bench, *bench.server)
    assert all(ids(bench, name) == {(DEADLOCK, NO_SCHEDULE)} for name in bench.server)


def test_a_zone_that_is_disrupted_in_part_lets_no_rule_taint() -> None:
    bench = TaintBench(*nodes(), node("far", zone="far", conditions={"Ready": "True"}), rules=[slow(), quick()])
    bench.ready("False", *(f"n{number}" for number in range(1, 8)))
    before = bench.executed()
    fall_ill(bench, "n10", "far")
    bench.run_until(600.0)
    assert ids(bench, "n10") == {("quick", NO_EXECUTE)}
    assert ids(bench, "far") == {("quick", NO_EXECUTE), ID}
    assert len(bench.executed()) <= len(before) + 4


def test_when_every_zone_has_failed_what_goes_at_the_pace_of_zones_is_taken_away_and_the_rest_stays() -> None:
    bench = TaintBench(*nodes(3), rules=[slow(clear_seconds=3600.0), quick()], options=TaintOptions(BRIEF, 50.0))
    fall_ill(bench, "n1", "n2")
    bench.run_until(30.0)
    bench.condition("n2", "KernelDeadlock", "False")
    bench.ready("False")
    assert ids(bench, "n1") & {ID, NOT_READY} == ids(bench, "n2") & {ID, NOT_READY} == set()
    assert ("quick", NO_EXECUTE) in ids(bench, "n1")
    removed = {each: why for _, effect in bench.of(TaintsChanged) for each, why in effect.reasons.items()}
    assert removed[ID] == EVERYWHERE
    fall_ill(bench, "n3")
    bench.run_until(100.0)
    assert ids(bench, "n3") & {ID, ("quick", NO_EXECUTE)} == {("quick", NO_EXECUTE)}
    bench.ready("True", "n2")
    bench.run_until(149.0)
    assert all(ID not in ids(bench, name) for name in bench.server)
    bench.run_until(300.0)
    assert {name for name in bench.server if ID in ids(bench, name)} == {"n1", "n3"}


def test_not_ready_that_is_taken_away_when_every_zone_has_failed_says_so() -> None:
    bench = TaintBench(*nodes(2))
    bench.ready("False", "n1")
    bench.run_until(10.0)
    bench.ready("False", "n2")
    (last,) = (effect.reasons for _, effect in bench.of(TaintsChanged) if effect.change.removed)
    assert last == {NOT_READY: EVERYWHERE}


def test_a_taint_that_took_the_place_of_another_is_the_reason_why_that_one_went() -> None:
    bench = TaintBench(*nodes())
    bench.ready("False", "n1")
    bench.run_until(10.0)
    bench.ready("Unknown", "n1")
    bench.run_until(20.0)
    bench.ready("True", "n1")
    swapped, over = (effect.reasons for _, effect in bench.of(TaintsChanged)[-2:])
    assert swapped == {
        NOT_READY: "node.kubernetes.io/unreachable:NoExecute took its place",
        ("node.kubernetes.io/not-ready", NO_SCHEDULE): "node.kubernetes.io/unreachable:NoSchedule took its place",
        ("node.kubernetes.io/unreachable", NO_EXECUTE): "condition Ready is Unknown",
        ("node.kubernetes.io/unreachable", NO_SCHEDULE): "condition Ready is Unknown",
    }
    assert set(over.values()) == {"its condition is over"}


@pytest.mark.reported("kubernetes-sigs/karpenter node.health (20 %)")
def test_the_cap_across_zones_counts_nodes_that_rules_taint_and_holds_for_them() -> None:
    sites = [node(f"n{number}", zone=f"z{number}", conditions={"Ready": "True"}) for number in range(1, 6)]
    more = [node(f"m{number}", zone=f"z{number}", conditions={"Ready": "True"}) for number in range(1, 6)]
    bench = TaintBench(*sites, *more, rules=[slow()], options=TaintOptions(most_evicting=Limit(3)))
    fall_ill(bench, "n1", "n2")
    bench.ready("False", "n3")
    fall_ill(bench, "n4")
    bench.ready("False", "n5")
    bench.run_until(600.0)
    assert [name for _, name in bench.executed()] == ["n1", "n2", "n3"]
    assert bench.engine.book.evicting == 3
    bench.condition("n1", "KernelDeadlock", "False")
    bench.run_until(700.0)
    assert [name for _, name in bench.executed()] == ["n1", "n2", "n3", "n4"]


def test_a_rule_for_not_ready_delays_it_and_then_it_waits_for_its_zone_as_ever() -> None:
    made = slow(condition_type="Ready", condition_status="False", key=NOT_READY[0], for_seconds=300.0)
    bench = TaintBench(*nodes(), rules=[made])
    bench.ready("False", "n1", "n2")
    assert ids(bench, "n1") == {(NOT_READY[0], NO_SCHEDULE)}
    bench.run_until(400.0)
    assert bench.executed() == [(300.0, "n1"), (pytest.approx(310.0), "n2")]
