"""Before pods are evicted from a node, the node and its pods are read: what the watch told may be out of date."""

from dataclasses import replace
from random import Random

import pytest

from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.live_checks import MOST_UNDER_WAY, RETRY, VALID_SECONDS, LiveChecks
from taintkeeper.core.messages import Cancelled, EvictionInput, Knowledge, NodeSeen, PodGone, PodSeen, ReadNode
from taintkeeper.core.objects import Toleration
from taintkeeper.core.tracks import AHEAD_SECONDS
from tests.unit.core.builders import FOO, HELD_BY_BUDGET, budget, lasting, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always

LATER = int(VALID_SECONDS) + 1
READ_AT = 30.0 - AHEAD_SECONDS
"""When the node of a pod is read that is due after 30 s."""
TAINTED = NodeSeen(node("n1", FOO))


def pods(count: int, *tolerations: Toleration, on: str = "n1") -> list[EvictionInput]:
    return [PodSeen(pod(f"p{number}", *tolerations, node=on)) for number in range(count)]


@pytest.mark.reported("NVIDIA/NVSentinel#1415", "draino#116")
def test_a_taint_that_is_gone_from_the_live_node_evicts_nobody() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 30))))
    bench.run_until(20.0)
    bench.hidden["n1"] = node("n1")
    bench.run_until(100.0)
    assert bench.posts() == []
    assert [at for at, _ in bench.of(Cancelled)] == [READ_AT]


@pytest.mark.reported("kubernetes/kubernetes#140198")
def test_a_toleration_that_no_watch_told_of_keeps_the_pod() -> None:
    waiting = pod("p1", lasting("foo", 30), version=5)
    bench = EvictionBench(TAINTED, PodSeen(waiting))
    bench.hidden["p1-uid"] = replace(waiting, tolerations=(lasting("foo"),), version=9)
    bench.run_until(100.0)
    assert bench.posts() == []
    assert [at for at, _ in bench.of(Cancelled)] == [READ_AT]


def test_an_event_that_is_older_than_what_was_read_changes_nothing() -> None:
    waiting = pod("p1", lasting("foo", 30), version=5)
    bench = EvictionBench(TAINTED, PodSeen(waiting))
    bench.hidden["p1-uid"] = replace(waiting, tolerations=(lasting("foo"),), version=9)
    bench.run_until(40.0)
    bench.hidden.clear()
    bench.see(replace(waiting, version=8))
    bench.run_until(100.0)
    assert bench.posts() == []


def test_a_node_that_is_gone_evicts_nobody() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 30))))
    bench.hidden["n1"] = None
    bench.run_until(100.0)
    assert bench.posts() == []


def test_a_pod_that_is_found_only_by_reading_is_left_to_the_watch() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), lingers=None)
    bench.pods["p2-uid"] = pod("p2")
    bench.run_until(10.0)
    assert bench.posts() == [(0.0, "p1")]


def test_one_reading_serves_a_wave() -> None:
    bench = EvictionBench(*pods(50), TAINTED)
    bench.run_until(1.0)
    assert len(bench.posts()) == 50
    assert [effect.name for _, effect in bench.of(ReadNode)] == ["n1"]


def test_a_node_is_read_before_its_first_pod_is_due_so_that_none_is_late_for_that() -> None:
    bench = EvictionBench(TAINTED, *pods(3, lasting("foo", 30)), PodSeen(pod("q", lasting("foo", 33))))
    bench.run_until(100.0)
    assert [at for at, _ in bench.of(ReadNode)] == [READ_AT]
    assert [at for at, _ in bench.posts()] == [30.0, 30.0, 30.0, 33.0]


def test_a_taint_that_goes_after_the_reading_and_before_the_pod_is_due_evicts_nobody() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 30))))
    bench.run_until(READ_AT + 0.1)
    bench.taint()
    bench.run_until(100.0)
    assert bench.posts() == []


def test_no_node_is_read_for_a_pod_that_has_gone_before() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 30))))
    bench.tell(PodGone("p1-uid"))
    bench.run_until(100.0)
    assert bench.of(ReadNode) == []


def test_a_node_that_cannot_be_read_beforehand_is_read_when_its_pod_is_due() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo", 30))))
    bench.unreadable.add("n1")
    bench.run_until(READ_AT + 0.1)
    bench.unreadable.clear()
    bench.run_until(100.0)
    assert [at for at, _ in bench.of(ReadNode)] == [READ_AT, 30.0]
    assert bench.posts() == [(30.0, "p1")]


def test_a_later_wave_is_read_again() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), PodSeen(pod("p2", lasting("foo", LATER))))
    bench.run_until(100.0)
    assert [at for at, _ in bench.of(ReadNode)] == [0.0, LATER - AHEAD_SECONDS]
    assert bench.posts() == [(0.0, "p1"), (LATER, "p2")]


def test_every_probe_of_a_closed_budget_looks_at_the_node_first() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), api=always(HELD_BY_BUDGET))
    bench.see(budget())
    bench.run_until(10.0)
    bench.hidden["n1"] = node("n1")
    before = len(bench.posts())
    bench.run_until(600.0)
    assert len(bench.posts()) == before
    assert bench.count(State.BLOCKED) == 0


