"""Pods behind disruption budgets: who tries, how often, and who is woken when."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.budgets import Budget
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import (
    BudgetGone,
    BudgetSeen,
    Cancelled,
    Evict,
    Evicted,
    EvictionFailed,
    EvictionInput,
    Held,
    Knowledge,
    NodeSeen,
    PodGone,
    PodSeen,
)
from tests.unit.core.builders import (
    ACCEPTED,
    CONNECTION_LOST,
    FOO,
    FORBIDDEN,
    HELD_BY_BUDGET,
    THROTTLED,
    budget,
    node,
    pod,
)
from tests.unit.core.eviction_bench import EvictionBench, always, in_turn, until

TAINTED = NodeSeen(node("n1", FOO))


def pods(number: int, **facts: object) -> list[PodSeen]:
    return [PodSeen(pod(f"p{index}", **facts)) for index in range(number)]


class Server:
    """Answers as the API server does for pods under one budget that has ``left`` disruptions to give."""

    def __init__(self, left: int = 0) -> None:
        self.left = left
        self.asked = 0

    def __call__(self, _effect: Evict, _now: float) -> Answer:
        """Take one of what is left, or refuse."""
        self.asked += 1
        if self.left == 0:
            return HELD_BY_BUDGET
        self.left -= 1
        return ACCEPTED


def behind(server: Server, number: int, *more: EvictionInput, options: EvictionOptions | None = None) -> EvictionBench:
    seen: list[EvictionInput] = [TAINTED, BudgetSeen(budget(allowed=server.left)), *pods(number), *more]
    return EvictionBench(*seen, api=server, options=options)


def allow(bench: EvictionBench, server: Server, number: int) -> None:
    server.left = number
    bench.see(budget(allowed=number))


@pytest.mark.reported("kubernetes/website#7829")
def test_a_pod_that_a_budget_holds_stays_and_is_counted_as_blocked() -> None:
    bench = behind(Server(0), 1)
    bench.run_until(600.0)
    assert bench.of(Evicted) == []
    assert bench.count(State.BLOCKED) == 1
    assert bench.engine.queue.oldest_blocked(bench.now) == 600.0
    outcomes = {(effect.outcome, effect.budgets) for _, effect in bench.of(EvictionFailed)}
    assert outcomes == {(Outcome.BUDGET, ("b1",))}


@pytest.mark.reported("kubernetes/kubernetes#126189")
def test_a_pod_leaves_once_its_budget_allows_it_and_no_sooner() -> None:
    server = Server(0)
    bench = behind(server, 2)
    bench.run_until(500.0)
    assert bench.of(Evicted) == []
    allow(bench, server, 1)
    assert [at for at, _ in bench.of(Evicted)] == [500.0]
    bench.run_until(1000.0)
    assert len(bench.of(Evicted)) == 1
    allow(bench, server, 1)
    assert [at for at, _ in bench.of(Evicted)] == [500.0, 1000.0]


@pytest.mark.reported("gardener/machine-controller-manager#703")
@pytest.mark.parametrize("seen", [True, False], ids=["the budget is seen closed", "the budget is seen open"])
def test_five_hundred_pods_behind_a_closed_budget_cost_a_few_calls_a_minute(*, seen: bool) -> None:
    server = Server(0)
    start: list[EvictionInput] = [TAINTED, BudgetSeen(budget(allowed=0 if seen else 2)), *pods(500)]
    bench = EvictionBench(*start, api=server)
    bench.run_until(60.0)
    assert 2 <= server.asked <= 7
    bench.run_until(3600.0)
    assert server.asked <= 70
    assert bench.count(State.BLOCKED) == 500


def test_every_pod_that_is_held_without_being_tried_is_told_once() -> None:
    bench = behind(Server(0), 5)
    bench.run_until(3600.0)
    held = [effect.pod.name for _, effect in bench.of(Held)]
    assert len(held) == len(set(held)) == 4
    assert {effect.budgets for _, effect in bench.of(Held)} == {("b1",)}


def test_a_budget_that_opens_lets_all_through_that_it_allows_and_one_call_more() -> None:
    server = Server(0)
    bench = behind(server, 500)
    bench.run_until(100.0)
    asked = server.asked
    allow(bench, server, 10)
    assert len(bench.of(Evicted)) == 10
    assert server.asked <= asked + 11


@pytest.mark.parametrize("answer", [FORBIDDEN, CONNECTION_LOST, THROTTLED], ids=["403", "lost", "throttled"])
def test_other_answers_behind_a_gate_keep_it_going(answer: Answer) -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(5), api=until(100.0, answer), lingers=0.0)
    bench.run_until(1000.0)
    assert len(bench.of(Evicted)) == 5


def test_a_blocked_pod_never_holds_back_another() -> None:
    def api(effect: Evict, _now: float) -> Answer:
        return HELD_BY_BUDGET if effect.pod.name.startswith("p") else ACCEPTED

    free = [PodSeen(pod(f"q{index}", priority=9)) for index in range(50)]
    closed = BudgetSeen(budget(app="held"))
    bench = EvictionBench(TAINTED, closed, *pods(50, labels={"app": "held"}), *free, api=api)
    assert len(bench.of(Evicted)) == 50


def test_pods_that_are_not_ready_are_tried_beside_the_ready_ones() -> None:
    """A budget may let unhealthy pods go while it holds the healthy ones (unhealthyPodEvictionPolicy)."""

    def api(effect: Evict, _now: float) -> Answer:
        return ACCEPTED if effect.pod.name == "sick" else HELD_BY_BUDGET

    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(3), PodSeen(pod("sick", ready=False)), api=api)
    assert [effect.pod.name for _, effect in bench.of(Evicted)] == ["sick"]


def sooner(*events: EvictionInput) -> Iterable[EvictionInput]:
    return events


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(sooner(BudgetGone("default", "b1")), id="the budget is deleted"),
        pytest.param(sooner(BudgetSeen(budget(app="other"))), id="the budget selects others now"),
        pytest.param(sooner(BudgetSeen(replace(budget(), selector=None))), id="the budget selects nobody now"),
        pytest.param(sooner(BudgetSeen(budget(allowed=1))), id="the budget allows one"),
        pytest.param(sooner(BudgetSeen(budget("b2", app="other"))), id="another budget comes"),
        pytest.param(sooner(PodSeen(pod("p0", ready=False))), id="the pod is not ready any more"),
    ],
)
def test_what_may_let_a_blocked_pod_go_wakes_it_at_once(events: list[EvictionInput]) -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(1), api=until(100.0, HELD_BY_BUDGET))
    bench.run_until(101.0)
    assert bench.of(Evicted) == []
    bench.tell(*events)
    assert [at for at, _ in bench.of(Evicted)] == [101.0]


@pytest.mark.parametrize("found", [budget(), budget("b0", app="other")], ids=["the same again", "with more of them"])
def test_a_budget_that_allows_no_more_than_before_wakes_nobody(found: Budget) -> None:
    server = Server(0)
    bench = behind(server, 5, BudgetSeen(budget("b0", app="other")))
    bench.run_until(101.0)
    asked = server.asked
    bench.see(found)
    assert server.asked == asked


def test_a_pod_whose_labels_change_goes_to_the_gate_of_its_new_budget() -> None:
    budgets = [
        BudgetSeen(budget("b1", app="one")),
        BudgetSeen(budget("b2", allowed=1, app="two")),
    ]
    one = PodSeen(pod("p1", labels={"app": "one"}))
    bench = EvictionBench(TAINTED, *budgets, one, api=in_turn(HELD_BY_BUDGET, ACCEPTED))
    bench.run_until(1.0)
    bench.see(pod("p1", labels={"app": "two"}))
    assert [at for at, _ in bench.of(Evicted)] == [1.0]


def test_the_most_urgent_pod_behind_a_gate_goes_first() -> None:
    server = Server(0)
    bench = behind(server, 0)
    bench.see(pod("first"), pod("high", priority=9), pod("low", priority=-9), pod("mid"))
    bench.run_until(50.0)
    allow(bench, server, 2)
    assert [effect.pod.name for _, effect in bench.of(Evicted)] == ["low", "first"]


def test_a_probe_whose_pod_is_deleted_meanwhile_leaves_no_one_waiting_for_ever() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget()), *pods(3), api=always(None))
    ((_, probe),) = bench.of(Evict)
    bench.tell(PodGone(probe.pod.uid))
    bench.api = until(30.0, HELD_BY_BUDGET)
    bench.answer(probe, HELD_BY_BUDGET)
    bench.run_until(600.0)
    assert len(bench.of(Evicted)) == 2


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(PodGone("p0-uid"), id="is deleted"),
        pytest.param(PodSeen(pod("p0", deleting=True)), id="terminates"),
        pytest.param(PodSeen(pod("p0", phase="Succeeded")), id="ends"),
        pytest.param(PodSeen(pod("p0", node="n2")), id="may stay"),
        pytest.param(PodSeen(pod("p0", labels={"app": "other"})), id="stands under no budget any more"),
    ],
)
def test_a_pod_that_was_let_through_but_never_tried_leaves_no_one_waiting_for_ever(change: EvictionInput) -> None:
    """Between its release and its turn the pod changes, since nothing may be posted meanwhile."""
    labels = {"app": "held"}
    first, *others = pods(3, labels=labels)
    urgent = PodSeen(replace(first.pod, priority=-1))
    seen: list[EvictionInput] = [TAINTED, BudgetSeen(budget(app="held")), urgent, *others]
    bench = EvictionBench(*seen, api=until(1.0, HELD_BY_BUDGET))
    bench.run_until(1.0)
    bench.tell(Knowledge(False))
    bench.run_until(100.0)
    bench.tell(change, Knowledge(True))
    bench.run_until(600.0)
    assert {"p1", "p2"} <= {effect.pod.name for _, effect in bench.of(Evicted)}


def test_a_blocked_pod_that_may_stay_is_cancelled_once() -> None:
    bench = behind(Server(0), 3)
    bench.run_until(100.0)
    bench.taint()
    assert len(bench.of(Cancelled)) == 3
    assert +bench.engine.queue.tracks.counts == {}
    assert bench.engine.queue.oldest_blocked(200.0) == 0.0


def test_the_oldest_blocked_pod_is_the_one_that_waits_longest_now() -> None:
    bench = behind(Server(0), 1)
    bench.run_until(100.0)
    bench.see(pod("later", bound=100.0))
    bench.run_until(150.0)
    assert bench.engine.queue.oldest_blocked(150.0) == 150.0
    bench.tell(PodGone("p0-uid"))
    assert bench.engine.queue.oldest_blocked(150.0) == 50.0


def test_pods_under_one_budget_are_tried_one_after_another_whatever_it_allows() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget(allowed=9)), *pods(10), api=always(None))
    for _ in range(3):
        assert len(bench.unanswered) == 1
        bench.answer(bench.unanswered[0], ACCEPTED)
    bench.see(budget(allowed=9))
    assert len(bench.unanswered) == 1


def test_pods_that_only_wait_for_their_turn_are_not_told_as_held() -> None:
    bench = EvictionBench(TAINTED, BudgetSeen(budget(allowed=5)), *pods(5), api=Server(5))
    bench.run_until(3600.0)
    assert (len(bench.of(Evicted)), bench.of(Held)) == (5, [])


def test_a_pod_that_comes_to_a_closed_gate_is_told_as_held_at_once() -> None:
    bench = behind(Server(0), 1)
    bench.see(pod("late"))
    assert [effect.pod.name for _, effect in bench.of(Held)] == ["late"]
