"""What the Eviction API would answer in a dry run: its own checks, with what the dry run has used up already."""

from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.core.answers import Answer, Outcome, classify
from taintkeeper.core.budgets import Budget
from taintkeeper.core.messages import BudgetGone, BudgetSeen, Knowledge, NodeGone, NodeSeen, PodGone, PodSeen
from taintkeeper.core.objects import NO_SCHEDULE, Pod, PodRef, Taint
from taintkeeper.core.policies import Mode, TaintPattern
from taintkeeper.core.policy_messages import PolicyGone
from taintkeeper.core.shadow import Seen, ShadowBudgets
from tests.unit.core.builders import EVERYTHING, FOO, node, pod
from tests.unit.core.policy_bench import policy, seen

ACCEPTED = Answer(201)


def budget(name: str = "b1", **facts: Any) -> Budget:
    return Budget("default", name, EVERYTHING, **facts)


def shadow(*seen: Seen | Pod | Budget) -> ShadowBudgets:
    """Return a shadow that has seen these; node n1 is tainted NoExecute."""
    made = ShadowBudgets()
    made.feed(NodeSeen(node("n1", FOO)))
    for each in seen:
        made.feed(PodSeen(each) if isinstance(each, Pod) else BudgetSeen(each) if isinstance(each, Budget) else each)
    return made


def pods(count: int, **facts: Any) -> list[Pod]:
    return [pod(f"p{number}", **facts) for number in range(count)]


def statuses(under: ShadowBudgets, *evicted: Pod) -> list[int]:
    return [under.evict(each.ref).status for each in evicted]


def test_a_closed_budget_refuses_and_is_named() -> None:
    answer = shadow(pod(), budget(healthy=2, desired=2)).evict(pod().ref)
    assert classify(answer, budgets=1) is Outcome.BUDGET
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == (
        "Cannot evict pod as it would violate the pod's disruption budget. "
        "The disruption budget b1 needs 2 healthy pods and has 2 currently"
    )


def test_a_budget_that_is_closed_for_another_reason_is_named_too() -> None:
    answer = shadow(pod(), budget(healthy=3, desired=2)).evict(pod().ref)
    assert classify(answer, budgets=1) is Outcome.BUDGET
    assert answer.message.endswith("The disruption budget b1 does not allow evicting pods currently")


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([pod()], id="without a budget"),
        pytest.param([pod(), Budget("elsewhere", "b1", EVERYTHING)], id="a budget of another namespace"),
        pytest.param([pod(), replace(budget(), selector=None)], id="a budget that selects nothing"),
        pytest.param([pod(), budget(), BudgetGone("default", "b1")], id="a budget that is gone"),
        pytest.param([pod(), budget(allowed=1)], id="an open budget"),
        pytest.param([pod(phase="Pending"), budget()], id="a pod that has not started"),
        pytest.param([pod(deleting=True), budget()], id="a pod that is terminating"),
        pytest.param([pod(deleting=True), budget("b1"), budget("b2")], id="a pod that is terminating, two budgets"),
    ],
)
def test_what_no_budget_holds_is_evicted(seen: list[Pod | Budget]) -> None:
    assert shadow(*seen, Knowledge(fresh=True)).evict(pod().ref) == ACCEPTED


@pytest.mark.reported("kubernetes/kubernetes#75957")
def test_several_budgets_on_one_pod_are_an_error_even_where_all_are_open() -> None:
    answer = shadow(pod(), budget("b1", allowed=5), budget("b2", allowed=5)).evict(pod().ref)
    assert classify(answer, budgets=2) is Outcome.SEVERAL_BUDGETS
    assert answer.message == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


@pytest.mark.parametrize("seen", [[], [pod(), PodGone("p1-uid")], [pod(uid="another")]], ids=["never", "gone", "other"])
def test_a_pod_that_is_not_there_is_not_found(seen: list[Seen | Pod]) -> None:
    answer = shadow(*seen).evict(PodRef("default", "p1", "p1-uid"))
    assert (answer.status, answer.message) == (404, 'pods "p1" not found')


@pytest.mark.reported("kubernetes/kubernetes#113375")
@pytest.mark.parametrize(
    ("facts", "ready", "status"),
    [
        pytest.param({"always_allow": True}, False, 201, id="always allowed"),
        pytest.param({"always_allow": True, "healthy": 2, "desired": 2}, True, 429, id="always allowed, but ready"),
        pytest.param({"healthy": 2, "desired": 2}, False, 201, id="enough healthy"),
        pytest.param({"healthy": 1, "desired": 2}, False, 429, id="too few healthy"),
        pytest.param({"healthy": 0, "desired": 0}, False, 429, id="none desired and none allowed"),
    ],
)
def test_a_pod_that_is_not_ready_leaves_as_its_budgets_policy_says(
    facts: dict[str, Any], ready: bool, status: int
) -> None:
    assert shadow(pod(ready=ready), budget(**facts)).evict(pod().ref).status == status


def test_of_500_pods_as_many_leave_as_the_budget_allows() -> None:
    all_pods = pods(500)
    under = shadow(*all_pods, budget(allowed=3, healthy=500, desired=497))
    assert statuses(under, *all_pods) == [201] * 3 + [429] * 497
    assert under.evict(all_pods[9].ref).message.endswith("b1 needs 497 healthy pods and has 497 currently")


