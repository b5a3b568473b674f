"""What is read of pods and disruption budgets."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.wire import Shared, decode_budget, decode_pod
from taintkeeper.core.objects import PodRef, Toleration
from taintkeeper.core.selectors import Requirement, Selector
from tests.unit.cluster import wires
from tests.unit.cluster.wires import condition

BORN = 1767225600.0
EARLY, LATE = "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"
HOUR = 3600.0


def raw(object_: Any) -> bytes:
    return msgspec.json.encode(object_)


def pod_with(**parts: Any) -> Any:
    return decode_pod(raw(wires.pod(**parts)))


def test_a_pod_is_read_with_all_that_decisions_rest_on() -> None:
    tolerations = [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "foo", "value": "bar"},
    ]
    pod = pod_with(
        meta={"labels": {"app": "web"}},
        spec={
            "tolerations": tolerations,
            "priority": 1000,
            "priorityClassName": "high",
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "db"}}],
        },
        status={"conditions": [condition("PodScheduled", at=EARLY), condition("Ready", at=LATE)]},
    )
    assert (pod.ref, pod.version) == (PodRef("default", "p1", "p1-uid"), 17)
    assert (pod.node, pod.bound, pod.phase, pod.priority) == ("n1", BORN + HOUR, "Running", 1000)
    assert pod.tolerations == (
        Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute", seconds=300),
        Toleration("foo", value="bar"),
    )
    assert (pod.ready, pod.critical, pod.deleting, pod.mirror, pod.terminal) == (True, False, False, False, False)
    assert pod.labels == {"app": "web"}
    assert pod.claims == ("db",)


@pytest.mark.parametrize(
    ("status", "bound"),
    [
        pytest.param(
            {"conditions": [condition("PodScheduled", at=LATE)], "startTime": EARLY}, BORN + 2 * HOUR, id="scheduled"
        ),
        pytest.param(
            {"conditions": [condition("PodScheduled", at=None)], "startTime": EARLY}, BORN + HOUR, id="no time"
        ),
        pytest.param({"conditions": [condition("Ready", at=LATE)], "startTime": EARLY}, BORN + HOUR, id="no condition"),
        pytest.param({"conditions": None, "startTime": EARLY}, BORN + HOUR, id="started"),
        pytest.param({}, BORN, id="created"),
    ],
)
def test_a_pod_came_to_its_node_when_it_was_scheduled_else_started_else_created(
    status: dict[str, Any], bound: float
) -> None:
    assert pod_with(status=status).bound == bound


@pytest.mark.parametrize("time", wires.BAD_TIMES, ids=repr)
def test_a_time_of_a_pod_that_cannot_be_read_counts_as_missing(time: Any) -> None:
    status = {"conditions": [condition("PodScheduled", at=time), condition("Ready", at=time)], "startTime": time}
    assert pod_with(status=status).bound == BORN
    assert pod_with(meta={"creationTimestamp": time}, status=status).bound == 0.0


def test_a_pod_whose_time_of_deletion_cannot_be_read_is_terminating() -> None:
    assert pod_with(meta={"deletionTimestamp": "10000-01-01T13:59:59Z"}).deleting


def test_a_pod_without_any_time_came_long_ago() -> None:
    assert pod_with(meta={"creationTimestamp": None}).bound == 0.0


@pytest.mark.parametrize(
    ("parts", "fact", "value"),
    [
        pytest.param({"spec": {"nodeName": ""}}, "node", "", id="not bound yet"),
        pytest.param({"meta": {"deletionTimestamp": LATE}}, "deleting", True, id="terminating"),
        pytest.param({"meta": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "mirror", True, id="mirror"),
        pytest.param(
            {"meta": {"annotations": {"kubernetes.io/config.source": "api"}}}, "mirror", False, id="no mirror"
        ),
        pytest.param({"meta": {"annotations": None, "labels": None}}, "labels", {}, id="null labels"),
        pytest.param({"meta": {"labels": {}}}, "labels", {}, id="empty labels"),
        pytest.param({}, "labels", {}, id="no labels"),
        pytest.param({}, "tolerations", (), id="no tolerations"),
        pytest.param({"spec": {"tolerations": None}}, "tolerations", (), id="null tolerations"),
        pytest.param({"spec": {"tolerations": []}}, "tolerations", (), id="empty tolerations"),
        pytest.param({"spec": {"priorityClassName": "system-node-critical"}}, "critical", True, id="node critical"),
        pytest.param({"spec": {"priorityClassName": "system-cluster-critical"}}, "critical", True, id="critical"),
        pytest.param({"spec": {"priorityClassName": "my-critical"}}, "critical", False, id="somebody's critical"),
        pytest.param({}, "priority", 0, id="no priority"),
        pytest.param({"spec": {"priority": None}}, "priority", 0, id="null priority"),
        pytest.param({"spec": {"priority": -5}}, "priority", -5, id="negative priority"),
        pytest.param({"status": {"phase": "Succeeded"}}, "terminal", True, id="succeeded"),
        pytest.param({"status": {"phase": "Failed"}}, "terminal", True, id="failed"),
        pytest.param({"status": {"phase": "Pending"}}, "terminal", False, id="pending"),
        pytest.param({}, "ready", False, id="readiness not known"),
        pytest.param({"status": {"conditions": [condition("Ready", "False")]}}, "ready", False, id="not ready"),
        pytest.param({"status": {"conditions": [condition("Ready", "Unknown")]}}, "ready", False, id="unknown"),
    ],
)
def test_what_a_pod_does_not_say_has_a_plain_meaning(parts: dict[str, Any], fact: str, value: object) -> None:
    assert getattr(pod_with(**parts), fact) == value


def test_a_pod_with_neither_spec_nor_status_can_be_read() -> None:
    pod = decode_pod(raw({"metadata": {"name": "p1", "namespace": "default", "uid": "1"}}))
    assert (pod.ref, pod.node, pod.phase) == (PodRef("default", "p1", "1"), "", "")


@pytest.mark.parametrize("decode", [decode_pod, decode_budget])
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"metadata": null}', b'{"metadata": {"name": 5}}', b"\xff"])
def test_what_is_no_object_is_refused(decode: Callable[[bytes], Any], body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(body)


def test_pods_share_what_they_have_in_common() -> None:
    parts = {"meta": {"labels": {"app": "web"}}, "spec": {"tolerations": [{"operator": "Exists"}]}}
    one, two = pod_with(name="p1", **parts), pod_with(name="p2", **parts)
    assert one.tolerations is two.tolerations
    assert one.labels is two.labels
    assert one.node is two.node
    assert pod_with(spec={"tolerations": [{"key": "a"}]}).tolerations != one.tolerations


def test_what_is_shared_is_bounded() -> None:
    decoded: list[bytes] = []

    def decode(piece: bytes) -> int:
        decoded.append(piece)
        return int(piece)

    shared = Shared(decode)
    pieces = [msgspec.Raw(str(number).encode()) for number in range(Shared.LIMIT)]
    assert [shared(piece) for piece in pieces] == list(range(Shared.LIMIT))
    assert shared(pieces[0]) == 0
    assert len(decoded) == Shared.LIMIT
    assert shared(msgspec.Raw(b"-1")) == -1
    assert len(shared._known) == 1
    assert shared(pieces[0]) == 0


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, None, id="null selects nothing"),
        pytest.param({}, Selector(), id="empty selects everything"),
        pytest.param(
            {"matchLabels": {"b": "2", "a": "1"}}, Selector((("a", "1"), ("b", "2"))), id="labels in any order"
        ),
        pytest.param({"matchLabels": None, "matchExpressions": None}, Selector(), id="null parts"),
        pytest.param(
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "tier", "operator": "In", "values": ["x", "y"]},
                    {"key": "old", "operator": "DoesNotExist"},
                ],
            },
            Selector(
                (("a", "1"),),
                (Requirement("tier", "In", frozenset({"x", "y"})), Requirement("old", "DoesNotExist", frozenset())),
            ),
            id="expressions",
        ),
    ],
)
def test_a_budgets_selector_is_read_as_it_is(selector: Any, expected: Selector | None) -> None:
    assert decode_budget(raw(wires.budget({"minAvailable": 1, "selector": selector}))).selector == expected


def test_a_budget_without_a_selector_selects_nothing() -> None:
    assert decode_budget(raw(wires.budget({"maxUnavailable": "20%"}))).selector is None


@pytest.mark.parametrize(
    ("status", "generation", "allowed"),
    [
        pytest.param({"disruptionsAllowed": 3, "observedGeneration": 2}, 2, 3, id="observed"),
        pytest.param({"disruptionsAllowed": 3, "observedGeneration": 3}, 2, 3, id="observed, and more"),
        pytest.param({"disruptionsAllowed": 3, "observedGeneration": 1}, 2, 0, id="not observed since it changed"),
        pytest.param({"disruptionsAllowed": 3}, 1, 0, id="never observed"),
        pytest.param({}, 1, 0, id="empty status"),
        pytest.param({"observedGeneration": 1}, 1, 0, id="nothing allowed"),
    ],
)
def test_a_budget_allows_what_its_status_says_once_it_was_observed(
    status: dict[str, Any], generation: int, allowed: int
) -> None:
    budget = decode_budget(raw(wires.budget(status=status, generation=generation)))
    assert (budget.namespace, budget.name, budget.allowed) == ("default", "b1", allowed)


def test_a_budget_without_a_status_allows_nothing() -> None:
    new = wires.budget()
    del new["status"]
    assert decode_budget(raw(new)).allowed == 0


@pytest.mark.parametrize(
    ("policy", "always"),
    [(None, False), ("IfHealthyBudget", False), ("AlwaysAllow", True)],
)
def test_a_budget_says_how_many_pods_are_healthy_and_whether_it_holds_the_others(
    policy: str | None, always: bool
) -> None:
    budget = decode_budget(raw(wires.budget({"selector": {}, "unhealthyPodEvictionPolicy": policy})))
    assert (budget.healthy, budget.desired, budget.always_allow) == (3, 2, always)


@pytest.mark.parametrize(
    ("spec", "demand"),
    [
        ({"minAvailable": 2}, "minAvailable: 2"),
        ({"minAvailable": "100%"}, "minAvailable: 100%"),
        ({"maxUnavailable": 0}, "maxUnavailable: 0"),
        ({}, ""),
    ],
)
def test_what_a_budget_asks_for_is_read_with_its_numbers(spec: dict[str, Any], demand: str) -> None:
    found = decode_budget(raw(wires.budget({"selector": {}, **spec})))
    assert (found.expected, found.desired, found.healthy, found.observed) == (3, 2, 3, True)
    assert (found.demand, found.uid) == (demand, "b1-uid")
