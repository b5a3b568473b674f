"""The queue over all pods that must leave: its limits, its order, its counts and its size."""

from dataclasses import replace
from random import Random

import pytest

from taintkeeper.core.answers import Answer
from taintkeeper.core.eviction import EvictionEngine
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import (
    BudgetSeen,
    Evict,
    Evicted,
    Knowledge,
    NodeGone,
    NodeSeen,
    NodeWritten,
    PodGone,
    PodSeen,
    Remember,
    Woke,
    WriteResult,
)
from taintkeeper.core.tracks import AHEAD_SECONDS
from tests.unit.core.builders import (
    ACCEPTED,
    FOO,
    FORBIDDEN,
    GONE,
    HELD_BY_BUDGET,
    THROTTLED,
    budget,
    lasting,
    node,
    pod,
)
from tests.unit.core.eviction_bench import EvictionBench, always, until

TAINTED = NodeSeen(node("n1", FOO))


def pods(number: int) -> list[PodSeen]:
    return [PodSeen(pod(f"p{index:03}")) for index in range(number)]


def test_no_more_are_under_way_than_the_limit_and_the_next_follows_each_answer() -> None:
    bench = EvictionBench(TAINTED, *pods(10), api=always(None), options=EvictionOptions(concurrency=3))
    assert len(bench.unanswered) == 3
    for _ in range(7):
        bench.answer(bench.unanswered[0], ACCEPTED)
        assert len(bench.unanswered) == 3
    for left in (2, 1, 0):
        bench.answer(bench.unanswered[0], FORBIDDEN)
        assert len(bench.unanswered) == left


def test_sixteen_are_under_way_at_most_unless_chosen_otherwise() -> None:
    assert len(EvictionBench(TAINTED, *pods(40), api=always(None)).unanswered) == 16


def test_no_pod_has_two_evictions_under_way() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(None))
    bench.see(pod("p1", labels={"changed": "yes"}))
    bench.taint()
    bench.taint(FOO)
    bench.run_until(1000.0)
    assert len(bench.posts()) == 1


def test_a_pod_that_is_seen_again_after_its_deletion_has_no_second_eviction_under_way() -> None:
    """A list from a server that lags behind may show a pod once more that the watch has seen deleted."""
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(None))
    bench.tell(PodGone("p1-uid"))
    bench.see(pod())
    assert len(bench.posts()) == 1
    bench.answer(bench.unanswered[0], FORBIDDEN)
    bench.run_until(100.0)
    assert len(bench.posts()) == 2
    assert bench.count(State.POSTED) == 1


def test_pods_that_are_due_together_leave_in_their_order() -> None:
    due = [
        pod("critical", critical=True),
        pod("high", priority=5),
        pod("overdue", bound=-20.0),
        pod("least", priority=-5),
        pod("due", bound=-10.0),
    ]
    old = NodeSeen(node("n1", replace(FOO, time_added=-50.0)))
    bench = EvictionBench(old, *(PodSeen(each) for each in due), options=EvictionOptions(concurrency=1))
    assert [name for _, name in bench.posts()] == ["least", "overdue", "due", "high", "critical"]


def test_the_same_events_lead_to_the_same_effects() -> None:
    def play() -> list[tuple[float, object]]:
        bench = EvictionBench(BudgetSeen(budget(allowed=1)), *pods(30), TAINTED, api=until(50.0, HELD_BY_BUDGET))
        bench.run_until(500.0)
        return [*bench.log]

    assert play() == play()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ACCEPTED, State.LEAVING),
        (GONE, State.LEAVING),
        (HELD_BY_BUDGET, State.PAUSING),
        (FORBIDDEN, State.PAUSING),
        (THROTTLED, State.READY),
        (None, State.POSTED),
    ],
)
def test_each_pod_is_counted_in_the_state_it_is_in(answer: Answer | None, state: State) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(answer), lingers=None)
    assert +bench.engine.queue.tracks.counts == {state: 1}
    bench.tell(PodGone("p1-uid"))
    assert +bench.engine.queue.tracks.counts == {}


def test_an_answer_about_a_pod_that_was_deleted_meanwhile_still_counts() -> None:
    bench = EvictionBench(TAINTED, *pods(2), api=always(None), options=EvictionOptions(concurrency=1))
    bench.tell(PodGone("p000-uid"))
    assert len(bench.unanswered) == 1
    bench.answer(bench.unanswered[0], ACCEPTED)
    assert [effect.pod.name for _, effect in bench.of(Evicted)] == ["p000"]
    assert [name for _, name in bench.posts()] == ["p000", "p001"]


def test_a_pod_that_moves_is_judged_on_its_new_node_only() -> None:
    bench = EvictionBench(TAINTED, NodeSeen(node("n2")), PodSeen(pod("p1", lasting("foo", 60))))
    bench.see(pod("p1", lasting("foo", 60), node="n2"))
    bench.tell(NodeGone("n1"))
    bench.see(node("n1", FOO))
    bench.run_until(100.0)
    assert bench.posts() == []
    bench.taint(replace(FOO, time_added=100.0), on="n2")
    bench.run_until(1000.0)
    assert bench.times() == [160.0]


