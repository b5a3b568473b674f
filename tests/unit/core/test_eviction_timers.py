"""When the eviction of a pod is posted: the cases of upstream's taint eviction controller, in our own form."""

from typing import Any

import pytest

from taintkeeper.core.answers import Answer
from taintkeeper.core.messages import Cancelled, Evict, Evicted, NodeGone, PodGone
from taintkeeper.core.objects import Node, Pod
from tests.unit.core.builders import BAR, FOO, case, lasting, no_execute, node, pod
from tests.unit.core.eviction_bench import EvictionBench

Step = tuple[float, Any]
"""A time, and what is seen then: an object as it is, or an event."""

CLEAN = node("n1")
TAINTED = node("n1", FOO)
BOTH = node("n1", FOO, BAR)
P1 = pod("p1")
ELSEWHERE = pod("p1", node="")


def play(*steps: Step, end: float = 1000.0) -> EvictionBench:
    bench = EvictionBench()
    for at, seen in steps:
        bench.run_until(at)
        if isinstance(seen, Node | Pod):
            bench.see(seen)
        else:
            bench.tell(seen)
    bench.run_until(end)
    return bench


@pytest.mark.parametrize(
    ("steps", "posts"),
    [
        case("TestCreatePod: not scheduled - ignore", [(0, TAINTED), (0, ELSEWHERE)], []),
        case("TestCreatePod: scheduled on untainted Node", [(0, CLEAN), (0, P1)], []),
        case("TestCreatePod: schedule on tainted Node", [(0, TAINTED), (5, pod("p1", bound=5.0))], [5]),
        case(
            "TestCreatePod: schedule on tainted Node with finite toleration",
            [(0, TAINTED), (0, pod("p1", lasting("foo", 100)))],
            [100],
        ),
        case(
            "TestCreatePod: schedule on tainted Node with infinite toleration",
            [(0, TAINTED), (0, pod("p1", lasting("foo")))],
            [],
        ),
        case(
            "TestCreatePod: schedule on tainted Node with infinite invalid toleration",
            [(0, TAINTED), (0, pod("p1", lasting("bar")))],
            [0],
        ),
        case(
            "TestDeletePod",
            [(0, TAINTED), (0, pod("p1", lasting("foo", 100))), (10, PodGone("p1-uid")), (20, PodGone("p1-uid"))],
            [],
        ),
        case("TestUpdatePod: scheduling onto tainted Node", [(0, TAINTED), (0, ELSEWHERE), (7, P1)], [7]),
        case(
            "TestUpdatePod: scheduling onto tainted Node with toleration",
            [(0, TAINTED), (0, ELSEWHERE), (7, pod("p1", lasting("foo", 100)))],
            [100],
        ),
        case(
            "TestUpdatePod: removing toleration",
            [(0, TAINTED), (0, pod("p1", lasting("foo", 100))), (10, P1)],
            [10],
        ),
        case(
            "TestUpdatePod: lengthening toleration shouldn't work (it does here: the deadline moves back)",
            [(0, TAINTED), (0, pod("p1", lasting("foo", 1))), (0.5, pod("p1", lasting("foo", 100)))],
            [100],
        ),
        case("TestCreateNode: Creating Node matching already assigned Pod", [(0, P1), (3, CLEAN)], []),
        case("TestCreateNode: Creating tainted Node matching already assigned Pod", [(0, P1), (3, TAINTED)], [3]),
        case(
            "TestCreateNode: Creating tainted Node matching already assigned tolerating Pod",
            [(0, pod("p1", lasting("foo"))), (3, TAINTED)],
            [],
        ),
        case(
            "TestDeleteNode",
            [(0, TAINTED), (0, pod("p1", lasting("foo", 100))), (10, NodeGone("n1")), (20, NodeGone("n1"))],
            [],
        ),
        case("TestUpdateNode: Added taint, expect node patched and deleted", [(0, CLEAN), (0, P1), (9, TAINTED)], [9]),
        case(
            "TestUpdateNode: Added tolerated taint",
            [(0, CLEAN), (0, pod("p1", lasting("foo", 100))), (9, TAINTED)],
            [100],
        ),
        case(
            "TestUpdateNode: Only one added taint tolerated",
            [(0, CLEAN), (0, pod("p1", lasting("foo", 100))), (9, BOTH)],
            [9],
        ),
        case(
            "TestUpdateNode: Taint removed",
            [(0, TAINTED), (0, pod("p1", lasting("foo", 1))), (0.9, CLEAN)],
            [],
        ),
        case(
            "TestUpdateNode: Pod with multiple tolerations are evicted when first one runs out",
            [(0, CLEAN), (0, pod("p1", lasting("foo", 1), lasting("bar", 100))), (0.5, BOTH)],
            [1],
        ),
        case(
            "TestUpdateNodeWithMultipleTaints: tolerated for a time, then removed",
            [
                (0, TAINTED),
                (0, pod("p1", lasting("foo"), lasting("bar", 60))),
                (10, BOTH),
                (50, TAINTED),
            ],
            [],
        ),
        case(
            "TestUpdateNodeWithMultipleTaints: tolerated for a time, not removed",
            [(0, TAINTED), (0, pod("p1", lasting("foo"), lasting("bar", 60))), (10, BOTH)],
            [60],
        ),
    ],
)  # fmt: skip
def test_a_pod_is_evicted_when_its_time_is_over_and_not_before(steps: list[Step], posts: list[float]) -> None:
    assert play(*steps).times() == posts


