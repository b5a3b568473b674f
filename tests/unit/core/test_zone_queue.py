"""The nodes of a zone that wait for NoExecute, in order of arrival."""

import math

import pytest

from taintkeeper.core.zones import ZoneQueue
from tests.unit.core.builders import case

FAST = 1000.0


def queue_of(*names: str, rate: float = FAST) -> ZoneQueue:
    queue = ZoneQueue(rate, 0.0)
    for name in names:
        queue.add(name)
    return queue


def served(queue: ZoneQueue, start: float = 0.0) -> list[str]:
    """Take out as many as the queue yields within a hundred seconds."""
    names, now = [], start
    while now < start + 100.0:
        if name := queue.take(now):
            names.append(name)
        now += 1.0
    return names


@pytest.mark.upstream("TestAddNode")
def test_nodes_wait_in_order_of_arrival() -> None:
    queue = queue_of("first", "second", "third")
    assert len(queue) == 3
    queue.add("first")
    assert served(queue) == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        case("TestDelNode: the first", "first", ["second", "third"]),
        case("TestDelNode: the second", "second", ["first", "third"]),
        case("TestDelNode: the third", "third", ["first", "second"]),
    ],
)
def test_who_is_taken_out_leaves_the_order_of_the_others(gone: str, left: list[str]) -> None:
    queue = queue_of("first", "second", "third")
    queue.remove(gone)
    queue.remove(gone)
    assert served(queue) == left


@pytest.mark.upstream("TestTry")
def test_the_nodes_that_are_left_are_served() -> None:
    queue = queue_of("first", "second", "third")
    queue.remove("second")
    assert served(queue) == ["first", "third"]
    assert queue.take(1e6) is None
    assert len(queue) == 0


@pytest.mark.upstream("TestTryOrdering")
def test_a_node_whose_write_fails_keeps_its_token_and_the_others_go_on() -> None:
    queue = queue_of("first", "second", "third")
    assert queue.take(0.0) == "first"
    queue.add("first")
    assert queue.granted("first")
    assert served(queue, 1.0) == ["second", "third"]


@pytest.mark.upstream("TestTryRemovingWhileTry")
def test_a_node_that_is_taken_out_while_it_is_written_is_not_tried_again() -> None:
    queue = queue_of("first", "second", "third")
    assert queue.take(0.0) == "first"
    queue.remove("first")
    assert not queue.granted("first")
    assert served(queue, 1.0) == ["second", "third"]


@pytest.mark.upstream("TestClear")
def test_a_queue_that_all_have_left_yields_nobody() -> None:
    names = ("first", "second", "third")
    queue = queue_of(*names)
    queue.take(0.0)
    for name in names:
        queue.remove(name)
    assert (len(queue), queue.granted("first"), served(queue)) == (0, False, [])


@pytest.mark.parametrize(
    ("rate", "at"),
    [case("TestSwapLimiter: 0 qps never", 0.0, math.inf), case("TestSwapLimiter: 5.5 qps", 5.5, 1 / 5.5)],
)
def test_another_rate_holds_for_those_who_wait(rate: float, at: float) -> None:
    queue = queue_of("first", "second")
    assert queue.take(0.0) == "first"
    queue.bucket.set_rate(rate, 0.0)
    assert queue.next_at(0.0) == pytest.approx(at)
    assert queue.take(0.0) is None


@pytest.mark.upstream("TestAddAfterTry")
def test_who_was_served_is_not_served_again_unless_taken_out() -> None:
    queue = queue_of("first")
    assert served(queue) == ["first"]
    assert queue.granted("first")
    queue.add("first")
    assert served(queue, 200.0) == []
    queue.remove("first")
    assert not queue.granted("first")
    queue.add("first")
    assert served(queue, 400.0) == ["first"]


def test_nobody_waiting_costs_no_token_and_names_no_time() -> None:
    queue = queue_of(rate=0.1)
    assert queue.take(0.0) is None
    assert queue.next_at(0.0) == math.inf
    queue.add("first")
    assert queue.next_at(0.0) == 0.0
    assert queue.take(0.0) == "first"
