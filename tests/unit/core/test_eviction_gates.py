"""How the queue lets pods through its gates: no more than are free, none lost, and no timer for nothing."""

from dataclasses import replace

import pytest

from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import (
    BudgetGone,
    BudgetSeen,
    Evict,
    Evicted,
    EvictionFailed,
    Held,
    Knowledge,
    NodeSeen,
    PodGone,
    PodSeen,
)
from taintkeeper.core.pace import PACES
from taintkeeper.core.pacing import Backoff
from tests.unit.core.builders import ACCEPTED, FOO, HELD_BY_BUDGET, THROTTLED, budget, lasting, no_execute, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always

TAINTED = NodeSeen(node("n1", FOO))


def pods(number: int) -> list[PodSeen]:
    return [PodSeen(pod(f"p{index}")) for index in range(number)]


def test_each_refusal_has_its_pace() -> None:
    assert {
        Outcome.BUDGET: Backoff(base=5.0, cap=60.0),
        Outcome.NAMESPACE_TERMINATING: Backoff(base=15.0, cap=60.0),
        Outcome.FORBIDDEN: Backoff(base=1.0, cap=60.0),
        Outcome.SEVERAL_BUDGETS: Backoff(base=60.0, cap=60.0),
        Outcome.TRANSIENT: Backoff(base=1.0, cap=60.0),
        Outcome.UNEXPECTED: Backoff(base=5.0, cap=60.0),
    } == PACES


@pytest.mark.parametrize(("allowed", "ready"), [(0, 1), (2, 2), (3, 2)])
def test_a_gate_lets_one_through_as_a_probe_and_one_when_it_opens(allowed: int, ready: int) -> None:
    """Nothing is posted meanwhile, so that all who were let through can be seen."""
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(9), api=always(HELD_BY_BUDGET))
    bench.tell(Knowledge(False))
    bench.run_until(100.0)
    if allowed:
        bench.see(budget(allowed=allowed))
    assert (bench.count(State.READY), bench.count(State.BLOCKED)) == (ready, 9 - ready)


def test_a_pod_that_went_to_another_gate_takes_nobodys_turn_at_the_old_one() -> None:
    def api(effect: Evict, now: float) -> Answer:
        return ACCEPTED if effect.pod.name == "p1" and now >= 1.0 else HELD_BY_BUDGET

    bench = EvictionBench(TAINTED, BudgetSeen(budget()), api=api)
    bench.see(pod("p0", priority=-1), pod("p1"))
    bench.run_until(1.0)
    bench.see(pod("p0", priority=-1, ready=False))
    bench.run_until(100.0)
    assert [effect.pod.name for _, effect in bench.of(Evicted)] == ["p1"]


def test_no_timer_is_set_for_a_gate_behind_which_nobody_waits() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(1), api=always(None))
    bench.tell(PodGone("p0-uid"))
    bench.answer(bench.unanswered[0], HELD_BY_BUDGET)
    assert bench.engine.wake_at(0.0) is None


@pytest.mark.parametrize(("seconds", "least", "most"), [(900.0, 1.0, 1.25), (0.5, 0.5, 0.5)])
def test_the_engine_asks_to_be_woken_at_the_earlier_of_a_deadline_and_the_end_of_a_pause(
    seconds: float, least: float, most: float
) -> None:
    tainted = NodeSeen(node("n1", no_execute("foo", -1000.0)))
    counting = PodSeen(pod("q1", lasting("foo", 1000), bound=seconds - 1000.0))
    bench = EvictionBench(tainted, *pods(1), counting, api=always(THROTTLED))
    at = bench.engine.wake_at(0.0)
    assert at is not None
    assert least <= at <= most


def test_a_throttled_engine_whose_places_are_taken_waits_for_an_answer() -> None:
    bench = EvictionBench(TAINTED, *pods(20), api=always(None))
    assert len(bench.unanswered) == 16
    assert bench.engine.wake_at(0.0) is None


def test_of_several_budgets_the_tightest_closes_the_gate() -> None:
    budgets = [BudgetSeen(budget("b1", allowed=0)), BudgetSeen(budget("b2", allowed=5))]
    bench = EvictionBench(TAINTED, *budgets, *pods(5), api=always(None))
    assert len(bench.unanswered) == 1


