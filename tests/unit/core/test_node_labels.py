"""The beta labels follow the stable ones; and what is told of nodes that come."""

import pytest

from taintkeeper.core import health_messages as h
from taintkeeper.core.messages import Knowledge, WriteResult
from taintkeeper.core.node_labels import missing_labels
from tests.unit.core.builders import case, node
from tests.unit.core.health_bench import HealthBench, constantly, first

OS, ARCH = "kubernetes.io/os", "kubernetes.io/arch"
STABLE = {OS: "linux", ARCH: "arm64"}
BETA = {f"beta.{key}": value for key, value in STABLE.items()}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        case("TestReconcileNodeLabels: No-op if node has no labels", {}, {}),
        case("TestReconcileNodeLabels: No-op if no target labels present", {"zone": "z1", "beta.unrelated": "x"}, {}),
        case("TestReconcileNodeLabels: Create OS/arch beta labels when they don't exist", STABLE, BETA),
        case(
            "TestReconcileNodeLabels: Reconcile OS/arch beta labels to match stable labels",
            {**STABLE, f"beta.{OS}": "windows", f"beta.{ARCH}": "not-arm"}, BETA,
        ),
        pytest.param({**STABLE, **BETA}, {}, id="both are right"),
        pytest.param({**STABLE, f"beta.{OS}": "linux"}, {f"beta.{ARCH}": "arm64"}, id="one is missing"),
        pytest.param(BETA, {}, id="nothing to follow"),
        pytest.param({OS: ""}, {f"beta.{OS}": ""}, id="an empty value is a value"),
    ],
)  # fmt: skip
def test_beta_labels_follow_the_stable_ones(labels: dict[str, str], expected: dict[str, str]) -> None:
    assert missing_labels(labels) == expected
    bench = HealthBench(node("n1", labels=labels))
    assert [patch.labels for _, patch in bench.of(h.PatchLabels)] == [expected] * bool(expected)
    assert bench.server["n1"].labels == {**labels, **expected}


def test_labels_that_somebody_changes_are_set_right_again() -> None:
    bench = HealthBench(node("n1", labels=STABLE))
    bench.run_until(10.0)
    bench.change("n1", labels={**STABLE, **BETA, f"beta.{OS}": "plan9"})
    bench.run_until(11.0)
    assert bench.server["n1"].labels == {**STABLE, **BETA}


def test_somebody_who_will_not_have_it_is_contradicted_twice_a_second_at_most() -> None:
    bench = HealthBench(node("n1", labels=STABLE))
    for _ in range(1000):
        bench.run_until(bench.now + 0.01)
        bench.change("n1", labels=STABLE)
    assert len(bench.of(h.PatchLabels)) <= 21


def test_a_write_that_fails_is_tried_again_with_growing_pauses() -> None:
    bench = HealthBench(node("n1", labels=STABLE), fresh=False)
    bench.labels = first(WriteResult.FAILED, WriteResult.GONE, WriteResult.CONFLICT, then=WriteResult.DONE)
    bench.tell(Knowledge(True))
    bench.run_until(10.0)
    assert len(bench.of(h.PatchLabels)) == 4
    assert bench.server["n1"].labels == {**STABLE, **BETA}


def test_an_hour_of_failures_costs_little() -> None:
    bench = HealthBench(node("n1", labels=STABLE), fresh=False)
    bench.labels = constantly(WriteResult.FAILED)
    bench.tell(Knowledge(True))
    bench.run_until(3600.0)
    assert 90 <= len(bench.of(h.PatchLabels)) <= 130


def test_nothing_is_written_before_everything_is_listed_or_while_it_is_not_followed() -> None:
    bench = HealthBench(node("n1", labels=STABLE), fresh=False)
    bench.run_until(100.0)
    assert bench.log == []
    bench.tell(Knowledge(True))
    bench.tell(Knowledge(False))
    bench.add(node("n2", labels=STABLE))
    bench.run_until(200.0)
    assert [patch.node.name for _, patch in bench.of(h.PatchLabels)] == ["n1"]


def test_there_is_one_write_under_way_for_a_node_at_most() -> None:
    bench = HealthBench(node("n1", labels=STABLE), fresh=False)
    bench.latency = 5.0
    bench.tell(Knowledge(True))
    for second in range(5):
        bench.run_until(float(second))
        bench.change("n1", labels=STABLE)
    assert len(bench.of(h.PatchLabels)) == 1


@pytest.mark.parametrize(("latency", "at", "writes"), [(5.0, 0.0, 1), (0.0, 0.1, 1), (0.0, None, 0)])
def test_a_node_that_is_deleted_is_forgotten_whatever_its_labels_wait_for(
    latency: float, at: float | None, writes: int
) -> None:
    bench = HealthBench(node("n1", labels=STABLE), fresh=False)
    bench.latency, bench.labels = latency, constantly(WriteResult.FAILED)
    if at is not None:
        bench.tell(Knowledge(True))
        bench.run_until(at)
    bench.delete("n1")
    bench.tell(Knowledge(True))
    bench.run_until(100.0)
    assert len(bench.of(h.PatchLabels)) == writes


def test_pauses_after_failures_begin_anew_after_a_success() -> None:
    bench = HealthBench(node("n1", labels=STABLE), fresh=False)
    bench.labels = first(*[WriteResult.FAILED] * 4, WriteResult.DONE, WriteResult.FAILED, then=WriteResult.DONE)
    bench.tell(Knowledge(True))
    bench.run_until(100.0)
    bench.change("n1", labels=STABLE)
    bench.run_until(110.0)
    before, after = bench.times(h.PatchLabels)[-2:]
    assert 0.5 <= after - before <= 0.625


@pytest.mark.upstream("TestNodeEventGeneration")
def test_a_node_that_is_new_is_told_once_with_its_uid() -> None:
    bench = HealthBench(node("old"))
    bench.add(node("n1", uid="first"))
    bench.run_until(10.0)
    bench.heartbeat("n1")
    bench.delete("n1")
    bench.add(node("n1", uid="second"))
    assert [told.node.uid for _, told in bench.of(h.NodeRegistered)] == ["first", "second"]


def test_a_restart_does_not_tell_of_every_node_again() -> None:
    bench = HealthBench(node("n1"), node("n2"))
    bench.start()
    bench.tell(Knowledge(False), Knowledge(True))
    assert bench.of(h.NodeRegistered) == []
    bench.tell(Knowledge(False))
    bench.add(node("n3"))
    assert [told.node.name for _, told in bench.of(h.NodeRegistered)] == ["n3"]


def test_transitions_of_the_ready_condition_are_told_and_the_first_report_is_none() -> None:
    bench = HealthBench(node("n1"))
    for status in ("False", "True", "True", "Unknown", "True"):
        bench.heartbeat("n1", status)
    assert [(told.before, told.after) for _, told in bench.of(h.ReadyChanged)] == [
        ("False", "True"), ("True", "Unknown"), ("Unknown", "True"),
    ]  # fmt: skip
    assert +bench.engine.statuses == {"True": 1}
