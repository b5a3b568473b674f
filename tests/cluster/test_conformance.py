"""Writes of every kind the operator makes, and what is refused: the embedded server answers what a real one does."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from testbed import Cluster
from testbed.client import Kube
from tests.cluster.conformance import ABSENT, JSON_PATCH, MERGE, NULL, STRATEGIC, Row, World, cause, check, failure

NODE = "/api/v1/nodes/$node"
NOBODY = "/api/v1/nodes/$none"
POD = "/api/v1/namespaces/$ns/pods/p"
PODS = "/api/v1/namespaces/$ns/pods"
EVENTS = "/api/v1/namespaces/$ns/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
BUDGETS = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
TAINT = {"key": "example.com/a", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
TWICE = 2
"""The API looks at a changed node as at a new one and as at a changed one, and lists causes from both."""

HEARTBEAT = "2026-01-02T03:04:05Z"


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with Kube(cluster.kubeconfig) as kube:
        made = World(kube)
        await made.open()
        yield made
        await made.close()


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


async def nothing_was_created(world: World) -> None:
    assert (await world.kube.request("GET", world.fill(POD))).status == 404


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
    Row(
        name="taints and the version they are based on go in one merge patch",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"metadata": {"resourceVersion": "$node_version"}, "spec": {"taints": [NOT_READY, TAINT]}},
        status=200,
        answer={"kind": "Node", "spec": {"taints": [NOT_READY, TAINT]}},
        then=taints_are_new,
    ),
    Row(
        name="a merge patch based on another version is a conflict",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"metadata": {"resourceVersion": "1"}, "spec": {"taints": [TAINT]}},
        status=409,
        answer=failure(
            "Conflict", f'Operation cannot be fulfilled on nodes "$node": {MODIFIED}', name="$node", kind="nodes"
        ),
        then=node_is_as_it_was,
    ),
    Row(
        name="a merge patch of another UID is invalid",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
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
        path=NOBODY,
        content_type=MERGE,
        body={"spec": {"taints": [TAINT]}},
        status=404,
        answer=failure("NotFound", 'nodes "$none" not found', name="$none", kind="nodes"),
    ),
    Row(
        name="a merge patch that changes nothing gives no new version",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
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
    Row(
        name="a JSON patch may replace a member that is missing",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
        body=[{"op": "replace", "path": "/metadata/annotations/example.com~1a", "value": "b"}],
        status=200,
        answer={"metadata": {"annotations": {"example.com/a": "b"}}},
    ),
    Row(
        name="a JSON patch may not remove a member that is missing",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
        body=[{"op": "remove", "path": "/metadata/annotations/example.com~1a"}],
        status=422,
        answer=failure("Invalid"),
    ),
    Row(
        name="a JSON patch may test that a member is missing",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
        body=[{"op": "test", "path": "/metadata/labels", "value": None}],
        status=200,
        then=node_is_as_it_was,
    ),
    Row(
        name="an empty list of taints is none",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [], "unschedulable": False}},
        status=200,
        answer={"spec": {"taints": ABSENT, "unschedulable": ABSENT}},
    ),
    Row(
        name="a patch under another name is refused",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"metadata": {"name": "other"}},
        status=400,
        answer=failure("BadRequest", "the name of the object (other) does not match the name on the URL ($node)"),
    ),
    Row(
        name="null takes taints away",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": None}},
        status=200,
        answer={"spec": {"taints": ABSENT}},
    ),
    Row(
        name="a JSON patch whose test holds is applied",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
        body=[
            {"op": "test", "path": "/spec/taints", "value": [NOT_READY]},
            {"op": "add", "path": "/spec/taints/-", "value": TAINT},
        ],
        status=200,
        answer={"spec": {"taints": [NOT_READY, TAINT]}},
        then=taints_are_new,
    ),
    Row(
        name="a JSON patch whose test fails is refused",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
        body=[
            {"op": "test", "path": "/spec/taints", "value": [TAINT]},
            {"op": "replace", "path": "/spec/taints", "value": []},
        ],
        status=422,
        answer=failure("Invalid", "the server rejected our request due to an error in our request", causes=ABSENT),
        then=node_is_as_it_was,
    ),
    Row(
        name="a JSON patch below what is missing is refused",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
        body=[{"op": "replace", "path": "/metadata/labels/example.com~1a", "value": "b"}],
        status=422,
        answer=failure("Invalid", "the server rejected our request due to an error in our request"),
    ),
    Row(
        name="a JSON patch with a test of the version is a lock",
        method="PATCH",
        path=NODE,
        content_type=JSON_PATCH,
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
    Row(
        name="the status does not change without its subresource",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
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
    Row(
        name="times are cut to seconds and turned to UTC",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
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

INVALID = [
    Row(
        name="an unknown effect of a taint",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [{"key": "a", "effect": "Nothing"}]}},
        status=422,
        answer=failure(
            "Invalid",
            'Node "$node" is invalid: metadata.taints[0].effect: Unsupported value: "Nothing": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"',
            name="$node",
            kind="Node",
            causes=[cause("FieldValueNotSupported", "metadata.taints[0].effect")] * TWICE,
        ),
        then=node_is_as_it_was,
    ),
    Row(
        name="a taint without effect",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [{"key": "a"}]}},
        status=422,
        answer=failure(
            "Invalid",
            causes=[cause("FieldValueRequired", "metadata.taints[0].effect", "Required value")] * TWICE,
        ),
    ),
    Row(
        name="the same key and effect twice",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueDuplicate", "metadata.taints[1]")] * TWICE),
    ),
    Row(
        name="a taint whose key is no name",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [{"key": "a b", "effect": "NoSchedule"}]}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "metadata.taints[0].key")] * TWICE),
    ),
    Row(
        name="a taint whose value is no label value",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "metadata.taints[0].value")] * TWICE),
    ),
    Row(
        name="a time that is none",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": [{**TAINT, "timeAdded": "yesterday"}]}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "patch")]),
        then=node_is_as_it_was,
    ),
    Row(
        name="taints that are no list",
        method="PATCH",
        path=NODE,
        content_type=MERGE,
        body={"spec": {"taints": "none"}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "patch")]),
    ),
    Row(
        name="an annotation that is no text",
        method="POST",
        path="/api/v1/nodes",
        body={"metadata": {"name": "$none", "annotations": {"a": 5}}},
        status=400,
        answer=failure("BadRequest"),
    ),
    Row(
        name="a pod without a name",
        method="POST",
        path=PODS,
        body={"metadata": {}, "spec": {"containers": container()}},
        status=422,
        answer=failure(
            "Invalid",
            'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
            kind="Pod",
            causes=[cause("FieldValueRequired", "metadata.name")],
        ),
    ),
    Row(
        name="a pod whose name cannot be",
        method="POST",
        path=PODS,
        body={"metadata": {"name": "P_1"}, "spec": {"containers": container()}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "metadata.name")]),
    ),
    Row(
        name="a pod without containers",
        method="POST",
        path=PODS,
        body={"metadata": {"name": "p"}, "spec": {}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueRequired", "spec.containers", "Required value")]),
        then=nothing_was_created,
    ),
    Row(
        name="seconds on a toleration that does not say NoExecute",
        method="POST",
        path=PODS,
        body=new_pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),
        status=422,
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
    Row(
        name="a toleration of everything that is not Exists",
        method="POST",
        path=PODS,
        body=new_pod(tolerations=[{"operator": "Equal"}]),
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "spec.tolerations[0].operator")]),
    ),
    Row(
        name="a budget with both limits",
        method="POST",
        path=BUDGETS,
        body={"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "spec")], kind="PodDisruptionBudget"),
    ),
    Row(
        name="a lease of no duration",
        method="POST",
        path=LEASES,
        body={"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
        status=422,
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
    Row(
        name="a lease renewed at a time without six decimals",
        method="POST",
        path=LEASES,
        body={"metadata": {"name": "l"}, "spec": {"renewTime": HEARTBEAT}},
        status=400,
        answer=failure("BadRequest"),
    ),
    Row(
        name="an event in another namespace than its object",
        method="POST",
        path=EVENTS,
        body=event(involvedObject={"kind": "Pod", "name": "p", "namespace": "other"}),
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "involvedObject.namespace")], kind="Event"),
    ),
    Row(
        name="an event about a node outside the default namespace",
        method="POST",
        path=EVENTS,
        body=event(involvedObject={"kind": "Node", "name": "$node"}),
        status=422,
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "involvedObject.namespace")]),
    ),
    Row(
        name="a body that is no JSON object",
        method="POST",
        path=PODS,
        body="text",
        status=400,
        answer=failure("BadRequest"),
    ),
    Row(
        name="an object of another kind",
        method="POST",
        path=PODS,
        body={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "p"}},
        status=400,
        answer=failure("BadRequest"),
    ),
]

OTHERS = [
    Row(
        name="a new pod gets the defaults that eviction depends on",
        method="POST",
        path=PODS,
        body=new_pod(),
        status=201,
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
    Row(
        name="a pod that tolerates everything gets no more tolerations",
        method="POST",
        path=PODS,
        body=new_pod(tolerations=[{"operator": "Exists"}]),
        status=201,
        answer={"spec": {"tolerations": [{"operator": "Exists"}]}},
    ),
    Row(
        name="a critical pod gets its priority from the class",
        method="POST",
        path=PODS,
        body=new_pod(priorityClassName="system-node-critical"),
        status=201,
        answer={"spec": {"priority": 2000001000}},
    ),
    Row(
        name="a pod with a priority of its own is refused",
        method="POST",
        path=PODS,
        body=new_pod(priority=7),
        status=403,
        answer=failure("Forbidden", name="p", kind="pods"),
    ),
    Row(
        name="a pod in no namespace is refused",
        method="POST",
        path="/api/v1/namespaces/$none/pods",
        body=new_pod(),
        status=404,
        answer=failure("NotFound", 'namespaces "$none" not found', name="$none", kind="namespaces"),
    ),
    Row(
        name="a pod's tolerations may get more seconds",
        given=a_pod,
        method="PATCH",
        path=POD,
        content_type=JSON_PATCH,
        body=[{"op": "replace", "path": "/spec/tolerations/0/tolerationSeconds", "value": 900}],
        status=200,
        answer={"metadata": {"generation": 2}},
    ),
    Row(
        name="a pod's tolerations may not go",
        given=a_pod,
        method="PATCH",
        path=POD,
        content_type=JSON_PATCH,
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
    Row(
        name="a pod's condition is set by type and leaves the others",
        given=a_pod,
        method="PATCH",
        path=f"{POD}/status",
        content_type=STRATEGIC,
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
    Row(
        name="a status patch of a pod with another UID is invalid",
        given=a_pod,
        method="PATCH",
        path=f"{POD}/status",
        content_type=STRATEGIC,
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
        name="an event is created",
        method="POST",
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
    Row(
        name="a lease is created with its times to the microsecond",
        method="POST",
        path=LEASES,
        body={"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-02T03:04:05.123456Z"}},
        status=201,
        answer={"kind": "Lease", "spec": {"renewTime": "2026-01-02T03:04:05.123456Z"}},
    ),
    Row(
        name="a lease that exists cannot be created",
        given=a_lease,
        method="POST",
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
    Row(
        name="a lease is put with the version it was read at",
        given=a_lease,
        method="PUT",
        path=f"{LEASES}/l",
        body={"metadata": {"name": "l", "resourceVersion": "$l_version"}, "spec": {"holderIdentity": "you"}},
        status=200,
        answer={"spec": {"holderIdentity": "you", "leaseDurationSeconds": ABSENT}},
    ),
    Row(
        name="a lease put with another version is a conflict",
        given=a_lease,
        method="PUT",
        path=f"{LEASES}/l",
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
    Row(
        name="a lease put with another UID is a conflict",
        given=a_lease,
        method="PUT",
        path=f"{LEASES}/l",
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
    Row(
        name="a lease put without a version is refused",
        given=a_lease,
        method="PUT",
        path=f"{LEASES}/l",
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
    Row(
        name="an object put under another name is refused",
        given=a_lease,
        method="PUT",
        path=f"{LEASES}/l",
        body={"metadata": {"name": "m", "resourceVersion": "$l_version"}},
        status=400,
        answer=failure("BadRequest", "the name of the object (m) does not match the name on the URL (l)"),
    ),
    Row(
        name="what is allowed is reviewed as such",
        method="POST",
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


@pytest.mark.parametrize("row", NODES, ids=lambda row: row.name)
async def test_a_call_about_a_node_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


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
