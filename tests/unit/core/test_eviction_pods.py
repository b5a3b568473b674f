"""Which pods are evicted, and which never are."""

from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import Cancelled, Delete, Evict, NodeSeen, PodGone, PodSeen, Skipped, Stuck
from taintkeeper.core.objects import NO_SCHEDULE, Pod, Taint
from tests.unit.core.builders import ACCEPTED, FOO, FORBIDDEN, lasting, no_execute, node, not_ready, pod, reported
from tests.unit.core.eviction_bench import EvictionBench, always

TAINTED = NodeSeen(node("n1", FOO))


def skipped(bench: EvictionBench) -> list[tuple[str, str]]:
    return [(effect.pod.name, effect.reason) for _, effect in bench.of(Skipped)]


@pytest.mark.parametrize(
    ("facts", "reason", "state"),
    [
        reported("kubernetes/kubernetes#22625", "a mirror pod", {"mirror": True}, "mirror", State.SKIPPED),
        reported("kubernetes/kubernetes#43116", "a mirror pod without tolerations", {"mirror": True}, "mirror",
                 State.SKIPPED),
        reported("kubernetes/kubernetes#96363", "a pod that succeeded", {"phase": "Succeeded"}, "terminal",
                 State.SKIPPED),
        reported("kubernetes/kubernetes#95457", "a pod that failed", {"phase": "Failed"}, "terminal", State.SKIPPED),
        pytest.param({"deleting": True}, "terminating", State.LEAVING, id="a pod that terminates already"),
        pytest.param({"deleting": True, "phase": "Failed"}, "terminating", State.LEAVING, id="one that failed too"),
    ],
)  # fmt: skip
def test_a_pod_that_is_never_evicted_is_told_once_and_counted(facts: dict[str, Any], reason: str, state: State) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", **facts)))
    bench.see(pod("p1", labels={"changed": "yes"}, **facts))
    bench.run_until(1e5)
    assert bench.posts() == []
    assert skipped(bench) == [("p1", reason)]
    assert bench.count(state) == 1
    bench.taint()
    bench.tell(PodGone("p1-uid"))
    assert +bench.engine.queue.tracks.counts == {}
    assert bench.of(Cancelled) == []


@pytest.mark.parametrize("facts", [{"mirror": True}, {"phase": "Failed"}, {"deleting": True}])
def test_a_pod_that_tolerates_the_taint_is_not_told_as_skipped(facts: dict[str, Any]) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", lasting("foo"), **facts)))
    assert bench.log == []


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_has_not_ended_is_evicted(phase: str) -> None:
    assert EvictionBench(TAINTED, PodSeen(pod("p1", phase=phase))).times() == [0.0]


@pytest.mark.reported("kubernetes/kubernetes#53556")
def test_taints_of_another_effect_evict_nobody() -> None:
    taints = (Taint("x", NO_SCHEDULE, time_added=0.0), Taint("x", "PreferNoSchedule", time_added=0.0))
    bench = EvictionBench(NodeSeen(node("n1", *taints)), PodSeen(pod()))
    bench.run_until(1000.0)
    assert bench.log == []


DAEMON = (lasting("node.kubernetes.io/not-ready"), lasting("node.kubernetes.io/unreachable"))


@pytest.mark.parametrize(
    ("tolerations", "taint", "times"),
    [
        reported("kubernetes/kubernetes#41738", "what it tolerates for ever", DAEMON, not_ready(), []),
        reported("kubernetes/kubernetes#41738", "what it does not tolerate", DAEMON, no_execute("custom"), [0.0]),
        reported("kubernetes/kubernetes#92960", "what it tolerates for a time", (*DAEMON, lasting("foo", 60)), FOO,
                 [60.0]),
    ],
)  # fmt: skip
def test_a_daemonset_pod_is_judged_by_its_tolerations(tolerations: Any, taint: Taint, times: list[float]) -> None:
    bench = EvictionBench(NodeSeen(node("n1", taint)), PodSeen(pod("p1", *tolerations)))
    bench.run_until(1000.0)
    assert bench.times() == times