def test_a_pod_that_is_seen_terminating_before_its_answer_comes_is_never_posted_again() -> None:
    bench = EvictionBench(TAINTED, *pods(1), api=always(None), lingers=None)
    bench.see(pod("p0", deleting=True))
    bench.answer(bench.unanswered[0], ACCEPTED)
    bench.run_until(1000.0)
    assert len(bench.posts()) == 1
    assert bench.count(State.LEAVING) == 1


def test_a_refusal_by_a_budget_tells_when_the_next_one_is_tried() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(1), api=always(HELD_BY_BUDGET))
    bench.run_until(30.0)
    failed, posts = bench.of(EvictionFailed), bench.times("p0")
    assert len(posts) >= 3
    assert [at + effect.retry_in for at, effect in failed[:-1]] == pytest.approx(posts[1:])


def test_a_blocked_pod_stays_where_it_is_when_what_changes_has_nothing_to_do_with_budgets() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(1), api=always(HELD_BY_BUDGET))
    bench.tell(Knowledge(False))
    bench.see(pod("p0", labels={"changed": "yes"}))
    assert bench.count(State.BLOCKED) == 1
    bench.see(pod("p0", ready=False))
    assert bench.count(State.READY) == 1


def test_a_budget_that_is_deleted_holds_nobody_any_more() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(5), api=always(None))
    assert len(bench.unanswered) == 1
    bench.tell(BudgetGone("default", "b1"))
    assert len(bench.unanswered) == 5


def test_the_turn_of_a_pod_that_needs_no_budget_any_more_goes_to_the_next_at_once() -> None:
    held = {"app": "held"}
    bench = EvictionBench(TAINTED, BudgetSeen(budget(app="held")), api=always(HELD_BY_BUDGET))
    bench.see(pod("p0", priority=-1, labels=held), pod("p1", labels=held))
    bench.tell(Knowledge(False))
    bench.run_until(100.0)
    bench.api = always(None)
    bench.see(pod("p0", priority=-1))
    bench.tell(Knowledge(True))
    assert {effect.pod.name for effect in bench.unanswered} == {"p0", "p1"}


def test_a_pod_that_is_held_again_is_not_told_again() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(4), api=always(HELD_BY_BUDGET))
    bench.tell(Knowledge(False))
    bench.see(budget(allowed=3), budget(allowed=0))
    bench.tell(Knowledge(True))
    held = [effect.pod.name for _, effect in bench.of(Held)]
    assert sorted(held) == ["p1", "p2", "p3"]
    assert bench.count(State.BLOCKED) == 4


def test_a_pod_that_comes_to_a_gate_between_two_probes_is_tried_at_the_next() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(1), api=always(None))
    bench.tell(PodGone("p0-uid"))
    bench.answer(bench.unanswered[0], HELD_BY_BUDGET)
    bench.run_until(1.0)
    bench.see(pod("p1"))
    bench.run_until(100.0)
    (at,) = bench.times("p1")
    assert 5.0 <= at <= 6.25


def test_a_pod_that_was_let_go_is_not_counted_as_blocked_while_it_terminates() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(1), api=always(HELD_BY_BUDGET), lingers=3600.0)
    bench.run_until(100.0)
    assert bench.engine.queue.oldest_blocked(100.0) == 100.0
    bench.api = always(ACCEPTED)
    bench.see(budget(allowed=1))
    bench.run_until(200.0)
    assert bench.count(State.LEAVING) == 1
    assert bench.engine.queue.oldest_blocked(200.0) == 0.0


def test_a_refusal_that_comes_during_a_pause_tells_what_is_left_of_it() -> None:
    bench = EvictionBench(TAINTED, *pods(2), api=always(None))
    first, second = bench.unanswered
    bench.run_until(100.0)
    bench.answer(first, THROTTLED)
    ((_, failed),) = bench.of(EvictionFailed)
    bench.now = 100.0 + failed.retry_in - 0.25
    bench.answer(second, replace(THROTTLED, retry_after=0.0))
    assert bench.of(EvictionFailed)[1][1].retry_in == pytest.approx(0.25)
