"""Pods of a node that is not ready are marked as not ready: which, when, how many at once, and never after recovery."""

from dataclasses import replace

import pytest

from taintkeeper.core import health_messages as h
from taintkeeper.core.disruption import Marking
from taintkeeper.core.health import Patience
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.messages import Knowledge, NodeSeen, PodGone, PodSeen
from taintkeeper.core.objects import Pod
from taintkeeper.core.pod_readiness import AT_ONCE
from tests.unit.core.builders import case, node, pod
from tests.unit.core.health_bench import HealthBench, constantly, first

CALM = HealthOptions(Patience(grace=1e9, startup=1e9))
"""With these, no node is declared Unknown for its silence."""


def cluster(*pods: Pod, status: str = "True", options: HealthOptions = CALM) -> HealthBench:
    """Return a bench with the nodes n1 and n2, of which n1 reports this status."""
    nodes = node("n1", conditions={"Ready": status}), node("n2", conditions={"Ready": "True"})
    return HealthBench(*nodes, pods=pods, options=options)


@pytest.mark.parametrize(
    ("conditions", "marked"),
    [
        case(
            "TestProcessPodMarkPodNotReady: Do not mark pod as NotReady when the scheduled node's healthy is not"
            " gathered yet",
            {"DiskPressure": "True"}, [],
        ),
        case(
            "TestProcessPodMarkPodNotReady: Do not mark pod as NotReady when the scheduled node is ready",
            {"Ready": "True"}, [],
        ),
        case(
            "TestProcessPodMarkPodNotReady: Pod marked as NotReady when the scheduled node is not ready",
            {"Ready": "False"}, ["p1-uid"],
        ),
        case(
            "TestProcessPodMarkPodNotReady: Pod marked as NotReady when the scheduled node is not ready (Unknown)",
            {"Ready": "Unknown"}, ["p1-uid"],
        ),
    ],
)  # fmt: skip
def test_pods_are_marked_where_the_node_is_not_ready(conditions: dict[str, str], marked: list[str]) -> None:
    bench = HealthBench(node("n1", conditions=conditions), pods=(pod("p1"),), options=CALM)
    bench.run_until(100.0)
    assert bench.marked() == marked


@pytest.mark.parametrize(
    ("begun", "marked"),
    [
        case("TestMonitorNodeHealthMarkPodsNotReady: new node", 0.0, []),
        case("TestMonitorNodeHealthMarkPodsNotReady: fresh status", 49.0, []),
        case("TestMonitorNodeHealthMarkPodsNotReady: stale status", 50.0, ["p1-uid"]),
    ],
)
def test_pods_are_marked_when_their_node_has_been_silent_for_too_long(begun: float, marked: list[str]) -> None:
    bench = cluster(pod("p1"), pod("p2", node="n2"), options=HealthOptions())
    bench.run_until(begun, renewing=("n2",))
    assert bench.marked() == marked


@pytest.mark.parametrize(
    "facts",
    [{"mirror": True}, {"deleting": True}, {"phase": "Pending"}, {"phase": "Failed"}, {"critical": True}],
    ids=str,
)
def test_every_pod_that_is_ready_is_marked_whatever_its_kind(facts: dict[str, object]) -> None:
    bench = cluster(pod("p1", **facts), status="Unknown")
    assert bench.marked() == ["p1-uid"]


def test_pods_that_are_not_ready_or_elsewhere_or_nowhere_are_left_alone() -> None:
    bench = cluster(
        pod("p1", ready=False), pod("p2", node="n2"), pod("p3", node=""), pod("p4", node="gone"), status="Unknown"
    )
    bench.run_until(100.0)
    assert bench.of(h.MarkPod) == []


def test_what_is_marked_carries_the_pod_as_it_was_seen_and_the_time() -> None:
    bench = cluster(pod("p1", version=7))
    bench.run_until(12.0)
    bench.condition("n1", "Ready", "Unknown")
    ((at, mark),) = bench.of(h.MarkPod)
    assert (at, mark.at, mark.pod.version) == (12.0, 12.0, 7)


@pytest.mark.reported("kubernetes/kubernetes#77733")
@pytest.mark.parametrize(
    "latency",
    [
        case("TestMonitorNodeHealthMarkPodsNotReadyWithWorkerSize: default workers", 0.01),
        case("TestMonitorNodeHealthMarkPodsNotReadyWithWorkerSize: one worker", 0.0),
    ],
)
def test_50_nodes_with_100_pods_each_take_exactly_5000_writes_and_few_at_once(latency: float) -> None:
    nodes = [node(f"n{number}", conditions={"Ready": "True"}) for number in range(50)]
    pods = [pod(f"p{number}", node=f"n{number % 50}") for number in range(5000)]
    bench = HealthBench(*nodes, pods=tuple(pods))
    bench.latency = latency
    bench.run_until(300.0)
    assert len(bench.of(h.MarkPod)) == 5000
    assert set(bench.marked()) == set(bench.pods)
    assert bench.most_under_way[h.MarkPod] == AT_ONCE