@pytest.mark.parametrize(
    ("answer", "limit"),
    [(ACCEPTED, 9), (FORBIDDEN, 9), (Answer(500), 8), (Answer(0), 8)],
    ids=["accepted", "refused", "500", "connection lost"],
)
def test_the_limit_rises_again_with_answers_but_not_with_a_server_that_fails(answer: Answer, limit: int) -> None:
    bench = EvictionBench(TAINTED, *pods(16), api=always(None))
    bench.answer(bench.unanswered[0], THROTTLED)
    assert bench.engine.queue.limit == 8
    for effect in list(bench.unanswered[:12]):
        bench.answer(effect, answer)
    assert bench.engine.queue.limit == limit


@pytest.mark.parametrize("concurrency", [1, 16])
def test_our_own_pod_is_tried_when_nothing_else_is_due_or_under_way_any_more(concurrency: int) -> None:
    options = EvictionOptions(concurrency=concurrency, own=("default", "p000"))
    bench = EvictionBench(TAINTED, *pods(3), api=always(None), options=options)
    while len(bench.unanswered) > 1 or bench.count(State.READY) > 1:
        assert [effect.pod.name for effect in bench.unanswered] != ["p000"]
        bench.run_until(bench.now + 1.0)
        bench.answer(bench.unanswered[0], ACCEPTED)
    bench.answer(bench.unanswered[0], ACCEPTED)
    assert [effect.pod.name for effect in bench.unanswered] == ["p000"]


def test_a_counting_pod_that_changes_often_costs_no_more_memory() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 3600))))
    for number in range(200):
        bench.see(pod("p1", lasting("foo", 3600), labels={"restarts": str(number)}))
    assert len(bench.engine.queue.tracks._timers) <= 2


def test_a_blocked_pod_that_flaps_costs_no_more_memory() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(2), api=always(HELD_BY_BUDGET))
    for number in range(200):
        bench.see(pod("p000", ready=bool(number % 2)), pod("p001", ready=bool(number % 2)))
    queue = bench.engine.queue
    gatekeeper = queue._passage.gatekeeper
    waiting = [gate.waiting for gate in gatekeeper._gates.take_down("default")]
    assert sum(len(each) for each in waiting) <= 4
    assert len(queue.tracks._timers) + len(queue.tracks._near) + len(queue.tracks._ready) + len(gatekeeper._timers) <= 8


def test_the_engine_asks_to_be_woken_only_when_there_is_something_to_do() -> None:
    bench = EvictionBench(fresh=False)
    assert bench.engine.wake_at(0.0) is None
    bench.tell(TAINTED, PodSeen(pod("p1", lasting("foo", 60))))
    assert bench.engine.wake_at(0.0) == 60.0 - AHEAD_SECONDS
    bench.run_until(100.0)
    assert (bench.engine.wake_at(100.0), bench.posts()) == (None, [])
    bench.api = always(None)
    bench.tell(Knowledge(True))
    assert (bench.engine.wake_at(100.0), bench.times()) == (None, [100.0])


def test_a_throttled_engine_asks_to_be_woken_at_the_end_of_the_pause() -> None:
    bench = EvictionBench(TAINTED, *pods(3), api=always(THROTTLED))
    at = bench.engine.wake_at(0.0)
    assert at is not None
    assert 1.0 <= at <= 1.25


def test_a_memory_that_could_not_be_written_is_tried_again_while_knowledge_is_fresh() -> None:
    engine = EvictionEngine(EvictionOptions(), Random(1))
    failed = NodeWritten("n1", WriteResult.FAILED)
    assert engine.handle(NodeSeen(node("n1", replace(FOO, time_added=None))), 0.0) == []
    first = engine.handle(Knowledge(True), 1.0)
    assert first == [Remember("n1", "n1-uid", {"foo:NoExecute": 0.0})]
    assert engine.handle(failed, 2.0) == []
    at = engine.wake_at(2.0)
    assert at is not None
    assert 2.5 <= at <= 2.625
    assert engine.handle(Woke(), at) == first
    engine.handle(failed, 4.0)
    assert engine.handle(Knowledge(False), 100.0) == []
    assert engine.wake_at(100.0) is None


def test_time_going_by_in_one_leap_evicts_all_that_came_due_most_urgent_first() -> None:
    bench = EvictionBench(TAINTED, options=EvictionOptions(concurrency=1))
    for name, seconds in (("later", 20), ("sooner", 10), ("last", 30)):
        bench.see(pod(name, lasting("foo", seconds)))
    bench.now = 500.0
    bench.run_until(500.0)
    assert bench.posts() == [(500.0, "sooner"), (500.0, "later"), (500.0, "last")]
    assert [effect.lateness for _, effect in bench.of(Evicted)] == [490.0, 480.0, 470.0]


def test_an_eviction_names_pod_and_deadline() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 5))))
    bench.run_until(10.0)
    ((_, evict),) = bench.of(Evict)
    assert (evict.pod, evict.deadline.due, evict.deadline.taint) == (pod("p1").ref, 5.0, FOO)
