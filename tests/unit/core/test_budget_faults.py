"""Budgets that hold pods for longer than meant: who is to be told what."""

from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.core.budget_faults import holds_unhealthy, never_allows, reasons
from taintkeeper.core.budgets import Budget
from taintkeeper.core.messages import BudgetMisconfigured, EvictionFailed, Held, NodeSeen, PodSeen
from tests.unit.core.builders import FOO, HELD_BY_BUDGET, budget, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always


def numbers(expected: int, desired: int, healthy: int | None = None, demand: str = "", **more: Any) -> Budget:
    counted = expected if healthy is None else healthy
    return replace(budget("b1"), expected=expected, desired=desired, healthy=counted, demand=demand, **more)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(numbers(3, 3, demand="minAvailable: 100%"), "all of its 3 pods", id="minAvailable 100%"),
        pytest.param(numbers(3, 3, demand="maxUnavailable: 0"), "all of its 3 pods", id="maxUnavailable 0"),
        pytest.param(numbers(1, 1, demand="minAvailable: 1"), "its only pod", id="one replica"),
        pytest.param(numbers(2, 5, demand="minAvailable: 5"), "all of its 2 pods", id="more than there are"),
    ],
)
def test_a_budget_that_wants_all_of_its_pods_healthy_never_allows_an_eviction(found: Budget, why: str) -> None:
    assert never_allows(found) == (f"it can never allow an eviction, since it wants {why} healthy ({found.demand})")


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(numbers(3, 2), id="one may go"),
        pytest.param(numbers(3, 2, healthy=1), id="one might go if all were healthy"),
        pytest.param(numbers(0, 1), id="no pods"),
        pytest.param(numbers(3, 3, observed=False), id="not observed yet"),
    ],
)
def test_a_budget_that_may_allow_one_or_is_not_known_yet_is_not_blamed(found: Budget) -> None:
    assert never_allows(found) is None


@pytest.mark.reported("kubernetes/kubernetes#72320", "kubernetes/kubernetes#80389")
def test_a_budget_that_holds_pods_that_are_not_ready_is_told_of_the_policy_that_would_let_them_go() -> None:
    why = holds_unhealthy(numbers(2, 1, healthy=0), ready=False)
    assert why is not None
    assert "only 0 of the 1 pods that it wants are healthy" in why
    assert "unhealthyPodEvictionPolicy: AlwaysAllow" in why


@pytest.mark.parametrize(
    ("found", "ready"),
    [
        pytest.param(numbers(2, 1, healthy=0), True, id="a pod that is ready"),
        pytest.param(numbers(2, 1, healthy=0, always_allow=True), False, id="the policy is there"),
        pytest.param(numbers(2, 1, healthy=1), False, id="enough are healthy"),
        pytest.param(numbers(2, 1, healthy=0, observed=False), False, id="not observed yet"),
    ],
)
def test_that_policy_is_named_only_where_it_would_help(found: Budget, ready: bool) -> None:
    assert holds_unhealthy(found, ready=ready) is None


def test_every_budget_that_something_is_to_be_said_about_is_named() -> None:
    hints = reasons([numbers(1, 1), replace(numbers(3, 1), name="b2"), replace(numbers(2, 2), name="b3")], ready=True)
    assert [hint.partition(":")[0] for hint in hints] == ["b1", "b3"]


def test_a_budget_that_always_holds_is_told_once_however_many_pods_wait() -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)), api=always(HELD_BY_BUDGET))
    bench.see(numbers(5, 5), *(pod(f"p{number}") for number in range(5)))
    bench.run_until(600.0)
    ((_, told),) = bench.of(BudgetMisconfigured)
    assert (told.budget.name, told.why) == ("b1", never_allows(numbers(5, 5)))
    hints = {effect.hints for _, effect in bench.of(Held)} | {effect.hints for _, effect in bench.of(EvictionFailed)}
    assert hints == {reasons([numbers(5, 5)], ready=True)}


def test_a_budget_that_was_put_right_and_wrong_again_is_told_again() -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)), PodSeen(pod("p1")), api=always(HELD_BY_BUDGET))
    for found in (numbers(1, 1), numbers(2, 1, healthy=1), numbers(1, 1)):
        bench.see(found)
        bench.run_until(bench.now + 120.0)
    assert len(bench.of(BudgetMisconfigured)) == 2


def test_misconfigured_budgets_are_counted_though_they_hold_nobody_yet() -> None:
    bench = EvictionBench()
    bench.see(numbers(1, 1), replace(numbers(3, 1), name="b2"))
    assert bench.engine.queue.misconfigured_budgets() == 1