def test_a_server_that_asks_to_slow_down_is_obeyed() -> None:
    bench = cluster(*(pod(f"p{number}") for number in range(1000)))
    bench.latency = 0.125
    bench.marks = first(*[h.PodResult.THROTTLED] * AT_ONCE, then=h.PodResult.DONE)
    bench.run_until(0.25)
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(5.374)
    assert len(bench.of(h.MarkPod)) == AT_ONCE
    bench.run_until(5.375)
    assert AT_ONCE < len(bench.of(h.MarkPod)) < 2 * AT_ONCE
    bench.most_under_way.clear()
    bench.run_until(60.0)
    assert len(bench.marked()) == 1000
    assert bench.most_under_way[h.MarkPod] == AT_ONCE


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        case("TestMonitorNodeHealthMarkPodsNotReadyRetry: successful pod status update, no retry required", (), 1),
        case(
            "TestMonitorNodeHealthMarkPodsNotReadyRetry: unsuccessful pod status update, retry required",
            (h.PodResult.FAILED,), 2,
        ),
    ],
)  # fmt: skip
def test_a_write_that_fails_is_tried_again(results: tuple[h.PodResult, ...], expected: int) -> None:
    bench = cluster(pod("p1"))
    bench.marks = first(*results, then=h.PodResult.DONE)
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(60.0)
    assert (len(bench.of(h.MarkPod)), bench.marked()) == (expected, ["p1-uid"])


@pytest.mark.upstream("TestMonitorNodeHealthMarkPodsNotReadyRetry: unsuccessful pod list, retry required")
def test_pods_that_cannot_be_listed_at_first_are_marked_when_they_can() -> None:
    bench = HealthBench(node("n1", conditions={"Ready": "Unknown"}), pods=(), options=CALM, fresh=False)
    bench.run_until(600.0)
    bench.tell(PodSeen(pod("p1")))
    assert bench.of(h.MarkPod) == []
    bench.pods["p1-uid"] = pod("p1")
    bench.tell(Knowledge(True))
    assert bench.marked() == ["p1-uid"]


def test_nothing_is_marked_while_what_we_know_may_be_stale() -> None:
    bench = cluster(pod("p1"))
    bench.tell(Knowledge(False))
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(100.0)
    assert bench.of(h.MarkPod) == []
    bench.tell(Knowledge(True))
    assert bench.marked() == ["p1-uid"]


@pytest.mark.parametrize("result", [h.PodResult.FAILED, h.PodResult.CONFLICT, h.PodResult.GONE])
def test_an_hour_of_failures_costs_little(result: h.PodResult) -> None:
    bench = cluster(pod("p1"), status="Unknown")
    bench.marks = constantly(result)
    bench.change("n1", conditions=node("n1", conditions={"Ready": "True"}).conditions)
    bench.add_pods(pod("p1"))
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(3600.0)
    assert 90 <= len(bench.of(h.MarkPod)) <= 130


def test_a_pod_that_changed_meanwhile_is_looked_at_again() -> None:
    bench = cluster(pod("p1"))
    bench.latency = 1.0
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(0.5)
    bench.add_pods(pod("p1", labels={"changed": "yes"}))
    bench.run_until(10.0)
    assert [mark.pod.version for _, mark in bench.of(h.MarkPod)] == [0, 1]
    assert bench.marked() == ["p1-uid"]


def test_a_pod_that_changes_while_it_waits_for_its_turn_loses_no_time() -> None:
    bench = cluster(*(pod(f"p{number:03}") for number in range(AT_ONCE + 1)))
    bench.latency = 1.0
    bench.condition("n1", "Ready", "Unknown")
    bench.add_pods(pod(f"p{AT_ONCE:03}", labels={"changed": "yes"}))
    bench.run_until(2.5)
    assert len(bench.marked()) == AT_ONCE + 1


def test_a_pod_that_was_marked_is_known_to_be_before_the_watch_shows_it() -> None:
    bench = cluster(pod("p1"))
    bench.watching = False
    bench.tell(NodeSeen(node("n1", resource_version="2", conditions={"Ready": "Unknown"})))
    bench.run_until(60.0)
    assert len(bench.of(h.MarkPod)) == 1


def test_what_the_watch_shows_before_the_answer_comes_is_newer_than_the_answer() -> None:
    bench = cluster(pod("p1"))
    bench.latency = 1.0
    bench.condition("n1", "Ready", "Unknown")
    bench.tell(PodSeen(pod("p1", version=5)))
    bench.run_until(1.5)
    assert [mark.pod.version for _, mark in bench.of(h.MarkPod)] == [0, 5]


