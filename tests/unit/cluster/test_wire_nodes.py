"""What is read of nodes, and how taints and memories are written."""

import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.wire import (
    FIRST_SEEN_ANNOTATION,
    decode_first_seen,
    decode_node,
    encode_first_seen,
    encode_taint,
    timestamp,
)
from taintkeeper.core.objects import Condition, Node, Taint
from tests.unit.cluster import wires

BORN = 1767225600.0


@pytest.fixture
def far_east() -> Iterator[None]:
    """A machine whose local time is not UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def read(*taints: dict[str, Any], **parts: Any) -> Node:
    return decode_node(msgspec.json.encode(wires.node("n1", *taints, **parts)))


def test_a_node_is_read_with_all_that_decisions_rest_on() -> None:
    labels = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z", "x": "y"}
    node = read(
        {"key": "foo", "value": "bar", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:10Z"},
        meta={"labels": labels, "annotations": {FIRST_SEEN_ANNOTATION: '{"a:NoExecute":"2026-01-01T00:00:01.500Z"}'}},
        conditions={"Ready": "Unknown", "DiskPressure": "True"},
        unschedulable=True,
    )
    assert (node.name, node.uid, node.resource_version, node.created) == ("n1", "n1-uid", "17", BORN)
    assert node.taints == (Taint("foo", "NoExecute", "bar", BORN + 10.0),)
    assert node.conditions == (
        Condition("Ready", "Unknown", "KubeletReady", heartbeat=BORN, transition=BORN),
        Condition("DiskPressure", "True", "KubeletDiskPressure", heartbeat=BORN, transition=BORN),
    )
    assert node.labels == labels
    assert node.unschedulable
    assert "r" in node.zone
    assert "z" in node.zone
    assert not node.excluded
    assert node.first_seen == {"a:NoExecute": BORN + 1.5}


@pytest.mark.reported("openshift/configuration-anomaly-detection#576")
@pytest.mark.parametrize(
    ("time_added", "seconds"),
    [
        pytest.param({}, None, id="missing"),
        pytest.param({"timeAdded": None}, None, id="null"),
        pytest.param({"timeAdded": "2026-01-01T00:01:00Z"}, BORN + 60.0, id="RFC 3339"),
        pytest.param({"timeAdded": "2026-01-01T02:01:00+02:00"}, BORN + 60.0, id="with an offset"),
        pytest.param({"timeAdded": "2026-01-01T00:01:00.25Z"}, BORN + 60.25, id="fractional"),
        pytest.param({"timeAdded": "2026-01-01T00:01:00.123456789Z"}, BORN + 60.123457, id="nanoseconds"),
        pytest.param({"timeAdded": "9999-12-31T23:59:59Z"}, 253402300799.0, id="future"),
        pytest.param({"timeAdded": "0001-01-01T00:00:00Z"}, -62135596800.0, id="Go's zero"),
        *[pytest.param({"timeAdded": time}, None, id=f"{time!r}") for time in wires.BAD_TIMES],
    ],
)
def test_taints_with_and_without_times_may_be_mixed(
    time_added: dict[str, Any], seconds: float | None, far_east: None
) -> None:
    plain = {"key": "plain", "effect": "NoSchedule"}
    timed = {"key": "timed", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    node = read(plain, {"key": "foo", "effect": "NoExecute", **time_added}, timed)
    assert [taint.key for taint in node.taints] == ["plain", "foo", "timed"]
    assert [taint.time_added for taint in node.taints] == [None, pytest.approx(seconds, abs=1e-6), BORN]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no labels, no annotations, no taints"),
        pytest.param({"meta": {"labels": None, "annotations": None}, "taints": None}, id="null"),
        pytest.param({"meta": {"labels": {}, "annotations": {}}, "taints": []}, id="empty"),
    ],
)
def test_what_a_node_does_not_say_has_a_plain_meaning(parts: dict[str, Any]) -> None:
    node = read(**parts)
    assert (node.taints, node.zone, node.excluded, node.unschedulable, node.first_seen) == ((), "", False, False, {})


def test_a_node_with_neither_spec_nor_status_can_be_read() -> None:
    node = decode_node(b'{"metadata": {"name": "n1"}}')
    assert (node.name, node.created, node.conditions, node.ready) == ("n1", 0.0, (), False)


@pytest.mark.parametrize("time", wires.BAD_TIMES, ids=repr)
def test_a_time_of_a_node_that_cannot_be_read_counts_as_missing(time: Any, far_east: None) -> None:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": time, "lastTransitionTime": time}
    node = wires.node("n1", meta={"creationTimestamp": time}) | {"status": {"conditions": [condition]}}
    read = decode_node(msgspec.json.encode(node))
    assert (read.created, read.conditions) == (0.0, (Condition("Ready", "True"),))


def test_a_taint_that_lacks_a_part_can_be_read() -> None:
    assert read({}).taints == (Taint("", ""),)


def test_a_node_may_be_left_out_of_the_count() -> None:
    assert read(meta={"labels": {"node.kubernetes.io/exclude-disruption": ""}}).excluded


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param({"foo:NoExecute": BORN}, id="whole seconds"),
        pytest.param({"foo=bar:NoExecute": BORN + 0.125, "a:NoExecute": BORN - 1e6}, id="several"),
        pytest.param({'we"ird\\key=ü:NoExecute': BORN}, id="odd characters"),
    ],
)
def test_the_memory_of_a_node_comes_back_as_it_was_written(memory: dict[str, float], far_east: None) -> None:
    text = encode_first_seen(memory)
    assert text is not None
    assert decode_first_seen(text) == memory
    assert read(meta={"annotations": {FIRST_SEEN_ANNOTATION: text}}).first_seen == memory


def test_times_in_memory_are_kept_to_the_millisecond_and_in_order() -> None:
    text = encode_first_seen({"b:NoExecute": BORN + 1.2345, "a:NoExecute": BORN})
    assert text == '{"a:NoExecute":"2026-01-01T00:00:00.000Z","b:NoExecute":"2026-01-01T00:00:01.234Z"}'


def test_nothing_to_remember_removes_the_annotation() -> None:
    assert encode_first_seen({}) is None
    assert decode_first_seen(None) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "null",
        "[]",
        '{"foo:NoExecute": 5}',
        '{"foo:NoExecute": null}',
        '{"foo:NoExecute": "yesterday"}',
        '{"foo:NoExecute": "2026-13-01T00:00:00Z"}',
        pytest.param('{"foo:NoExecute": "2026-01-01T00:00:00"}', id="a time without a zone"),
        pytest.param('{"foo:NoExecute": "0001-01-01T00:00:00"}', id="the first of all times without a zone"),
        pytest.param('{"foo:NoExecute": "0001-01-01T00:00:00+14:00"}', id="before all times"),
        pytest.param('{"foo:NoExecute": "1969-12-31T23:59:59Z"}', id="before the epoch"),
        "[" * 100_000,
        '{"foo:NoExecute":' * 100_000,
    ],
    ids=lambda text: text[:40] or "empty",
)
def test_a_memory_that_makes_no_sense_counts_as_nothing_remembered(text: str, far_east: None) -> None:
    assert decode_first_seen(text) == {}
    assert read(meta={"annotations": {FIRST_SEEN_ANNOTATION: text}}).first_seen == {}


@pytest.mark.parametrize("bad", ["5", "null", '"yesterday"', '"0000-01-01T00:00:00Z"', '"2026-01-01T00:00:00"', "[{}]"])
def test_a_part_of_a_memory_that_makes_no_sense_leaves_the_rest(bad: str, far_east: None) -> None:
    good = '"2026-01-01T00:00:00Z"'
    assert decode_first_seen(f'{{"a:NoExecute":{good},"b:NoExecute":{bad},"c:NoExecute":{good}}}') == {
        "a:NoExecute": BORN,
        "c:NoExecute": BORN,
    }


@pytest.mark.parametrize(
    ("taint", "wire"),
    [
        (Taint("foo", "NoSchedule"), {"key": "foo", "effect": "NoSchedule"}),
        (Taint("foo", "NoExecute", "bar"), {"key": "foo", "effect": "NoExecute", "value": "bar"}),
        (
            Taint("foo", "NoExecute", time_added=BORN + 1.9),
            {"key": "foo", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:01Z"},
        ),
        (
            Taint("foo", "NoExecute", time_added=-62135596800.0),
            {"key": "foo", "effect": "NoExecute", "timeAdded": "0001-01-01T00:00:00Z"},
        ),
    ],
    ids=["plain", "with a value", "with a time, cut to the second", "with Go's zero"],
)
def test_taints_are_written_as_the_api_spells_them(taint: Taint, wire: dict[str, str], far_east: None) -> None:
    assert encode_taint(taint) == wire


@pytest.mark.parametrize(
    ("digits", "text"),
    [(0, "2026-01-01T00:00:00Z"), (3, "2026-01-01T00:00:00.987Z"), (6, "2026-01-01T00:00:00.987654Z")],
)
def test_times_are_written_in_utc(digits: int, text: str, far_east: None) -> None:
    assert timestamp(BORN + 0.987654, digits=digits) == text


@pytest.mark.reported("kubernetes/kubernetes#124448")
@pytest.mark.parametrize(
    ("type_", "status", "message", "shutting_down"),
    [
        ("Ready", "False", "node is shutting down", True),
        ("Ready", "False", "[container runtime is down, node is shutting down]", True),
        ("Ready", "False", "container runtime is down", False),
        ("Ready", "False", "", False),
        ("Ready", "Unknown", "node is shutting down", False),
        ("Ready", "True", "node is shutting down", False),
        ("DiskPressure", "False", "node is shutting down", False),
    ],
)
def test_a_node_shuts_down_when_its_ready_condition_says_so(
    type_: str, status: str, message: str, shutting_down: bool
) -> None:
    wire = wires.node()
    wire["status"]["conditions"] = [{"type": type_, "status": status, "message": message}]
    assert decode_node(msgspec.json.encode(wire)).shutting_down is shutting_down