@pytest.mark.parametrize(
    ("taints", "posts"),
    [
        case(
            "TestUpdateNodeWithMultiplePods: Pods with different toleration times are evicted appropriately",
            [FOO],
            [(0, "none"), (1, "short")],
        ),
        case(
            "TestUpdateNodeWithMultiplePods: Evict all pods not matching all taints instantly",
            [FOO, BAR],
            [(0, "none"), (0, "short"), (0, "ever")],
        ),
    ],
)
def test_each_pod_of_a_node_has_its_own_time(taints: list[Any], posts: list[tuple[float, str]]) -> None:
    pods = [pod("none"), pod("short", lasting("foo", 1)), pod("ever", lasting("foo"))]
    bench = play((0, CLEAN), *((0, each) for each in pods), (0, node("n1", *taints)))
    assert sorted(bench.posts()) == sorted(posts)


P2 = pod("p2")
P2_TOLERATING = pod("p2", lasting("foo", 100))


@pytest.mark.parametrize(
    ("steps", "posts"),
    [
        case(
            "TestEventualConsistency: existing pod2 scheduled onto tainted Node",
            [(0, pod("p2", node="")), (0, P1), (0, CLEAN), (1, TAINTED), (2, P2)],
            [(1, "p1"), (2, "p2")],
        ),
        case(
            "TestEventualConsistency: existing pod2 with taint toleration scheduled onto tainted Node",
            [(0, pod("p2", node="")), (0, P1), (0, CLEAN), (1, TAINTED), (2, P2_TOLERATING)],
            [(1, "p1"), (100, "p2")],
        ),
        case(
            "TestEventualConsistency: new pod2 created on tainted Node",
            [(0, P1), (0, CLEAN), (1, TAINTED), (2, P2)],
            [(1, "p1"), (2, "p2")],
        ),
        case(
            "TestEventualConsistency: new pod2 with tait toleration created on tainted Node",
            [(0, P1), (0, CLEAN), (1, TAINTED), (2, P2_TOLERATING)],
            [(1, "p1"), (100, "p2")],
        ),
    ],
)
def test_a_pod_that_appears_after_its_node_is_judged_on_arrival(
    steps: list[Step], posts: list[tuple[float, str]]
) -> None:
    assert play(*steps).posts() == posts


