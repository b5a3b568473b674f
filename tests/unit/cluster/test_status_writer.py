"""What node-health sends to the API server, to the letter; and what a dry run makes of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.status_writer import ApiStatusWriter, DryStatusWriter
from taintkeeper.core.health import NEVER_POSTED, STOPPED, UnknownCondition
from taintkeeper.core.health_messages import PodResult, PodWritten
from taintkeeper.core.messages import NodeGone, NodeSeen, NodeWritten, WriteResult
from taintkeeper.core.objects import Condition, Node, Pod, PodRef
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import LOST, ScriptedApi, reply

AT = 1767225600.5
NODE = Node(
    "n1",
    uid="n1-uid",
    resource_version="17",
    conditions=(Condition("NetworkUnavailable", "False"), Condition("Ready", "True", "KubeletReady", 5.0, 4.0)),
)
READY = UnknownCondition("Ready", *STOPPED, None, AT)
DISK = UnknownCondition("DiskPressure", *NEVER_POSTED, 1767225500.0, AT)
POD = Pod(PodRef("default", "p1", "p1-uid"), version=23, node="n1")


def sent(api: ScriptedApi) -> tuple[str, Any, str, str, str]:
    (only,) = api.sent
    return only.line, only.call.body, only.call.content_type, only.call.verb, only.call.resource


async def test_conditions_are_merged_by_type_provided_that_the_node_has_not_changed() -> None:
    after = wires.node("n1", meta={"resourceVersion": "18"}, conditions={"Ready": "Unknown"})
    api = ScriptedApi(reply(200, after))
    written = await ApiStatusWriter(api).write_unknown(NODE, (READY, DISK))
    body = {
        "metadata": {"uid": "n1-uid", "resourceVersion": "17"},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                },
                {
                    "type": "DiskPressure",
                    "status": "Unknown",
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "lastHeartbeatTime": "2025-12-31T23:58:20Z",
                },
            ]
        },
    }
    path, kind = "PATCH /api/v1/nodes/n1/status", "application/strategic-merge-patch+json"
    assert sent(api) == (path, body, kind, "patch", "nodes/status")
    assert (written.result, written.node is not None and written.node.resource_version) == (WriteResult.DONE, "18")


async def test_labels_are_merged_into_those_of_the_same_node() -> None:
    api = ScriptedApi(reply(200, wires.node("n1")))
    written = await ApiStatusWriter(api).write_labels(NODE, {"beta.kubernetes.io/os": "linux"})
    body = {"metadata": {"uid": "n1-uid", "labels": {"beta.kubernetes.io/os": "linux"}}}
    assert sent(api) == ("PATCH /api/v1/nodes/n1", body, "application/merge-patch+json", "patch", "nodes")
    assert written.result is WriteResult.DONE


async def test_a_pod_is_marked_provided_that_it_has_not_changed() -> None:
    api = ScriptedApi(reply(200, wires.pod()))
    assert await ApiStatusWriter(api).mark_pod(POD, AT) == PodWritten("p1-uid", PodResult.DONE)
    body = {
        "metadata": {"uid": "p1-uid", "resourceVersion": "23"},
        "status": {
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }
    path, kind = "PATCH /api/v1/namespaces/default/pods/p1/status", "application/strategic-merge-patch+json"
    assert sent(api) == (path, body, kind, "patch", "pods/status")


@pytest.mark.parametrize(
    ("answer", "result", "detail"),
    [
        (reply(404), WriteResult.GONE, "404: answered 404"),
        (reply(409), WriteResult.CONFLICT, "409: answered 409"),
        (reply(422), WriteResult.FAILED, "422: answered 422"),
        (reply(500), WriteResult.FAILED, "500: answered 500"),
        (LOST, WriteResult.FAILED, "connection lost"),
    ],
    ids=str,
)
@pytest.mark.parametrize("what", ["conditions", "labels"])
async def test_a_write_to_a_node_that_fails_says_how(
    answer: Reply | Exception, result: WriteResult, detail: str, what: str
) -> None:
    writer = ApiStatusWriter(ScriptedApi(answer))
    write = writer.write_unknown(NODE, (READY,)) if what == "conditions" else writer.write_labels(NODE, {"a": "b"})
    assert await write == NodeWritten("n1", result, detail=detail)


@pytest.mark.parametrize(
    ("answer", "result", "detail", "retry_after"),
    [
        (reply(404), PodResult.GONE, "404: answered 404", 0.0),
        (reply(409), PodResult.CONFLICT, "409: answered 409", 0.0),
        (reply(429, Retry_After="7"), PodResult.THROTTLED, "429: answered 429", 7.0),
        (reply(403), PodResult.FAILED, "403: answered 403", 0.0),
        (reply(500), PodResult.FAILED, "500: answered 500", 0.0),
        (LOST, PodResult.FAILED, "connection lost", 0.0),
    ],
    ids=str,
)
async def test_a_mark_that_fails_says_how(
    answer: Reply | Exception, result: PodResult, detail: str, retry_after: float
) -> None:
    written = await ApiStatusWriter(ScriptedApi(answer)).mark_pod(POD, AT)
    assert written == PodWritten("p1-uid", result, detail, retry_after)


def test_the_real_writer_shows_nodes_as_they_are() -> None:
    assert ApiStatusWriter(ScriptedApi()).as_seen(NODE) is NODE


async def test_in_a_dry_run_a_node_is_shown_as_it_would_be() -> None:
    echoed: list[Node] = []
    writer = DryStatusWriter(echoed.append)
    written = await writer.write_unknown(NODE, (READY, DISK))
    would_be = replace(
        NODE,
        conditions=(
            Condition("NetworkUnavailable", "False"),
            Condition("Ready", "Unknown", "NodeStatusUnknown", 5.0, AT),
            Condition("DiskPressure", "Unknown", "NodeStatusNeverUpdated", 1767225500.0, AT),
        ),
    )
    assert written == NodeWritten("n1", WriteResult.DONE, would_be)
    assert echoed == [], "a watch never tells of a write before it has been answered"
    await asyncio.sleep(0)
    assert echoed == [would_be]
    assert writer.as_seen(replace(NODE, resource_version="18")) == replace(would_be, resource_version="18")
    assert writer.as_seen(replace(NODE, uid="other")) == replace(NODE, uid="other")


async def test_in_a_dry_run_what_is_declared_later_is_added() -> None:
    writer = DryStatusWriter(lambda _: None)
    first = (await writer.write_unknown(NODE, (READY,))).node
    assert first is not None
    second = (await writer.write_unknown(first, (DISK,))).node
    assert second is not None
    assert [each.status for each in second.conditions] == ["False", "Unknown", "Unknown"]
    assert writer.as_seen(NODE).conditions == second.conditions


async def test_in_a_dry_run_a_node_that_reports_again_is_shown_as_it_is() -> None:
    writer = DryStatusWriter(lambda _: None)
    await writer.write_unknown(NODE, (READY, DISK))
    back = replace(NODE, conditions=(Condition("Ready", "True", "KubeletReady", 6.0, 4.0),))
    assert writer.as_seen(back) == back
    assert writer.as_seen(NODE) == NODE


async def test_in_a_dry_run_a_node_is_compared_with_what_it_was_when_it_was_declared_unknown() -> None:
    writer = DryStatusWriter(lambda _: None)
    await writer.write_labels(NODE, {"b": "2"})
    later = replace(NODE, conditions=(Condition("Ready", "True", "KubeletReady", 6.0, 4.0),))
    await writer.write_unknown(later, (READY,))
    assert [each.status for each in writer.as_seen(later).conditions] == ["Unknown"]


async def test_in_a_dry_run_labels_stay_as_they_would_be() -> None:
    writer = DryStatusWriter(lambda _: None)
    await writer.write_labels(replace(NODE, labels={"a": "1"}), {"b": "2"})
    await writer.write_labels(NODE, {"c": "3"})
    assert writer.as_seen(replace(NODE, labels={"a": "4"})).labels == {"a": "4", "b": "2", "c": "3"}


async def test_in_a_dry_run_a_node_that_is_gone_is_forgotten() -> None:
    writer = DryStatusWriter(lambda _: None)
    await writer.write_labels(NODE, {"b": "2"})
    await writer.write_unknown(NODE, (READY,))
    writer.feed(NodeSeen(NODE))
    assert writer.as_seen(NODE) != NODE
    writer.feed(NodeGone("n1"))
    assert writer.as_seen(NODE) == NODE


async def test_in_a_dry_run_a_node_that_comes_again_under_its_name_is_shown_as_it_is() -> None:
    writer = DryStatusWriter(lambda _: None)
    await writer.write_unknown(NODE, (READY,))
    second = replace(NODE, uid="second")
    assert writer.as_seen(second) is second
    written = await writer.write_labels(second, {"b": "2"})
    assert written.node == replace(second, labels={"b": "2"})


async def test_in_a_dry_run_every_pod_can_be_marked() -> None:
    assert await DryStatusWriter(lambda _: None).mark_pod(POD, AT) == PodWritten("p1-uid", PodResult.DONE)
