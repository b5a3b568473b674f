"""Pods: the embedded server answers what a real one does, from their creation to changes of their status."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from testbed.client import Kube
from tests.cluster.conformance import JSON_PATCH, MERGE, STRATEGIC, Row, World, cause, check, failure

POD = "/api/v1/namespaces/$ns/pods/p"
PODS = "/api/v1/namespaces/$ns/pods"


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


async def a_pod(world: World) -> None:
    await world.pod()


def container() -> list[dict[str, str]]:
    return [{"name": "c", "image": "example.com/c"}]


def new_pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": container(), **spec}}


async def nothing_was_created(world: World) -> None:
    assert (await world.kube.request("GET", world.fill(POD))).status == 404


post = partial(Row, method="POST")
refused = partial(Row, method="POST", status=422)
new_pod_is = partial(Row, method="POST", path=PODS, status=201)
json_patch_pod = partial(Row, given=a_pod, method="PATCH", path=POD, content_type=JSON_PATCH)
patch_pod_status = partial(Row, given=a_pod, method="PATCH", path=f"{POD}/status", content_type=STRATEGIC)

INVALID = [
    refused(
        name="a pod without a name",
        path=PODS,
        body={"metadata": {}, "spec": {"containers": container()}},
        answer=failure(
            "Invalid",
            'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
            kind="Pod",
            causes=[cause("FieldValueRequired", "metadata.name")],
        ),
    ),
    refused(
        name="a pod whose name cannot be",
        path=PODS,
        body={"metadata": {"name": "P_1"}, "spec": {"containers": container()}},
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "metadata.name")]),
    ),
    refused(
        name="a pod without containers",
        path=PODS,
        body={"metadata": {"name": "p"}, "spec": {}},
        answer=failure("Invalid", causes=[cause("FieldValueRequired", "spec.containers", "Required value")]),
        then=nothing_was_created,
    ),
    refused(
        name="seconds on a toleration that does not say NoExecute",
        path=PODS,
        body=new_pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),
        answer=failure(
            "Invalid",
            causes=[
                cause(
                    "FieldValueInvalid",
                    "spec.tolerations[0].effect",
                    "Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                )
            ],
        ),
    ),
    refused(
        name="a toleration of everything that is not Exists",
        path=PODS,
        body=new_pod(tolerations=[{"operator": "Equal"}]),
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "spec.tolerations[0].operator")]),
    ),
    post(
        name="a body that is no JSON object",
        path=PODS,
        body="text",
        status=400,
        answer=failure("BadRequest"),
    ),
    post(
        name="an object of another kind",
        path=PODS,
        body={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "p"}},
        status=400,
        answer=failure("BadRequest"),
    ),
]

CALLS = [
    new_pod_is(
        name="a new pod gets the defaults that eviction depends on",
        body=new_pod(),
        answer={
            "kind": "Pod",
            "metadata": {"generation": 1, "namespace": "$ns"},
            "spec": {
                "terminationGracePeriodSeconds": 30,
                "restartPolicy": "Always",
                "priority": 0,
                "tolerations": [
                    {
                        "key": f"node.kubernetes.io/{key}",
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    }
                    for key in ("not-ready", "unreachable")
                ],
            },
            "status": {"phase": "Pending"},
        },
    ),
    new_pod_is(
        name="a pod that tolerates everything gets no more tolerations",
        body=new_pod(tolerations=[{"operator": "Exists"}]),
        answer={"spec": {"tolerations": [{"operator": "Exists"}]}},
    ),
    new_pod_is(
        name="a critical pod gets its priority from the class",
        body=new_pod(priorityClassName="system-node-critical"),
        answer={"spec": {"priority": 2000001000}},
    ),
    post(
        name="a pod with a priority of its own is refused",
        path=PODS,
        body=new_pod(priority=7),
        status=403,
        answer=failure("Forbidden", name="p", kind="pods"),
    ),
    post(
        name="a pod in no namespace is refused",
        path="/api/v1/namespaces/$none/pods",
        body=new_pod(),
        status=404,
        answer=failure("NotFound", 'namespaces "$none" not found', name="$none", kind="namespaces"),
    ),
    json_patch_pod(
        name="a pod's tolerations may get more seconds",
        body=[{"op": "replace", "path": "/spec/tolerations/0/tolerationSeconds", "value": 900}],
        status=200,
        answer={"metadata": {"generation": 2}},
    ),
    json_patch_pod(
        name="a pod's tolerations may not go",
        body=[{"op": "remove", "path": "/spec/tolerations/0"}],
        status=200,
        answer={
            "spec": {
                "tolerations": [{"key": "node.kubernetes.io/unreachable"}, {"key": "node.kubernetes.io/not-ready"}]
            }
        },
    ),
    Row(
        name="a pod does not move to another node",
        given=a_pod,
        method="PATCH",
        path=POD,
        content_type=MERGE,
        body={"spec": {"nodeName": "other"}},
        status=422,
        answer=failure("Invalid", name="p", kind="Pod", causes=[cause("FieldValueForbidden", "spec")]),
    ),
    patch_pod_status(
        name="a pod's condition is set by type and leaves the others",
        body={
            "metadata": {"uid": "$p_uid"},
            "status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "r", "message": "m"}]},
        },
        status=200,
        answer={
            "status": {"conditions": [{"type": "DisruptionTarget"}, {"type": "Ready"}]},
            "metadata": {"generation": 1},
        },
    ),
    patch_pod_status(
        name="a status patch of a pod with another UID is invalid",
        body={"metadata": {"uid": "another"}, "status": {"phase": "Failed"}},
        status=422,
        answer=failure(
            "Invalid",
            'Pod "p" is invalid: metadata.uid: Invalid value: "another": field is immutable',
            name="p",
            kind="Pod",
        ),
    ),
    Row(
        name="a collection cannot be patched",
        method="PATCH",
        path=PODS,
        content_type=MERGE,
        body={},
        status=405,
        answer=failure("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ),
]


@pytest.mark.parametrize("row", INVALID, ids=lambda row: row.name)
async def test_an_invalid_pod_is_refused_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.name)
async def test_a_call_about_a_pod_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)