@pytest.mark.upstream("TestPodDeletionEvent")
def test_an_eviction_is_told_once_with_pod_taint_and_lateness() -> None:
    bench = play((0, TAINTED), (0, pod("p1", lasting("foo", 10))))
    ((at, evicted),) = bench.of(Evicted)
    assert (at, str(evicted.pod), evicted.node, evicted.lateness, evicted.status) == (10, "default/p1", "n1", 0.0, 201)
    assert evicted.deadline.taint == FOO
    assert bench.of(Cancelled) == []


@pytest.mark.upstream("TestPodDeletionEvent")
def test_a_cancelled_countdown_is_told_once_with_pod_and_taint() -> None:
    bench = play((0, TAINTED), (0, pod("p1", lasting("foo", 10))), (5, CLEAN), (6, CLEAN), (7, P1))
    ((at, cancelled),) = bench.of(Cancelled)
    assert (at, str(cancelled.pod), cancelled.deadline.taint) == (5, "default/p1", FOO)


FIVE = [f"p{number}" for number in range(1, 6)]


@pytest.mark.upstream("TestExecute")
def test_five_pods_that_are_due_are_evicted_at_once() -> None:
    bench = play((0, TAINTED), *((0, pod(name)) for name in FIVE))
    assert sorted(bench.posts()) == [(0, name) for name in FIVE]


@pytest.mark.upstream("TestExecuteDelayed")
def test_five_countdowns_that_are_seen_twice_end_once() -> None:
    pods = [pod(name, lasting("foo", 10)) for name in FIVE]
    bench = play((0, TAINTED), *((at, each) for at in (0, 1) for each in pods))
    assert sorted(bench.posts()) == [(10, name) for name in FIVE]


@pytest.mark.upstream("TestCancel")
def test_of_five_countdowns_two_are_cancelled_and_three_end() -> None:
    pods = [pod(name, lasting("foo", 10)) for name in FIVE]
    saved = [pod(name, lasting("foo")) for name in ("p2", "p4")]
    bench = play((0, TAINTED), *((0, each) for each in pods), *((5, each) for each in saved))
    assert sorted(bench.posts()) == [(10, "p1"), (10, "p3"), (10, "p5")]
    assert [effect.pod.name for _, effect in bench.of(Cancelled)] == ["p2", "p4"]


@pytest.mark.upstream("TestCancelAndRead")
def test_a_countdown_that_was_cancelled_can_begin_again() -> None:
    again = node("n1", no_execute("foo", 6.0))
    bench = play((0, TAINTED), (0, pod("p1", lasting("foo", 10))), (5, CLEAN), (6, again))
    assert bench.times() == [16]


@pytest.mark.parametrize(
    ("seconds", "posted"),
    [
        case("TestRunningWorkerCompletionDoesNotRemoveReplacement: immediate worker", None, 0.0),
        case("TestRunningWorkerCompletionDoesNotRemoveReplacement: scheduled worker already firing", 10, 10.0),
    ],
)
@pytest.mark.parametrize("answer", [Answer(201), Answer(404), Answer(500, "InternalError")], ids=["201", "404", "500"])
def test_an_answer_that_comes_late_leaves_the_countdown_of_the_replacement_alone(
    seconds: int | None, posted: float, answer: Answer
) -> None:
    bench = EvictionBench(api=lambda _effect, now: None if now == posted else Answer(201))
    bench.see(TAINTED, pod("p1", *([] if seconds is None else [lasting("foo", seconds)])))
    bench.run_until(posted)
    ((_, evict),) = bench.of(Evict)
    bench.tell(PodGone("p1-uid"))
    bench.see(pod("p1", lasting("foo", 60), uid="second", bound=posted))
    bench.answer(evict, answer)
    bench.run_until(1000.0)
    assert bench.times() == [posted, posted + 60]
    assert bench.of(Evict)[1][1].pod.uid == "second"
