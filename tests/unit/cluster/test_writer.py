"""What is sent to the API server when something is to be written, to the letter."""

from typing import Any

import pytest

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.writer import ApiWriter
from taintkeeper.core.answers import Answer
from taintkeeper.core.messages import NodeWritten, WriteResult
from taintkeeper.core.objects import Node, PodRef, Taint
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import LOST, ScriptedApi, reply

POD = PodRef("default", "p1", "p1-uid")
NODE = Node("n1", uid="n1-uid", resource_version="17")
TAINTS = (Taint("foo", "NoSchedule"), Taint("bar", "NoExecute", "x", 1767225600.5))


def sent(api: ScriptedApi) -> tuple[str, Any, str]:
    (only,) = api.sent
    return only.line, only.call.body, only.call.content_type


async def test_an_eviction_names_the_uid_and_leaves_the_grace_period_to_the_pod() -> None:
    api = ScriptedApi(reply(201, {"kind": "Status", "status": "Success"}))
    assert await ApiWriter(api).evict(POD) == Answer(201)
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p1", "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": "p1-uid"}},
    }
    assert sent(api) == ("POST /api/v1/namespaces/default/pods/p1/eviction", body, "application/json")
    assert (api.sent[0].call.verb, api.sent[0].call.resource) == ("create", "pods/eviction")


async def test_an_eviction_with_a_grace_period_of_the_policy_names_it() -> None:
    api = ScriptedApi(reply(201, {}))
    await ApiWriter(api).evict(POD, 5)
    assert sent(api)[1]["deleteOptions"] == {"preconditions": {"uid": "p1-uid"}, "gracePeriodSeconds": 5}


@pytest.mark.reported("kubernetes-sigs/karpenter#3218")
@pytest.mark.upstream("TestPodStatusChange")
async def test_a_pod_is_told_why_before_it_is_deleted() -> None:
    """By a condition, as all do that disrupt pods since KEP-3329; upstream's reason NodeLost is older than those."""
    api = ScriptedApi(reply(200, {}), reply(200, {"kind": "Pod"}))
    assert await ApiWriter(api).delete(POD, 1, "taint foo:NoExecute is not tolerated", 1767225600.5) == Answer(200)
    told, deleted = (each.call for each in api.sent)
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintkeeper",
        "message": "Taintkeeper: deleting, since taint foo:NoExecute is not tolerated",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    path = "/api/v1/namespaces/default/pods/p1"
    assert (told.method, told.path, told.resource) == ("PATCH", f"{path}/status", "pods/status")
    assert told.body == {"metadata": {"uid": "p1-uid"}, "status": {"conditions": [condition]}}
    assert told.content_type == "application/strategic-merge-patch+json"
    assert (deleted.method, deleted.path, deleted.verb, deleted.resource) == ("DELETE", path, "delete", "pods")
    options = {"preconditions": {"uid": "p1-uid"}, "gracePeriodSeconds": 1}
    assert deleted.body == {"apiVersion": "v1", "kind": "DeleteOptions", **options}


@pytest.mark.parametrize(
    ("refusal", "status"), [(reply(404, {}), 404), (reply(409, {}), 409), (reply(403, {}), 403), (LOST, 0)], ids=str
)
async def test_a_pod_that_cannot_be_told_is_not_deleted(refusal: Reply | Exception, status: int) -> None:
    api = ScriptedApi(refusal)
    assert (await ApiWriter(api).delete(POD, None, "why", 0.0)).status == status
    assert len(api.sent) == 1


async def test_an_eviction_without_an_answer_has_status_zero() -> None:
    assert await ApiWriter(ScriptedApi(LOST)).evict(POD) == Answer(0, message="connection lost")