@pytest.mark.parametrize(
    ("change", "state"),
    [
        pytest.param({"phase": "Succeeded"}, State.SKIPPED, id="ends by itself"),
        pytest.param({"deleting": True}, State.LEAVING, id="is deleted by somebody else"),
    ],
)
@pytest.mark.parametrize("seconds", [None, 100], ids=["while its eviction is tried", "while it counts down"])
def test_a_pod_that_goes_by_itself_is_not_evicted_any_more(
    change: dict[str, Any], state: State, seconds: int | None
) -> None:
    tolerations = [] if seconds is None else [lasting("foo", seconds)]
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", *tolerations)), api=always(FORBIDDEN))
    bench.run_until(10.0)
    tries = len(bench.times())
    bench.see(pod("p1", *tolerations, **change))
    bench.run_until(1000.0)
    assert len(bench.times()) == tries
    assert bench.count(state) == 1
    assert len(skipped(bench)) == 1


@pytest.mark.parametrize(
    ("change", "state"), [({"phase": "Succeeded"}, State.SKIPPED), ({"deleting": True}, State.LEAVING)]
)
def test_what_happened_to_a_pod_during_the_call_is_caught_up_on(change: dict[str, Any], state: State) -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(None))
    ((_, evict),) = bench.of(Evict)
    bench.see(pod("p1", **change))
    assert bench.count(State.POSTED) == 1
    bench.answer(evict, FORBIDDEN)
    assert bench.count(state) == 1
    bench.run_until(1000.0)
    assert bench.times() == [0.0]


def test_a_deadline_that_moved_back_during_the_call_is_caught_up_on() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(None))
    ((_, evict),) = bench.of(Evict)
    bench.see(pod("p1", lasting("foo", 500)))
    bench.answer(evict, FORBIDDEN)
    assert bench.count(State.COUNTING) == 1
    bench.run_until(1000.0)
    assert bench.times() == [0.0, 500.0]


@pytest.mark.reported("kubernetes/kubernetes#55713")
def test_a_pod_stuck_terminating_on_a_dead_node_is_counted_and_left_alone() -> None:
    bench = EvictionBench(NodeSeen(node("n1", not_ready())), PodSeen(pod()), lingers=3600.0)
    for at in (60.0, 1800.0, 3599.0):
        bench.run_until(at)
        assert (bench.times(), bench.count(State.LEAVING)) == ([0.0], 1)
    bench.run_until(3601.0)
    assert bench.count(State.LEAVING) == 0


@pytest.mark.reported("NVIDIA/NVSentinel#1705")
def test_five_pods_with_a_long_grace_period_are_posted_five_times() -> None:
    bench = EvictionBench(TAINTED, *(PodSeen(pod(f"p{number}")) for number in range(5)), lingers=90.0)
    for at in range(0, 90, 10):
        bench.run_until(float(at))
        bench.see(*bench.pods.values(), *bench.nodes.values())
    bench.run_until(1000.0)
    assert len(bench.posts()) == 5


def test_the_own_pod_is_the_last_to_be_posted() -> None:
    pods = [pod("p1", priority=9), pod("own", priority=-9), pod("p2", critical=True)]
    options = EvictionOptions(concurrency=1, own=("default", "own"))
    bench = EvictionBench(TAINTED, *(PodSeen(each) for each in pods), options=options)
    assert [name for _, name in bench.posts()] == ["p1", "p2", "own"]


def accepted_but_alive(**changes: Any) -> tuple[EvictionBench, Pod]:
    """Return a bench whose only pod was accepted for eviction, yet is seen alive with these changes."""
    bench = EvictionBench(TAINTED, PodSeen(pod()), lingers=None)
    changed = replace(pod(), **changes)
    return bench, changed


def test_a_pod_that_is_seen_alive_after_its_eviction_is_tried_again_after_a_minute() -> None:
    bench, _ = accepted_but_alive()
    bench.run_until(150.0)
    assert bench.times() == [0.0, 60.0, 120.0]


def test_a_pod_that_ends_after_its_eviction_is_not_tried_again() -> None:
    bench, changed = accepted_but_alive(phase="Succeeded")
    bench.run_until(10.0)
    bench.see(changed)
    bench.run_until(1000.0)
    assert bench.times() == [0.0]


def test_a_pod_that_may_stay_longer_after_its_eviction_is_not_tried_again_before_that() -> None:
    bench, changed = accepted_but_alive(tolerations=(lasting("foo", 500),))
    bench.run_until(10.0)
    bench.see(changed)
    bench.run_until(501.0)
    assert bench.times() == [0.0, 500.0]