def test_pods_and_zones_that_are_gone_leave_nothing_behind() -> None:
    bench = cluster(pod("p1"), pod("p2"), options=HealthOptions(CALM.patience, Marking.UNLESS_ZONE))
    bench.marks = constantly(h.PodResult.FAILED)
    bench.condition("n1", "Ready", "Unknown")
    bench.add_pods(pod("p3", node=""))
    bench.add_pods(pod("p3"))
    bench.run_until(30.0)
    bench.tell(*(PodGone(uid) for uid in bench.pods))
    for name in ("n1", "n2"):
        bench.delete(name)
    pods = bench.engine.pods
    assert not any((pods._pods, pods._pods_of, pods._delays, pods._ready, pods._down))
    assert not any((pods._disruption._nodes, pods._disruption._members, pods._disruption._counts))


def test_an_earlier_state_of_a_pod_that_comes_late_is_ignored() -> None:
    bench = cluster(pod("p1", version=5, ready=False), status="Unknown")
    bench.tell(PodSeen(pod("p1", version=4)))
    bench.run_until(100.0)
    assert bench.of(h.MarkPod) == []


def test_after_a_restart_the_rest_is_done_and_nothing_twice() -> None:
    bench = cluster(*(pod(f"p{number}") for number in range(100)))
    bench.latency = 1.0
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(2.5)
    done = bench.marked()
    assert len(done) == 2 * AT_ONCE
    bench.start()
    bench.run_until(60.0)
    assert sorted(bench.marked()) == sorted(bench.pods)


def test_pods_that_appear_later_are_included() -> None:
    bench = cluster(status="Unknown")
    bench.run_until(100.0)
    bench.add_pods(pod("p1"))
    assert bench.marked() == ["p1-uid"]


def test_a_pod_that_goes_while_it_waits_is_forgotten() -> None:
    bench = cluster(*(pod(f"p{number:03}") for number in range(AT_ONCE + 1)))
    bench.latency = 1.0
    bench.condition("n1", "Ready", "Unknown")
    last = f"p{AT_ONCE:03}-uid"
    bench.tell(PodGone(last), PodGone("p000-uid"))
    bench.run_until(60.0)
    assert last not in {mark.pod.ref.uid for _, mark in bench.of(h.MarkPod)}
    assert bench.engine.pods.waiting == 0


@pytest.mark.reported("kubernetes/kubernetes#120256")
def test_once_the_node_is_ready_again_nothing_more_is_marked_and_nothing_set_back() -> None:
    bench = cluster(*(pod(f"p{number}") for number in range(100)))
    bench.latency = 1.0
    bench.marks = first(*[h.PodResult.FAILED] * AT_ONCE, then=h.PodResult.DONE)
    bench.condition("n1", "Ready", "Unknown")
    bench.run_until(1.5)
    bench.condition("n1", "Ready", "True")
    sent = len(bench.of(h.MarkPod))
    for uid, each in list(bench.pods.items()):
        bench.add_pods(replace(each, ready=True))
        assert uid in bench.pods
    bench.run_until(3600.0)
    assert len(bench.of(h.MarkPod)) == sent
    assert bench.engine.pods.waiting == 0


@pytest.mark.reported("kubernetes/kubernetes#120256")
def test_a_pod_that_its_kubelet_reports_ready_just_before_the_node_is_left_alone() -> None:
    bench = cluster(pod("p1"), status="Unknown")
    bench.run_until(600.0)
    bench.add_pods(pod("p1", ready=True))
    bench.run_until(609.0)
    bench.condition("n1", "Ready", "True")
    bench.run_until(3600.0)
    assert bench.marked() == ["p1-uid"]


def test_a_kubelet_that_goes_on_reporting_a_pod_ready_is_contradicted_ever_less() -> None:
    bench = cluster(pod("p1"), status="False")
    for _ in range(3600):
        bench.run_until(bench.now + 1.0)
        if not bench.pods["p1-uid"].ready:
            bench.add_pods(pod("p1", ready=True))
    assert 8 <= len(bench.marked()) <= 18


def test_a_node_that_fails_again_has_its_pods_marked_again_at_once() -> None:
    bench = cluster(pod("p1"))
    for _ in range(3):
        bench.condition("n1", "Ready", "Unknown")
        assert not bench.pods["p1-uid"].ready
        bench.condition("n1", "Ready", "True")
        bench.add_pods(pod("p1", ready=True))
    assert bench.marked() == ["p1-uid"] * 3


def test_a_node_that_fails_again_just_after_a_pod_turned_ready_has_it_marked_at_once() -> None:
    bench = cluster(pod("p1"), status="Unknown")
    bench.add_pods(pod("p1", ready=True))
    bench.condition("n1", "Ready", "True")
    bench.condition("n1", "Ready", "Unknown")
    assert bench.marked() == ["p1-uid"] * 2


def test_a_node_that_was_deleted_leaves_its_pods_as_they_are() -> None:
    bench = cluster(*(pod(f"p{number}") for number in range(100)))
    bench.latency = 1.0
    bench.condition("n1", "Ready", "Unknown")
    bench.delete("n1")
    bench.run_until(100.0)
    assert len(bench.of(h.MarkPod)) == AT_ONCE
