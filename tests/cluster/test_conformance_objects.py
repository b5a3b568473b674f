"""Leases, events, budgets and reviews: the embedded server answers what a real one does, call by call."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from testbed.client import Kube
from tests.cluster.conformance import ABSENT, NULL, Row, World, cause, check, failure

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


post = partial(Row, method="POST")
refused = partial(Row, method="POST", status=422)
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
]

CALLS = [
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
async def test_an_invalid_object_is_refused_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.name)
async def test_a_call_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


async def test_an_event_is_counted_up_by_a_patch(world: World) -> None:
    await world.kube.create("events", world.fill(event()))

    patch = {"count": 2, "lastTimestamp": "2026-01-02T03:05:00Z", "message": "in other words"}
    found = await world.kube.patch("events", world.namespace, "e", patch)

    assert found["message"] == "in other words"
    assert (found["count"], found["firstTimestamp"], found["lastTimestamp"]) == (2, HEARTBEAT, "2026-01-02T03:05:00Z")


async def test_an_event_about_a_node_belongs_into_the_default_namespace(world: World) -> None:
    name = f"event-{world.node}"
    body = event(involvedObject={"kind": "Node", "name": world.node}, metadata={"name": name, "namespace": "default"})

    created = await world.kube.create("events", body)
    await world.kube.delete("events", "default", name)

    assert created["involvedObject"]["name"] == world.node