def test_a_taint_that_goes_and_comes_back_does_not_post_an_accepted_eviction_again() -> None:
    bench, _ = accepted_but_alive()
    for at, taints in ((1.0, ()), (2.0, (no_execute("foo", 2.0),))):
        bench.run_until(at)
        bench.taint(*taints)
    bench.run_until(59.0)
    assert bench.times() == [0.0]
    bench.run_until(60.0)
    assert bench.times() == [0.0, 60.0]


def test_an_accepted_eviction_is_not_posted_again_once_the_taint_is_gone() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod()), api=always(None), lingers=None)
    ((_, evict),) = bench.of(Evict)
    bench.taint()
    bench.answer(evict, ACCEPTED)
    bench.run_until(1000.0)
    assert bench.times() == [0.0]
    assert list(bench.engine.queue.tracks) == []


def test_a_pod_that_is_gone_is_not_evicted_when_its_node_is_tainted_later() -> None:
    bench = EvictionBench(NodeSeen(node("n1")), PodSeen(pod()), PodSeen(pod("p2")))
    bench.tell(PodGone("p1-uid"))
    bench.taint(FOO)
    assert [name for _, name in bench.posts()] == ["p2"]


def test_pods_of_the_same_name_in_two_namespaces_are_two_pods() -> None:
    first, second = pod(uid="first"), pod(namespace="elsewhere", uid="second")
    bench = EvictionBench(NodeSeen(node("n1")), PodSeen(first), PodSeen(second))
    bench.taint(FOO)
    assert {effect.pod.uid for _, effect in bench.of(Evict)} == {"first", "second"}


@pytest.mark.reported("kubernetes/kubernetes#55713")
def test_a_pod_that_does_not_go_away_is_told_of_once_and_left_alone() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1", grace=30)), lingers=None)
    going = replace(pod("p1", grace=30), deleting=True, delete_by=30.0)
    bench.see(going)
    bench.run_until(329.0)
    assert bench.of(Stuck) == []
    bench.run_until(1000.0)
    bench.see(replace(going, labels={"changed": "yes"}))
    bench.run_until(7200.0)
    assert bench.of(Stuck) == [(330.0, Stuck(pod("p1").ref, "n1", 300.0))]
    assert (bench.times(), bench.of(Delete), bench.count(State.LEAVING)) == ([0.0], [], 1)
    assert bench.engine.queue.oldest_terminating(7200.0) == 7170.0


def test_how_long_a_pod_is_stuck_is_known_after_a_restart_too() -> None:
    bench = EvictionBench(TAINTED, PodSeen(replace(pod("p1"), deleting=True, delete_by=30.0)))
    bench.run_until(500.0)
    bench.restart()
    bench.run_until(501.0)
    assert [effect.seconds for _, effect in bench.of(Stuck)] == [300.0, 470.0]


def test_a_pod_that_is_gone_in_time_is_not_stuck() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), lingers=200.0)
    bench.run_until(1000.0)
    assert bench.of(Stuck) == []
    assert bench.engine.queue.oldest_terminating(1000.0) == 0.0


@pytest.mark.reported("kubernetes-sigs/cluster-api#1870")
def test_nothing_waits_for_a_pod_that_terminates_for_an_hour() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), lingers=None)
    bench.see(replace(pod("p1"), deleting=True, delete_by=30.0))
    bench.run_until(3600.0)
    bench.see(pod("p2"), pod("p3"))
    assert (bench.times("p2"), bench.times("p3")) == ([3600.0], [3600.0])


@pytest.mark.reported("kubernetes/kubernetes#55934")
def test_pods_of_a_node_that_is_out_of_service_are_left_to_the_garbage_collector() -> None:
    bench = EvictionBench(TAINTED, PodSeen(pod("p1")), lingers=None)
    bench.see(replace(pod("p1"), deleting=True, delete_by=30.0))
    bench.run_until(600.0)
    bench.taint(FOO, no_execute("node.kubernetes.io/out-of-service", 600.0, "nodeshutdown"))
    bench.run_until(700.0)
    bench.tell(PodGone(pod("p1").ref.uid))
    bench.run_until(3600.0)
    assert (bench.times(), bench.of(Delete)) == ([0.0], [])
    assert list(bench.engine.queue.tracks) == []
