"""Nodes, which the operator patches most: the embedded server answers what a real one does, patch for patch."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from testbed.client import Kube
from tests.cluster.conformance import ABSENT, JSON_PATCH, MERGE, NULL, STRATEGIC, Row, World, cause, check, failure

NODE = "/api/v1/nodes/$node"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
TAINT = {"key": "example.com/a", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


def condition(**fields: str) -> dict[str, str]:
    return {"type": "DiskPressure", "status": "True", "reason": "Full", "message": "m", **fields}


async def node_conditions(world: World) -> None:
    conditions = [condition(), condition(type="Ready", status="False", reason="Down")]
    await world.kube.patch_status("nodes", "", world.node, {"conditions": conditions})


async def taints_are_new(world: World) -> None:
    node = await world.kube.get("nodes", "", world.node)
    assert node["spec"]["taints"] == [NOT_READY, TAINT]
    assert node["metadata"]["resourceVersion"] != world.names["node_version"]


async def node_is_as_it_was(world: World) -> None:
    node = await world.kube.get("nodes", "", world.node)
    assert node["metadata"]["resourceVersion"] == world.names["node_version"]


patch = partial(Row, method="PATCH", path=NODE, content_type=MERGE)
json_patch = partial(Row, method="PATCH", path=NODE, content_type=JSON_PATCH)

NODES = [
    Row(
        name="a new node has the taint of nodes that are not ready",
        method="GET",
        path=NODE,
        status=200,
        answer={
            "kind": "Node",
            "apiVersion": "v1",
            "spec": {"taints": [NOT_READY]},
            "metadata": {"generation": ABSENT},
        },
    ),
    patch(
        name="taints and the version they are based on go in one merge patch",
        body={"metadata": {"resourceVersion": "$node_version"}, "spec": {"taints": [NOT_READY, TAINT]}},
        status=200,
        answer={"kind": "Node", "spec": {"taints": [NOT_READY, TAINT]}},
        then=taints_are_new,
    ),
    patch(
        name="a merge patch based on another version is a conflict",
        body={"metadata": {"resourceVersion": "1"}, "spec": {"taints": [TAINT]}},
        status=409,
        answer=failure(
            "Conflict", f'Operation cannot be fulfilled on nodes "$node": {MODIFIED}', name="$node", kind="nodes"
        ),
        then=node_is_as_it_was,
    ),
    patch(
        name="a merge patch of another UID is invalid",
        body={"metadata": {"uid": "another"}, "spec": {"taints": [TAINT]}},
        status=422,
        answer=failure(
            "Invalid",
            'Node "$node" is invalid: metadata.uid: Invalid value: "another": field is immutable',
            name="$node",
            kind="Node",
            causes=[cause("FieldValueInvalid", "metadata.uid")] * 2,
        ),
        then=node_is_as_it_was,
    ),
    Row(
        name="a merge patch of nobody is not found",
        method="PATCH",
        path="/api/v1/nodes/$none",
        content_type=MERGE,
        body={"spec": {"taints": [TAINT]}},
        status=404,
        answer=failure("NotFound", 'nodes "$none" not found', name="$none", kind="nodes"),
    ),
    patch(
        name="a merge patch that changes nothing gives no new version",
        body={"spec": {"taints": [NOT_READY]}},
        status=200,
        then=node_is_as_it_was,
    ),
    Row(
        name="a strategic merge patch replaces taints as a whole",
        method="PATCH",
        path=NODE,
        content_type=STRATEGIC,
        body={"spec": {"taints": [TAINT]}},
        status=200,
        answer={"spec": {"taints": [TAINT]}},
    ),
    json_patch(
        name="a JSON patch may replace a member that is missing",
        body=[{"op": "replace", "path": "/metadata/annotations/example.com~1a", "value": "b"}],
        status=200,
        answer={"metadata": {"annotations": {"example.com/a": "b"}}},
    ),
    json_patch(
        name="a JSON patch may not remove a member that is missing",
        body=[{"op": "remove", "path": "/metadata/annotations/example.com~1a"}],
        status=422,
        answer=failure("Invalid"),
    ),
    json_patch(
        name="a JSON patch may test that a member is missing",
        body=[{"op": "test", "path": "/metadata/labels", "value": None}],
        status=200,
        then=node_is_as_it_was,
    ),
    patch(
        name="an empty list of taints is none",
        body={"spec": {"taints": [], "unschedulable": False}},
        status=200,
        answer={"spec": {"taints": ABSENT, "unschedulable": ABSENT}},
    ),
    patch(
        name="a patch under another name is refused",
        body={"metadata": {"name": "other"}},
        status=400,
        answer=failure("BadRequest", "the name of the object (other) does not match the name on the URL ($node)"),
    ),
    patch(
        name="null takes taints away",
        body={"spec": {"taints": None}},
        status=200,
        answer={"spec": {"taints": ABSENT}},
    ),
    json_patch(
        name="a JSON patch whose test holds is applied",
        body=[
            {"op": "test", "path": "/spec/taints", "value": [NOT_READY]},
            {"op": "add", "path": "/spec/taints/-", "value": TAINT},
        ],
        status=200,
        answer={"spec": {"taints": [NOT_READY, TAINT]}},
        then=taints_are_new,
    ),
    json_patch(
        name="a JSON patch whose test fails is refused",
        body=[
            {"op": "test", "path": "/spec/taints", "value": [TAINT]},
            {"op": "replace", "path": "/spec/taints", "value": []},
        ],
        status=422,
        answer=failure("Invalid", "the server rejected our request due to an error in our request", causes=ABSENT),
        then=node_is_as_it_was,
    ),
    json_patch(
        name="a JSON patch below what is missing is refused",
        body=[{"op": "replace", "path": "/metadata/labels/example.com~1a", "value": "b"}],
        status=422,
        answer=failure("Invalid", "the server rejected our request due to an error in our request"),
    ),
    json_patch(
        name="a JSON patch with a test of the version is a lock",
        body=[
            {"op": "test", "path": "/metadata/resourceVersion", "value": "$node_version"},
            {"op": "replace", "path": "/spec/taints/0", "value": TAINT},
        ],
        status=200,
        answer={"spec": {"taints": [TAINT]}},
    ),
    Row(
        name="an unknown form of patch is refused",
        method="PATCH",
        path=NODE,
        content_type="application/json",
        body={"spec": {"taints": []}},
        status=415,
        answer=failure("UnsupportedMediaType", "415: Unsupported Media Type"),
    ),
    Row(
        name="the status changes through its subresource, conditions by type",
        given=node_conditions,
        method="PATCH",
        path=f"{NODE}/status",
        content_type=STRATEGIC,
        body={"status": {"conditions": [condition(status="Unknown")]}, "spec": {"unschedulable": True}},
        status=200,
        answer={
            "spec": {"unschedulable": ABSENT},
            "status": {
                "conditions": [{"type": "DiskPressure", "status": "Unknown"}, {"type": "Ready", "reason": "Down"}]
            },
        },
    ),
    Row(
        name="a merge patch of the status replaces all conditions",
        given=node_conditions,
        method="PATCH",
        path=f"{NODE}/status",
        content_type=MERGE,
        body={"status": {"conditions": [condition()]}},
        status=200,
        answer={"status": {"conditions": [{"type": "DiskPressure", "status": "True", "lastTransitionTime": NULL}]}},
    ),
    patch(
        name="the status does not change without its subresource",
        body={"status": {"conditions": [condition()]}},
        status=200,
        answer={"status": {"conditions": ABSENT}},
        then=node_is_as_it_was,
    ),
    Row(
        name="metadata of a node changes through the status too",
        method="PATCH",
        path=f"{NODE}/status",
        content_type=MERGE,
        body={"metadata": {"annotations": {"example.com/a": "b"}}},
        status=200,
        answer={"metadata": {"annotations": {"example.com/a": "b"}}},
    ),
    patch(
        name="times are cut to seconds and turned to UTC",
        body={"spec": {"taints": [{**TAINT, "timeAdded": "2026-01-02T05:04:05.987654+02:00"}]}},
        status=200,
        answer={"spec": {"taints": [TAINT]}},
    ),
    Row(
        name="a node that exists cannot be created",
        method="POST",
        path="/api/v1/nodes",
        body={"metadata": {"name": "$node"}},
        status=409,
        answer=failure("AlreadyExists", 'nodes "$node" already exists', name="$node", kind="nodes"),
    ),
    Row(
        name="a node is deleted with an answer that names it",
        method="DELETE",
        path=NODE,
        status=200,
        answer={
            "kind": "Status",
            "status": "Success",
            "details": {"name": "$node", "kind": "nodes", "uid": "$node_uid"},
        },
    ),
]


@pytest.mark.parametrize("row", NODES, ids=lambda row: row.name)
async def test_a_call_about_a_node_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)