def test_a_node_that_cannot_be_read_is_tried_ever_more_seldom_and_evicts_nobody() -> None:
    bench = EvictionBench(*pods(3), PodSeen(pod("q", node="n2")))
    bench.unreadable.add("n1")
    bench.see(node("n1", FOO), node("n2", FOO))
    bench.run_until(300.0)
    assert bench.posts() == [(0.0, "q")]
    assert 10 <= len([each for _, each in bench.of(ReadNode) if each.name == "n1"]) <= 20
    bench.unreadable.clear()
    bench.run_until(340.0)
    assert sorted(name for _, name in bench.posts()) == ["p0", "p1", "p2", "q"]


def test_what_was_read_before_we_lost_touch_counts_no_longer() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), PodSeen(pod("p2", lasting("foo", 2))))
    bench.run_until(1.0)
    bench.hidden["n1"] = node("n1")
    bench.tell(Knowledge(False), Knowledge(True))
    bench.run_until(100.0)
    assert bench.posts() == [(0.0, "p1")]


def test_our_own_pod_waits_until_no_node_is_being_read() -> None:
    options = EvictionOptions(own=("default", "us"))
    bench = EvictionBench(options=options)
    bench.unreadable.add("n1")
    bench.see(pod("us", node="n2"), pod("p1"), node("n1", FOO), node("n2", FOO))
    bench.run_until(60.0)
    assert bench.posts() == []
    bench.unreadable.clear()
    bench.run_until(100.0)
    assert [name for _, name in bench.posts()] == ["p1", "us"]


def test_an_imagined_eviction_is_forgotten_once_nothing_asks_for_it() -> None:
    bench = EvictionBench(
        TAINTED, PodSeen(pod("p1")), lingers=None, options=EvictionOptions(confirm_seconds=float("inf"))
    )
    bench.run_until(10.0)
    assert bench.count(State.LEAVING) == 1
    bench.taint()
    assert bench.count(State.LEAVING) == 0
    bench.taint(FOO)
    bench.run_until(20.0)
    assert bench.times() == [0.0, 10.0]


# The class itself


def test_no_more_nodes_are_read_at_once_than_the_api_can_take() -> None:
    checks = LiveChecks(Random(0))
    for number in range(100):
        checks.wait(f"n{number}", f"p{number}")
    assert len(checks.requests(0.0)) == MOST_UNDER_WAY
    assert (checks.requests(0.0), checks.wake_at()) == ([], None)
    assert checks.read("n0", 0.0) == ["p0"]
    assert checks.requests(0.0) == [f"n{MOST_UNDER_WAY}"]


def test_a_reading_that_was_under_way_while_we_lost_touch_is_made_again() -> None:
    checks = LiveChecks(Random(0))
    checks.wait("n1", "p1")
    assert checks.requests(0.0) == ["n1"]
    checks.forget()
    assert checks.read("n1", 1.0) == []
    assert not checks.holds("n1", 1.0)
    assert checks.requests(1.0) == ["n1"]
    assert checks.read("n1", 2.0) == ["p1"]
    assert checks.holds("n1", 2.0)
    assert not checks.holds("n1", 2.0 + VALID_SECONDS)


def test_pauses_between_failed_readings_grow_and_begin_anew_after_a_good_one() -> None:
    checks = LiveChecks(Random(0))
    checks.wait("n1", "p1")
    now, pauses = 0.0, []
    for _ in range(3):
        assert checks.requests(now) == ["n1"]
        checks.failed("n1", now)
        at = checks.wake_at()
        assert at is not None
        pauses.append(at - now)
        now = at
    assert RETRY.base <= pauses[0] < pauses[1] < pauses[2]
    checks.requests(now)
    checks.read("n1", now)
    checks.wait("n1", "p2")
    assert checks.wake_at() == 0.0


def test_nodes_that_were_read_long_ago_cost_no_memory() -> None:
    checks = LiveChecks(Random(0))
    for number in range(1_000):
        checks.wait(f"n{number}", "p")
        checks.requests(float(number))
        checks.read(f"n{number}", float(number))
    assert len(checks._checks) <= VALID_SECONDS + 1


def test_nobody_waits_for_a_node_that_could_not_be_read_beforehand() -> None:
    checks = LiveChecks(Random(0))
    checks.expect("n1", 9.0)
    assert (checks.requests(8.5), checks.pending) == (["n1"], True)
    checks.failed("n1", 8.6)
    assert (checks.pending, checks.requests(100.0), checks.wake_at()) == (False, [], None)


def test_a_reading_that_holds_until_the_pod_is_due_is_not_repeated() -> None:
    checks = LiveChecks(Random(0))
    checks.expect("n1", 0.5)
    checks.requests(0.0)
    checks.read("n1", 0.0)
    checks.expect("n1", VALID_SECONDS - 0.1)
    assert checks.requests(1.0) == []
    checks.expect("n1", VALID_SECONDS)
    assert checks.requests(1.0) == ["n1"]