async def test_taints_are_replaced_provided_that_the_node_has_not_changed() -> None:
    changed = wires.node("n1", {"key": "foo", "effect": "NoSchedule"}, meta={"resourceVersion": "18"})
    api = ScriptedApi(reply(200, changed))
    written = await ApiWriter(api).write_taints(NODE, TAINTS)
    body = {
        "metadata": {"uid": "n1-uid", "resourceVersion": "17"},
        "spec": {
            "taints": [
                {"key": "foo", "effect": "NoSchedule"},
                {"key": "bar", "effect": "NoExecute", "value": "x", "timeAdded": "2026-01-01T00:00:00Z"},
            ]
        },
    }
    assert sent(api) == ("PATCH /api/v1/nodes/n1", body, "application/merge-patch+json")
    assert (api.sent[0].call.verb, api.sent[0].call.resource) == ("patch", "nodes")
    assert (written.name, written.result, written.detail) == ("n1", WriteResult.DONE, "")
    assert written.node is not None
    assert (written.node.resource_version, written.node.taints) == ("18", (Taint("foo", "NoSchedule"),))


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        pytest.param({("bar", "NoExecute"): "b"}, '{"bar:NoExecute":"b"}', id="kept"),
        pytest.param({}, None, id="removed by null"),
    ],
)
async def test_what_rules_brought_is_remembered_in_the_same_write(
    memory: dict[tuple[str, str], str], text: str | None
) -> None:
    changed = wires.node("n1", meta={"annotations": {"taintkeeper.io/rule-taints": text} if text else {}})
    api = ScriptedApi(reply(200, changed))
    written = await ApiWriter(api).write_taints(NODE, TAINTS, memory)
    metadata = {"uid": "n1-uid", "resourceVersion": "17", "annotations": {"taintkeeper.io/rule-taints": text}}
    assert sent(api)[1]["metadata"] == metadata
    assert len(sent(api)[1]["spec"]["taints"]) == 2
    assert written.node is not None
    assert written.node.rule_taints == memory


async def test_the_last_taint_is_removed_by_an_empty_list() -> None:
    api = ScriptedApi(reply(200, wires.node()))
    await ApiWriter(api).write_taints(NODE, ())
    assert sent(api)[1]["spec"] == {"taints": []}


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        pytest.param({"bar:NoExecute": 1767225600.5}, '{"bar:NoExecute":"2026-01-01T00:00:00.500Z"}', id="kept"),
        pytest.param({}, None, id="removed by null"),
    ],
)
async def test_the_memory_is_an_annotation_that_depends_on_the_uid_alone(
    memory: dict[str, float], text: str | None
) -> None:
    api = ScriptedApi(reply(200, wires.node()))
    written = await ApiWriter(api).write_first_seen("n1", "n1-uid", memory)
    body = {"metadata": {"uid": "n1-uid", "annotations": {"taintkeeper.io/first-seen": text}}}
    assert sent(api) == ("PATCH /api/v1/nodes/n1", body, "application/merge-patch+json")
    assert written.result is WriteResult.DONE


@pytest.mark.parametrize(
    ("answer", "result", "detail"),
    [
        pytest.param(reply(404), WriteResult.GONE, "404: answered 404", id="404"),
        pytest.param(reply(409), WriteResult.CONFLICT, "409: answered 409", id="409"),
        pytest.param(reply(403), WriteResult.FAILED, "403: answered 403", id="403"),
        pytest.param(reply(401), WriteResult.FAILED, "401: answered 401", id="401"),
        pytest.param(reply(429), WriteResult.FAILED, "429: answered 429", id="429"),
        pytest.param(reply(500), WriteResult.FAILED, "500: answered 500", id="500"),
        pytest.param(Reply(502, b"<html>Bad Gateway", {}), WriteResult.FAILED, "502: <html>Bad Gateway", id="a proxy"),
        pytest.param(LOST, WriteResult.FAILED, "connection lost", id="nobody answers"),
    ],
)
async def test_a_write_that_fails_says_how(answer: Reply | Exception, result: WriteResult, detail: str) -> None:
    for writing in (
        ApiWriter(ScriptedApi(answer)).write_taints(NODE, TAINTS),
        ApiWriter(ScriptedApi(answer)).write_first_seen("n1", "n1-uid", {}),
    ):
        assert await writing == NodeWritten("n1", result, detail=detail)


@pytest.mark.parametrize("body", [b"", b"OK", b"{}", b"\xff\xfe"])
async def test_a_write_whose_answer_is_no_node_counts_as_failed(body: bytes) -> None:
    written = await ApiWriter(ScriptedApi(Reply(200, body, {}))).write_taints(NODE, TAINTS)
    assert (written.result, written.node) == (WriteResult.FAILED, None)
    assert written.detail


def test_nodes_are_looked_at_as_they_are() -> None:
    assert ApiWriter(ScriptedApi()).as_seen(NODE) is NODE
