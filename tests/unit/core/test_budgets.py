"""Which disruption budgets select which pod."""

from dataclasses import replace

import pytest

from taintkeeper.core.budgets import Budget, BudgetBook
from tests.unit.core.builders import EVERYTHING, budget, pod

WEB = pod("web", labels={"app": "web"})


def book(*budgets: Budget) -> BudgetBook:
    found = BudgetBook()
    for each in budgets:
        found.put(each)
    return found


@pytest.mark.parametrize(
    ("found", "selects"),
    [
        pytest.param(budget(app="web"), True, id="by label"),
        pytest.param(budget(app="api"), False, id="by another label"),
        pytest.param(budget(), True, id="an empty selector selects everything"),
        pytest.param(replace(budget(), selector=None), False, id="no selector selects nothing"),
    ],
)
def test_a_budget_covers_the_pods_that_its_selector_matches(found: Budget, *, selects: bool) -> None:
    assert found.selects(WEB) is selects
    assert book(found).of(WEB) == ([found] if selects else [])


def test_the_budgets_of_a_pod_are_those_of_its_namespace_in_order_of_name() -> None:
    second, first, other = budget("b2", app="web"), budget("b1"), Budget("elsewhere", "b0", EVERYTHING)
    assert book(second, other, first).of(WEB) == [first, second]


@pytest.mark.parametrize(
    ("phase", "asked"),
    [("Running", True), ("Unknown", True), ("Pending", False), ("Succeeded", False), ("Failed", False)],
)
def test_no_budget_is_asked_for_a_pod_that_does_not_run(phase: str, *, asked: bool) -> None:
    assert book(budget()).of(replace(WEB, phase=phase)) == ([budget()] if asked else [])


def test_a_budget_is_known_by_what_was_last_seen_of_it() -> None:
    found = book(budget(allowed=1), budget(allowed=3))
    assert found.get("default", "b1") == budget(allowed=3)
    found.drop("default", "b1")
    found.drop("default", "b1")
    found.drop("nowhere", "b1")
    assert found.get("default", "b1") is None
    assert found.of(WEB) == []


@pytest.mark.parametrize(
    ("names", "allowed"), [(["b1"], 1), (["b1", "b2"], 1), (["b2"], 2), (["b2", "gone"], 2), (["gone"], 0), ([], 0)]
)
def test_the_tightest_budget_decides_and_one_that_is_gone_has_no_say(names: list[str], allowed: int) -> None:
    assert book(budget("b1", allowed=1), budget("b2", allowed=2)).allowed("default", names) == allowed


def test_a_budget_is_known_by_namespace_and_name() -> None:
    assert Budget("ns", "b1", None).key == ("ns", "b1")
