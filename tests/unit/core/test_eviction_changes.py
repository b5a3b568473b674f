"""What changes of taints, tolerations, clocks and processes do to a countdown."""

import pytest

from taintkeeper.core.eviction_states import State
from taintkeeper.core.first_seen import remembered_as
from taintkeeper.core.messages import Cancelled, Evict, Knowledge, NodeSeen, PodGone, PodSeen, Remember
from taintkeeper.core.objects import Taint
from tests.unit.core.builders import (
    BAR,
    FOO,
    FORBIDDEN,
    case,
    lasting,
    no_execute,
    node,
    not_ready,
    pod,
    reported,
    unreachable,
)
from tests.unit.core.eviction_bench import EvictionBench, always

BARE = no_execute("foo", None)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        reported("kubernetes/kubernetes#102993", "a longer toleration moves the deadline back", 30, 120, [120]),
        pytest.param(120, 30, [30], id="a shorter toleration brings it forward"),
        pytest.param(120, 5, [10], id="one that has run out already means now"),
        pytest.param(30, None, [], id="tolerating for ever ends the countdown"),
        pytest.param(None, 30, [30], id="tolerating no longer for ever begins it at the taint's time"),
    ],
)
def test_a_change_of_the_toleration_moves_the_deadline(
    before: int | None, after: int | None, expected: list[float]
) -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)), PodSeen(pod("p1", lasting("foo", before))))
    bench.run_until(10.0)
    bench.see(pod("p1", lasting("foo", after)))
    bench.run_until(1000.0)
    assert bench.times() == expected


@pytest.mark.reported("kubernetes/kubernetes#90794")
def test_a_countdown_is_cancelled_once_when_what_is_left_is_tolerated_for_ever() -> None:
    dedicated = no_execute("dedicated")
    tolerating = pod("p1", lasting("dedicated"), lasting("node.kubernetes.io/not-ready", 300))
    bench = EvictionBench(NodeSeen(node("n1", dedicated)), PodSeen(tolerating))
    bench.taint(dedicated, not_ready())
    bench.run_until(100.0)
    bench.taint(dedicated)
    bench.run_until(1000.0)
    assert bench.posts() == []
    assert [at for at, _ in bench.of(Cancelled)] == [100.0]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        case("NoExecuteTaintManager Multiple Pods evicts pods with minTolerationSeconds: 5 and 25", (25, 5), 5.0),
        case("TestUpdateNode: the shorter one ends first", (1, 100), 1.0),
    ],
)
def test_of_several_taints_the_toleration_that_runs_out_first_evicts(
    tolerations: tuple[int, int], expected: float
) -> None:
    first, second = tolerations
    bench = EvictionBench(NodeSeen(node("n1", FOO, BAR)))
    bench.see(pod("p1", lasting("foo", first), lasting("bar", second)))
    bench.run_until(1000.0)
    assert bench.times() == [expected]


@pytest.mark.reported("kubernetes/kubernetes#108268")
def test_a_process_that_starts_late_goes_on_with_the_countdown() -> None:
    tolerating = pod("p1", lasting("node.kubernetes.io/not-ready", 300), bound=-1000.0)
    bench = EvictionBench(NodeSeen(node("n1", not_ready(-200.0))), PodSeen(tolerating))
    bench.run_until(1000.0)
    assert bench.times() == [100.0]


@pytest.mark.parametrize(
    "taint",
    [
        reported("kubernetes/kubernetes#42394", "without a time", BARE),
        reported("kubernetes/kubernetes#141453", "with a time in the future", no_execute("foo", 3600.0)),
        reported("kubernetes/kubernetes#141453", "with a time long before its node", no_execute("foo", -1e9)),
    ],
)
@pytest.mark.parametrize("restarts", [[], [30.0], [1.0, 30.0, 59.0]], ids=["no restart", "a restart", "three restarts"])
def test_a_taint_whose_time_cannot_be_believed_counts_from_when_it_was_first_seen(
    taint: Taint, restarts: list[float]
) -> None:
    bench = EvictionBench(NodeSeen(node("n1", taint)), PodSeen(pod("p1", lasting("foo", 60), bound=-1000.0)))
    for at in restarts:
        bench.run_until(at)
        bench.restart()
    bench.run_until(1000.0)
    assert bench.times() == [60.0]
    assert [(at, effect.memory) for at, effect in bench.of(Remember)] == [(0.0, {remembered_as(taint): 0.0})]


def test_what_is_remembered_of_a_swap_is_not_taken_for_a_later_taint_of_the_same_key() -> None:
    tolerating = pod("p1", lasting("node.kubernetes.io/unreachable", 300), bound=-5000.0)
    # Swapped long ago; while nobody looked, the node recovered and failed once more.
    memory = {remembered_as(unreachable(-500.0)): -1000.0}
    bench = EvictionBench(NodeSeen(node("n1", unreachable(0.0), first_seen=memory)), PodSeen(tolerating))
    bench.run_until(1000.0)
    assert bench.times() == [300.0]