def test_a_pod_that_is_gone_in_the_dry_run_uses_no_second_disruption() -> None:
    first, second, third = pods(3)
    under = shadow(first, second, third, budget(allowed=2, healthy=3, desired=1))
    assert statuses(under, first, first, first, second, third) == [201, 201, 201, 201, 429]


def test_each_budget_has_a_count_of_its_own() -> None:
    here, there = pod("p0"), pod("p0", namespace="other", uid="there")
    under = shadow(here, there, budget(allowed=1), Budget("other", "b1", EVERYTHING, allowed=1))
    assert statuses(under, here, there) == [201, 201]


FIRST, SECOND = pod("p0"), pod("p1")
SCHEDULING = node("n1", Taint("foo", NO_SCHEDULE))
EVICTS, KEEPS = (
    seen(policy(taints=(TaintPattern("foo", effect=NO_SCHEDULE),), mode=mode), version=version)
    for version, mode in ((1, Mode.EVICT), (2, Mode.IGNORE))
)


@pytest.mark.parametrize(
    ("then", "status"),
    [
        pytest.param([budget(allowed=1, healthy=2, desired=1)], 429, id="its budget is told of again"),
        pytest.param([replace(FIRST, labels={"a": "b"})], 429, id="it changes"),
        pytest.param([NodeSeen(node("n1", FOO, labels={"a": "b"}))], 429, id="its node changes"),
        pytest.param([NodeSeen(node("n2"))], 429, id="another node has no taint"),
        pytest.param([BudgetGone("default", "b1"), budget(allowed=1)], 429, id="its budget is made anew"),
        pytest.param([PodGone("p0-uid")], 201, id="it goes in truth"),
        pytest.param([replace(FIRST, deleting=True)], 201, id="it terminates in truth"),
        pytest.param([replace(FIRST, deleting=True), PodGone("p0-uid")], 201, id="it terminates and goes"),
        pytest.param([NodeSeen(node("n1"))], 201, id="its node has no taint any more"),
        pytest.param([NodeSeen(node("n1", Taint("foo", NO_SCHEDULE)))], 201, id="its node has no NoExecute taint"),
        pytest.param([NodeGone("n1")], 201, id="its node goes"),
        pytest.param([EVICTS, NodeSeen(SCHEDULING)], 429, id="its node has another taint by which a policy evicts"),
        pytest.param([NodeSeen(SCHEDULING), EVICTS], 201, id="a policy comes too late"),
        pytest.param([EVICTS, NodeSeen(SCHEDULING), PolicyGone("p")], 201, id="that policy goes"),
        pytest.param([EVICTS, NodeSeen(SCHEDULING), KEEPS], 201, id="that policy lets pods stay"),
    ],
)
def test_a_pod_counts_as_gone_until_its_budget_or_its_owner_would_have_made_up_for_it(
    then: list[Seen | Pod | Budget], status: int
) -> None:
    under = shadow(FIRST, SECOND, budget(allowed=1, healthy=2, desired=1))
    assert under.evict(FIRST.ref) == ACCEPTED
    for each in then:
        under.feed(PodSeen(each) if isinstance(each, Pod) else BudgetSeen(each) if isinstance(each, Budget) else each)
    assert under.evict(SECOND.ref).status == status


def test_a_pod_that_is_gone_in_the_dry_run_counts_only_while_its_budget_counts_it_as_healthy() -> None:
    first, second, third = pods(3)
    under = shadow(first, second, third, budget(allowed=1, healthy=3, desired=2))
    assert statuses(under, first, second) == [201, 429]
    under.feed(PodSeen(replace(first, ready=False)))
    under.feed(BudgetSeen(budget(allowed=0, healthy=2, desired=2)))
    assert statuses(under, second) == [429]
    under.feed(PodSeen(first))
    under.feed(BudgetSeen(budget(allowed=1, healthy=3, desired=2)))
    assert statuses(under, second) == [429]
    under.feed(BudgetSeen(budget(allowed=2, healthy=4, desired=2)))
    assert statuses(under, second, third) == [201, 429]


def test_pods_that_are_gone_in_the_dry_run_are_missed_when_those_that_are_not_ready_want_to_leave() -> None:
    well, sick = pod("well"), pod("sick", ready=False)
    under = shadow(well, sick, budget(allowed=1, healthy=2, desired=1))
    assert statuses(under, well, sick) == [201, 201]
    under.feed(BudgetSeen(budget(allowed=0, healthy=1, desired=1)))
    another = pod("another", ready=False)
    under.feed(PodSeen(another))
    assert statuses(under, another) == [429]


def test_nothing_is_kept_of_what_is_gone() -> None:
    all_pods = pods(3)
    under = shadow(*all_pods, budget(allowed=3, healthy=3))
    statuses(under, *all_pods)
    under.feed(PodSeen(replace(all_pods[0], ready=False)))
    for each in all_pods:
        under.feed(PodGone(each.ref.uid))
    assert not any((under._pods, under._absences, under._absent_from, under._missing))


def test_a_deletion_asks_no_budget_and_is_missed_by_it() -> None:
    first, second = pods(2)
    under = shadow(first, second, budget(allowed=1, healthy=2, desired=1))
    assert [under.delete(first.ref).status, under.delete(first.ref).status] == [200, 200]
    assert statuses(under, second) == [429]
    assert under.delete(second.ref).status == 200
    assert under.delete(PodRef("default", "none", "none-uid")).status == 404
