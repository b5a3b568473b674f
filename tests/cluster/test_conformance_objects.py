"""Pods, leases, events, budgets and reviews: the embedded server answers what a real one does, call by call."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from testbed.client import Kube
from tests.cluster.conformance import ABSENT, JSON_PATCH, MERGE, NULL, STRATEGIC, Row, World, cause, check, failure

POD = "/api/v1/namespaces/$ns/pods/p"
PODS = "/api/v1/namespaces/$ns/pods"
EVENTS = "/api/v1/namespaces/$ns/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
BUDGETS = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
HEARTBEAT = "2026-01-02T03:04:05Z"


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


async def a_pod(world: World) -> None:
    await world.pod()


async def a_lease(world: World) -> None:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.123456Z"}
    body = {"metadata": {"name": "l", "namespace": world.namespace}, "spec": spec}
    world.remember("l", await world.kube.create("leases", body))


def event(**fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "e", "namespace": "$ns"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$ns"},
        "reason": "Tested",
        "message": "as a test",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": HEARTBEAT,
        "lastTimestamp": HEARTBEAT,
        **fields,
    }


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
put_lease = partial(Row, given=a_lease, method="PUT", path=f"{LEASES}/l")

INVALID = [
    post(
        name="an annotation that is no text",
        path="/api/v1/nodes",
        body={"metadata": {"name": "$none", "annotations": {"a": 5}}},
        status=400,
        answer=failure("BadRequest"),
    ),
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
    refused(
        name="a budget with both limits",
        path=BUDGETS,
        body={"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "spec")], kind="PodDisruptionBudget"),
    ),
    refused(
        name="a lease of no duration",
        path=LEASES,
        body={"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
        answer=failure(
            "Invalid",
            'Lease.coordination.k8s.io "l" is invalid: spec.leaseDurationSeconds: Invalid value: 0: '
            "must be greater than 0",
            name="l",
            group="coordination.k8s.io",
            kind="Lease",
            causes=[cause("FieldValueInvalid", "spec.leaseDurationSeconds")],
        ),
    ),
    post(
        name="a lease renewed at a time without six decimals",
        path=LEASES,
        body={"metadata": {"name": "l"}, "spec": {"renewTime": HEARTBEAT}},
        status=400,
        answer=failure("BadRequest"),
    ),
    refused(
        name="an event in another namespace than its object",
        path=EVENTS,
        body=event(involvedObject={"kind": "Pod", "name": "p", "namespace": "other"}),
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "involvedObject.namespace")], kind="Event"),
    ),
    refused(
        name="an event about a node outside the default namespace",
        path=EVENTS,
        body=event(involvedObject={"kind": "Node", "name": "$node"}),
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "involvedObject.namespace")]),
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

OTHERS = [
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
    post(
        name="an event is created",
        path=EVENTS,
        body=event(),
        status=201,
        answer={
            "kind": "Event",
            "reason": "Tested",
            "count": 1,
            "lastTimestamp": HEARTBEAT,
            "eventTime": NULL,
            "source": {},
            "reportingComponent": "",
        },
    ),
    post(
        name="a lease is created with its times to the microsecond",
        path=LEASES,
        body={"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-02T03:04:05.123456Z"}},
        status=201,
        answer={"kind": "Lease", "spec": {"renewTime": "2026-01-02T03:04:05.123456Z"}},
    ),
    post(
        name="a lease that exists cannot be created",
        given=a_lease,
        path=LEASES,
        body={"metadata": {"name": "l"}},
        status=409,
        answer=failure(
            "AlreadyExists",
            'leases.coordination.k8s.io "l" already exists',
            name="l",
            group="coordination.k8s.io",
            kind="leases",
        ),
    ),
    put_lease(
        name="a lease is put with the version it was read at",
        body={"metadata": {"name": "l", "resourceVersion": "$l_version"}, "spec": {"holderIdentity": "you"}},
        status=200,
        answer={"spec": {"holderIdentity": "you", "leaseDurationSeconds": ABSENT}},
    ),
    put_lease(
        name="a lease put with another version is a conflict",
        body={"metadata": {"name": "l", "resourceVersion": "1"}, "spec": {"holderIdentity": "you"}},
        status=409,
        answer=failure(
            "Conflict",
            f'Operation cannot be fulfilled on leases.coordination.k8s.io "l": {MODIFIED}',
            name="l",
            group="coordination.k8s.io",
            kind="leases",
        ),
    ),
    put_lease(
        name="a lease put with another UID is a conflict",
        body={"metadata": {"name": "l", "uid": "another", "resourceVersion": "$l_version"}},
        status=409,
        answer=failure(
            "Conflict",
            'Operation cannot be fulfilled on leases.coordination.k8s.io "l": StorageError: invalid object, Code: 4, '
            "Key: /registry/leases/$ns/l, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            "UID in precondition: another, UID in object meta: $l_uid",
            name="l",
            group="coordination.k8s.io",
            kind="leases",
        ),
    ),
    put_lease(
        name="a lease put without a version is refused",
        body={"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}},
        status=422,
        answer=failure(
            "Invalid",
            'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: '
            "must be specified for an update",
            kind="leases",
            causes=[cause("FieldValueInvalid", "metadata.resourceVersion")],
        ),
    ),
    Row(
        name="a lease that does not exist is not found",
        method="GET",
        path=f"{LEASES}/l",
        status=404,
        answer=failure("NotFound", 'leases.coordination.k8s.io "l" not found', group="coordination.k8s.io"),
    ),
    put_lease(
        name="an object put under another name is refused",
        body={"metadata": {"name": "m", "resourceVersion": "$l_version"}},
        status=400,
        answer=failure("BadRequest", "the name of the object (m) does not match the name on the URL (l)"),
    ),
    post(
        name="what is allowed is reviewed as such",
        path=REVIEWS,
        body={
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "eviction"}},
        },
        status=201,
        answer={"kind": "SelfSubjectAccessReview", "status": {"allowed": True}},
    ),
    Row(
        name="an unknown resource is not found",
        method="GET",
        path="/api/v1/nothings",
        status=404,
        answer=failure("NotFound", "the server could not find the requested resource"),
    ),
    Row(
        name="an unknown group is not found in plain text",
        method="GET",
        path="/apis/example.com/v1/nothings",
        status=404,
        answer="404 page not found\n",
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
    Row(name="the server is ready", method="GET", path="/readyz", status=200, answer="ok"),
    Row(
        name="the server says its version",
        method="GET",
        path="/version",
        status=200,
        answer={"major": "1", "minor": "36"},
    ),
]


@pytest.mark.parametrize("row", INVALID, ids=lambda row: row.name)
async def test_what_is_invalid_is_refused_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
async def test_any_other_call_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


async def test_an_event_is_counted_up_by_a_patch(world: World) -> None:
    await world.kube.create("events", world.fill(event()))

    patch = {"count": 2, "lastTimestamp": "2026-01-02T03:05:00Z"}
    found = await world.kube.patch("events", world.namespace, "e", patch)

    assert (found["count"], found["firstTimestamp"], found["lastTimestamp"]) == (2, HEARTBEAT, "2026-01-02T03:05:00Z")


async def test_an_event_about_a_node_belongs_into_the_default_namespace(world: World) -> None:
    name = f"event-{world.node}"
    body = event(involvedObject={"kind": "Node", "name": world.node}, metadata={"name": name, "namespace": "default"})

    created = await world.kube.create("events", body)
    await world.kube.delete("events", "default", name)

    assert created["involvedObject"]["name"] == world.node