@pytest.mark.reported("kubernetes/kubernetes#98482")
def test_a_taint_without_a_time_does_not_evict_at_once() -> None:
    bench = EvictionBench(NodeSeen(node("n1")), PodSeen(pod("p1", lasting("foo", 60))))
    bench.run_until(500.0)
    bench.taint(BARE)
    bench.run_until(559.9)
    assert bench.posts() == []
    bench.run_until(560.0)
    assert bench.times() == [560.0]


@pytest.mark.reported("NVIDIA/NVSentinel#1451")
def test_a_cancelled_countdown_does_not_cancel_the_next_one() -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)), PodSeen(pod("p1", lasting("foo", 60))))
    for at, taints in ((0.3, ()), (0.6, (no_execute("foo", 0.6),))):
        bench.run_until(at)
        bench.taint(*taints)
    bench.run_until(1000.0)
    assert bench.times() == [60.6]
    assert len(bench.of(Cancelled)) == 1


@pytest.mark.reported("kubernetes/kubernetes#110401")
@pytest.mark.parametrize("gone_first", [True, False])
def test_a_pod_that_is_recreated_under_its_name_is_evicted_too(*, gone_first: bool) -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)), PodSeen(pod("p1", uid="first")), lingers=None)
    batch = [PodGone("first"), PodSeen(pod("p1", uid="second", bound=1.0))]
    bench.run_until(1.0)
    bench.tell(*(batch if gone_first else reversed(batch)))
    bench.run_until(30.0)
    assert [(at, effect.pod.uid) for at, effect in bench.of(Evict)] == [(0.0, "first"), (1.0, "second")]


@pytest.mark.reported("kubernetes/kubernetes#26511")
def test_nothing_is_evicted_before_nodes_and_pods_are_listed() -> None:
    bench = EvictionBench(PodSeen(pod()), fresh=False)
    bench.run_until(30.0)
    bench.see(node("n1", FOO))
    bench.run_until(60.0)
    assert bench.log == []
    bench.tell(Knowledge(True))
    assert bench.times() == [60.0]


def test_with_stale_knowledge_nothing_is_evicted_but_countdowns_are_cancelled() -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)))
    bench.see(pod("p1", lasting("foo", 10)), pod("p2", lasting("foo", 20)))
    bench.tell(Knowledge(False))
    bench.run_until(100.0)
    bench.see(pod("p2", lasting("foo")))
    assert bench.posts() == []
    assert [(at, effect.pod.name) for at, effect in bench.of(Cancelled)] == [(100.0, "p2")]
    bench.tell(Knowledge(True))
    assert bench.posts() == [(100.0, "p1")]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("age", [None, 50.0])
def test_swapping_not_ready_and_unreachable_goes_on_with_the_countdown(age: float | None, *, restart: bool) -> None:
    tolerations = [lasting(taint.key, 300) for taint in (not_ready(), unreachable())]
    bench = EvictionBench(NodeSeen(node("n1", not_ready(None))), PodSeen(pod("p1", *tolerations)))
    for at, taint in ((50.0, unreachable(age)), (100.0, not_ready(None if age is None else 100.0))):
        bench.run_until(at)
        bench.taint(taint)
    if restart:
        bench.restart()
    bench.run_until(1000.0)
    assert bench.times() == [300.0]
    assert bench.of(Cancelled) == []


def test_a_restart_computes_the_same_deadlines() -> None:
    taints = [FOO, no_execute("bar", None), no_execute("baz", 1e6), unreachable(5.0)]
    bench = EvictionBench(NodeSeen(node("n1", not_ready(2.0))), api=always(None))
    for number, taint in enumerate(taints):
        bench.run_until(float(number))
        bench.see(pod(f"p{number}", lasting(taint.key, 500), lasting("", 10_000), bound=float(number)))
    bench.run_until(10.0)
    bench.taint(*taints)
    bench.run_until(200.0)
    before = {track.pod.ref: track.deadline for track in list(bench.engine.queue.tracks)}
    bench.restart()
    assert {track.pod.ref: track.deadline for track in list(bench.engine.queue.tracks)} == before
    assert {ref.name: found.due for ref, found in before.items()} == {"p0": 500, "p1": 510, "p2": 510, "p3": 503}


@pytest.mark.reported("kubernetes/kubernetes#45342")
def test_a_pod_that_counts_down_shows_its_deadline_and_is_counted() -> None:
    bench = EvictionBench(NodeSeen(node("n1", not_ready())), PodSeen(pod("p1", lasting(not_ready().key, 300))))
    assert {state: number for state, number in bench.engine.queue.tracks.counts.items() if number} == {
        State.COUNTING: 1
    }
    (track,) = list(bench.engine.queue.tracks)
    assert track.deadline.due == 300.0
    bench.run_until(300.0)
    assert +bench.engine.queue.tracks.counts == {}


def test_an_answer_to_a_pod_that_may_stay_after_all_ends_its_way() -> None:
    bench = EvictionBench(NodeSeen(node("n1", FOO)), PodSeen(pod()), api=always(None))
    ((_, evict),) = bench.of(Evict)
    bench.taint()
    assert bench.of(Cancelled) == []
    bench.answer(evict, FORBIDDEN)
    assert [effect.pod.name for _, effect in bench.of(Cancelled)] == ["p1"]
    bench.run_until(1000.0)
    assert (bench.times(), list(bench.engine.queue.tracks)) == ([0.0], [])
