"""What each answer of the Eviction API leads to, and how soon it is asked again."""

from itertools import pairwise

import pytest

from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import BudgetSeen, Evicted, EvictionFailed, FoundGone, NodeSeen, PodGone, PodSeen
from tests.unit.core.builders import (
    ACCEPTED,
    CONNECTION_LOST,
    FOO,
    FORBIDDEN,
    GONE,
    HELD_BY_BUDGET,
    NAMESPACE_TERMINATING,
    SEVERAL_BUDGETS,
    THROTTLED,
    WEBHOOK_DOWN,
    budget,
    node,
    pod,
    reported,
)
from tests.unit.core.eviction_bench import EvictionBench, always, in_turn, until

TAINTED = NodeSeen(node("n1", FOO))
MOST_JITTER = 1.25


def pauses(bench: EvictionBench) -> list[float]:
    times = bench.times()
    return [after - before for before, after in pairwise(times)]


def outcomes(bench: EvictionBench) -> set[Outcome]:
    return {effect.outcome for _, effect in bench.of(EvictionFailed)}


@pytest.mark.parametrize(
    ("answer", "outcome", "least"),
    [
        pytest.param(FORBIDDEN, Outcome.FORBIDDEN, [1, 2, 4, 8, 16, 32, 60, 60], id="403"),
        pytest.param(Answer(500, "InternalError"), Outcome.TRANSIENT, [1, 2, 4, 8, 16, 32, 60, 60], id="500"),
        pytest.param(Answer(504, "Timeout"), Outcome.TRANSIENT, [1, 2, 4, 8, 16, 32, 60, 60], id="504"),
        pytest.param(CONNECTION_LOST, Outcome.TRANSIENT, [1, 2, 4, 8, 16, 32, 60, 60], id="connection lost"),
        pytest.param(Answer(422), Outcome.UNEXPECTED, [5, 10, 20, 40, 60, 60], id="422"),
        pytest.param(HELD_BY_BUDGET, Outcome.BUDGET, [5, 10, 20, 40, 60, 60], id="429 by a budget not seen yet"),
        reported("kubernetes/kubernetes#93947", "403 in a namespace that goes", NAMESPACE_TERMINATING,
                 Outcome.NAMESPACE_TERMINATING, [15, 30, 60, 60]),
    ],
)  # fmt: skip
def test_a_refusal_is_followed_by_a_growing_pause_and_never_given_up(
    answer: Answer, outcome: Outcome, least: list[float]
) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(answer))
    bench.run_until(7200.0)
    found = pauses(bench)
    for pause, expected in zip(found, least, strict=False):
        assert expected <= pause <= expected * MOST_JITTER
    assert all(60.0 <= pause <= 75.0 for pause in found[len(least) :])
    assert len(found) > len(least)
    assert outcomes(bench) == {outcome}
    assert (bench.count(State.PAUSING), len(list(bench.engine.queue.tracks))) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        reported("kubernetes/kubernetes#140639", "403 for two minutes", FORBIDDEN),
        reported("kubernetes/kubernetes#140639", "500 for two minutes", Answer(500, "InternalError")),
        reported("DataDog/draino#57", "403 from a webhook for two minutes", Answer(403, "Forbidden", message="denied")),
        reported("DataDog/draino#57", "500 from a webhook for two minutes", WEBHOOK_DOWN),
    ],
)
def test_a_failure_of_two_minutes_costs_about_as_many_tries_as_its_logarithm(answer: Answer) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=until(120.0, answer))
    bench.run_until(1000.0)
    assert 7 <= len(bench.times()) <= 9
    assert 120.0 <= bench.times()[-1] <= 240.0
    assert len(bench.of(Evicted)) == 1
    assert len(bench.of(EvictionFailed)) == len(bench.times()) - 1


def test_what_failed_is_told_with_the_answer_and_the_time_of_the_next_try() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=in_turn(FORBIDDEN, WEBHOOK_DOWN, ACCEPTED))
    bench.run_until(1000.0)
    failed = bench.of(EvictionFailed)
    assert [(effect.pod.name, effect.answer, effect.budgets) for _, effect in failed] == [
        ("p1", FORBIDDEN, ()),
        ("p1", WEBHOOK_DOWN, ()),
    ]
    assert [at + effect.retry_in for at, effect in failed] == pytest.approx(bench.times()[1:])


@pytest.mark.reported("kubernetes/kubernetes#106286")
def test_a_throttled_eviction_is_tried_again_after_the_time_that_the_server_named() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), BudgetSeen(budget()), api=in_turn(THROTTLED, ACCEPTED))
    ((_, failed),) = bench.of(EvictionFailed)
    assert failed.outcome is Outcome.THROTTLED
    bench.run_until(100.0)
    assert len(bench.times()) == 2
    assert 1.0 <= bench.times()[1] <= MOST_JITTER
    assert failed.retry_in == bench.times()[1]


@pytest.mark.parametrize("retry_after", [1.0, 30.0])
def test_a_server_that_is_overloaded_slows_all_evictions_down(retry_after: float) -> None:
    throttled = Answer(429, "TooManyRequests", retry_after=retry_after)
    pods = [PodSeen(pod(f"p{number}")) for number in range(20)]
    bench = EvictionBench(TAINTED, *pods, api=until(1.0, throttled), options=EvictionOptions(concurrency=4))
    assert len(bench.posts()) == 4
    assert bench.engine.queue.limit == 2
    bench.run_until(retry_after - 0.01)
    assert len(bench.posts()) == 4
    bench.run_until(1000.0)
    assert len(bench.posts()) == 24
    assert bench.engine.queue.limit == 4


@pytest.mark.parametrize(
    "answer",
    [
        reported("kubernetes/kubernetes#36409", "no time named for a budget", HELD_BY_BUDGET),
        reported("kubernetes/kubernetes#36409", "zero named for throttling", Answer(429, retry_after=0.0)),
        pytest.param(Answer(503, "ServiceUnavailable", retry_after=0.0), id="zero named for an outage"),
    ],
)
@pytest.mark.parametrize("seen", [[], [BudgetSeen(budget())]], ids=["no budget seen", "a budget seen"])
def test_an_answer_that_names_no_time_makes_no_hot_loop(answer: Answer, seen: list[BudgetSeen]) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), *seen, api=always(answer))
    bench.run_until(3600.0)
    assert min(pauses(bench)) >= 1.0
    assert len(bench.times()) <= 3600 / 30 + 8


@pytest.mark.reported("kubernetes/autoscaler#313")
def test_a_pod_that_is_gone_is_done() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(GONE))
    bench.run_until(59.0)
    assert bench.times() == [0.0]
    assert bench.of(FoundGone) == [(0.0, FoundGone(pod().ref, GONE))]
    assert (bench.of(Evicted), bench.of(EvictionFailed)) == ([], [])


def test_a_conflict_is_tried_again_until_the_watch_tells_that_the_pod_is_gone() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(Answer(409, "Conflict")))
    bench.run_until(10.0)
    assert 3 <= len(bench.times()) <= 5
    bench.tell(PodGone(pod().ref.uid))
    tried = len(bench.times())
    bench.run_until(600.0)
    assert len(bench.times()) == tried


@pytest.mark.reported("kubernetes/kubernetes#75957")
def test_a_pod_under_two_budgets_is_tried_once_a_minute_and_holds_nobody_back() -> None:
    def api(effect: object, _now: float) -> Answer:
        return SEVERAL_BUDGETS if "p1" in str(effect) else ACCEPTED

    budgets = [BudgetSeen(budget("b1", app="both")), BudgetSeen(budget("b2", app="both"))]
    pods = [pod("p1", labels={"app": "both"}), *(pod(f"q{number}") for number in range(20))]
    bench = EvictionBench(TAINTED, *budgets, *(PodSeen(each) for each in pods), api=api)
    assert len(bench.of(Evicted)) == 20
    bench.run_until(600.0)
    assert min(pauses(bench)) >= 60.0
    assert 8 <= len(bench.times()) <= 11
    assert outcomes(bench) == {Outcome.SEVERAL_BUDGETS}
    assert {effect.budgets for _, effect in bench.of(EvictionFailed)} == {("b1", "b2")}


def test_other_refusals_do_not_stop_the_others() -> None:
    def api(effect: object, _now: float) -> Answer:
        return FORBIDDEN if "p0" in str(effect) else ACCEPTED

    bench = EvictionBench(TAINTED, *(PodSeen(pod(f"p{number}")) for number in range(40)), api=api)
    assert len(bench.of(Evicted)) == 39


def test_an_eviction_that_is_accepted_late_tells_by_how_much() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=until(100.0, FORBIDDEN))
    bench.run_until(1000.0)
    ((at, evicted),) = bench.of(Evicted)
    assert evicted.lateness == at >= 100.0


def test_a_pause_does_not_grow_from_one_way_of_a_pod_to_the_next() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=until(500.0, FORBIDDEN))
    bench.run_until(400.0)
    bench.taint()
    bench.taint(FOO)
    bench.run_until(402.0)
    assert len([at for at in bench.times() if at >= 400.0]) == 2
