"""The Eviction API: the embedded server answers what a real one does, case by case."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from testbed.client import Kube
from tests.cluster.conformance import (
    ABSENT,
    POD,
    Row,
    Step,
    World,
    cause,
    check,
    failure,
    is_gone,
    is_untouched,
    pod,
    terminating_pod,
)

EVICTION = f"{POD}/eviction"
OVER_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


def body(**options: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "$ns"}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}


def pod_and_budget(*, settled: bool = True, pod: dict[str, Any] | None = None, **spec: Any) -> Step:
    async def given(world: World) -> None:
        await world.pod(**(pod or {}))
        await world.budget(settled=settled, **spec)

    return given


async def two_budgets(world: World) -> None:
    await world.pod()
    await world.budget("b1", minAvailable=0)
    await world.budget("b2", minAvailable=0)


async def unobserved_budget(world: World) -> None:
    """The owner has no replicas to count, so the status of the budget is never computed."""
    lease = await world.kube.create("leases", {"metadata": {"name": "l", "namespace": world.namespace}})
    owner = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "l", "controller": True}
    await world.pod(ownerReferences=[{**owner, "uid": lease["metadata"]["uid"]}])
    await world.budget(settled=False, maxUnavailable=1)


async def terminating_namespace(world: World) -> None:
    await world.pod(finalizers=["example.com/held"])
    await world.kube.delete("namespaces", "", world.namespace)


async def is_leaving(world: World) -> None:
    found = await world.kube.get("pods", world.namespace, "p")
    assert found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    assert found["metadata"]["generation"] == 2
    mark = next(each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert mark["status"] == "True"
    assert mark["reason"] == "EvictionByEvictionAPI"
    assert mark["message"] == "Eviction API: evicting"
    assert mark["lastTransitionTime"]


async def disruption_was_counted(world: World) -> None:
    await is_leaving(world)
    budget = await world.kube.get("poddisruptionbudgets", world.namespace, "b")
    assert budget["status"]["disruptionsAllowed"] == 0


async def is_gone_and_budget_untouched(world: World) -> None:
    await is_gone(world)
    budget = await world.kube.get("poddisruptionbudgets", world.namespace, "b")
    assert not budget["status"].get("disruptedPods")


def over_budget(text: str, **details: Any) -> dict[str, Any]:
    causes = [{"reason": "DisruptionBudget", "message": text}]
    return failure("TooManyRequests", OVER_BUDGET, causes=causes, **{"retryAfterSeconds": ABSENT, **details})


async def is_untouched_and_no_disruption_counted(world: World) -> None:
    await is_untouched(world)
    budget = await world.kube.get("poddisruptionbudgets", world.namespace, "b")
    assert budget["status"]["disruptionsAllowed"] == 1
    assert not budget["status"].get("disruptedPods")


UNREADY = {"ready": False}
ACCEPTED = {"kind": "Status", "apiVersion": "v1", "status": "Success", "reason": ABSENT, "code": 201}
NEEDS_ONE = over_budget("The disruption budget b needs 1 healthy pods and has 1 currently")

accepted = partial(Row, method="POST", path=EVICTION, body=body(), status=201, answer=ACCEPTED)
refused = partial(Row, method="POST", path=EVICTION, body=body())
conflict = partial(failure, "Conflict", name="p", kind="Pod", causes=ABSENT)

EVICTIONS = [
    accepted(
        name="a running pod is accepted, marked and starts to leave",
        given=pod(),
        then=is_leaving,
    ),
    accepted(
        name="a pod that is already leaving is accepted again",
        given=terminating_pod,
        then=is_leaving,
    ),
    accepted(
        name="a matching UID precondition is accepted",
        given=pod(),
        body=body(preconditions={"uid": "$p_uid"}),
        then=is_leaving,
    ),
    accepted(
        name="a body without delete options is accepted",
        given=pod(),
        body={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}},
        then=is_leaving,
    ),
    accepted(
        name="the older version of an eviction is accepted",
        given=pod(),
        body={**body(), "apiVersion": "policy/v1beta1"},
        then=is_leaving,
    ),
    accepted(
        name="an eviction that does not say what it is is accepted",
        given=pod(),
        body={"metadata": {"name": "p"}},
        then=is_leaving,
    ),
    refused(
        name="a version of an eviction that does not exist is a bad request",
        given=pod(),
        body={**body(), "apiVersion": "policy/v2"},
        status=400,
        answer=failure(
            "BadRequest",
            'Eviction in version "v2" cannot be handled as a Eviction: '
            'no kind "Eviction" is registered for version "policy/v2" in scheme "pkg/runtime/scheme.go:111"',
        ),
        then=is_untouched,
    ),
    refused(
        name="something else than an eviction is a bad request",
        given=pod(),
        body={**body(), "kind": "Nonsense"},
        status=400,
        answer=failure(
            "BadRequest",
            'Nonsense in version "v1" cannot be handled as a Eviction: '
            'no kind "Nonsense" is registered for version "policy/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        then=is_untouched,
    ),
    refused(
        name="a pod that does not exist is not found",
        status=404,
        answer=failure("NotFound", 'pods "p" not found', name="p", kind="pods"),
    ),
    refused(
        name="a pod of another UID is a conflict",
        given=pod(),
        body=body(preconditions={"uid": "another"}),
        status=409,
        answer=conflict(
            message='Operation cannot be fulfilled on Pod "p": the UID in the precondition (another) does not match '
            "the UID in record ($p_uid). The object might have been deleted and then recreated",
        ),
        then=is_untouched,
    ),
    accepted(
        name="a resourceVersion precondition that holds is accepted",
        given=pod(),
        body=body(preconditions={"resourceVersion": "$p_version"}),
        then=is_leaving,
    ),
    refused(
        name="a resourceVersion precondition that does not hold is a conflict",
        given=pod(),
        body=body(preconditions={"resourceVersion": "1"}),
        status=409,
        answer=conflict(
            message='Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition (1) does '
            "not match the ResourceVersion in record ($p_version). The object might have been modified",
        ),
        then=is_untouched,
    ),
    accepted(
        name="no grace period means gone at once",
        given=pod(),
        body=body(gracePeriodSeconds=0),
        then=is_gone,
    ),
    accepted(
        name="a pod without a node is gone at once",
        given=pod(bound=False),
        then=is_gone,
    ),
    accepted(
        name="a dry run is accepted and leaves the pod and its budget as they are",
        given=pod_and_budget(minAvailable=0),
        body=body(dryRun=["All"]),
        then=is_untouched_and_no_disruption_counted,
    ),
    refused(
        name="a dry run is refused by a closed budget",
        given=pod_and_budget(minAvailable=1),
        body=body(dryRun=["All"]),
        status=429,
        answer={**NEEDS_ONE, "code": 429},
        then=is_untouched,
    ),
    refused(
        name="a dry run for a pod of another UID is a conflict",
        given=pod(),
        body=body(dryRun=["All"], preconditions={"uid": "another"}),
        status=409,
        answer=failure("Conflict"),
        then=is_untouched,
    ),
    refused(
        name="a closed budget refuses and says so",
        given=pod_and_budget(minAvailable=1),
        status=429,
        answer={**NEEDS_ONE, "code": 429},
        headers={"Retry-After": ABSENT},
        then=is_untouched,
    ),
    refused(
        name="a percentage of pods without an owner is nothing, and refuses",
        given=pod_and_budget(maxUnavailable="50%"),
        status=429,
        answer=over_budget("The disruption budget b does not allow evicting pods currently"),
        then=is_untouched,
    ),
    refused(
        name="a budget that no controller has looked at refuses",
        given=unobserved_budget,
        status=429,
        answer=over_budget("The disruption budget b is still being processed by the server.", retryAfterSeconds=10),
        headers={"Retry-After": "10"},
        then=is_untouched,
    ),
    accepted(
        name="an open budget accepts and counts the disruption",
        given=pod_and_budget(minAvailable=0),
        then=disruption_was_counted,
    ),
    accepted(
        name="an unready pod passes a closed budget that always allows those",
        given=pod_and_budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow", pod=UNREADY),
        then=is_leaving,
    ),
    refused(
        name="an unready pod is refused while too few are healthy",
        given=pod_and_budget(minAvailable=1, unhealthyPodEvictionPolicy="IfHealthyBudget", pod=UNREADY),
        status=429,
        answer=over_budget("The disruption budget b needs 1 healthy pods and has 0 currently"),
        then=is_untouched,
    ),
    refused(
        name="two budgets are an error without reason and causes",
        given=two_budgets,
        status=500,
        answer={
            "status": "Failure",
            "message": "This pod has more than one PodDisruptionBudget, "
            "which the eviction subresource does not support.",
            "reason": ABSENT,
            "details": ABSENT,
            "code": 500,
        },
        then=is_untouched,
    ),
    accepted(
        name="a finished pod goes whatever its budget says",
        given=pod_and_budget(minAvailable=1, settled=False, pod={"phase": "Succeeded", "ready": False}),
        then=is_gone_and_budget_untouched,
    ),
    accepted(
        name="a pending pod goes whatever its budget says",
        given=pod_and_budget(minAvailable=1, pod={"phase": "Pending", "ready": False}),
        then=is_leaving,
    ),
    refused(
        name="a namespace that is being deleted forbids it",
        given=terminating_namespace,
        status=403,
        answer=failure(
            "Forbidden",
            'pods "p" is forbidden: unable to create new content in namespace $ns because it is being terminated',
            name="p",
            kind="pods",
            causes=[cause("NamespaceTerminating", "metadata.namespace", "namespace $ns is being terminated")],
        ),
    ),
    refused(
        name="a body that names another pod is a bad request",
        given=pod(),
        body={**body(), "metadata": {"name": "q", "namespace": "$ns"}},
        status=400,
        answer=failure("BadRequest", "name in URL does not match name in Eviction object"),
        then=is_untouched,
    ),
    refused(
        name="a body that names no pod is a bad request",
        given=pod(),
        body={},
        status=400,
        answer=failure("BadRequest", "name in URL does not match name in Eviction object"),
        then=is_untouched,
    ),
    refused(
        name="a namespace that does not exist is not found",
        path="/api/v1/namespaces/$none/pods/p/eviction",
        body={"metadata": {"name": "p"}},
        status=404,
        answer=failure("NotFound", 'namespaces "$none" not found', name="$none", kind="namespaces"),
    ),
    refused(
        name="a body that names another namespace is a bad request",
        given=pod(),
        body={"metadata": {"name": "p", "namespace": "$none"}},
        status=400,
        answer=failure(
            "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"
        ),
        then=is_untouched,
    ),
    Row(
        name="the subresource cannot be read",
        given=pod(),
        method="GET",
        path=EVICTION,
        status=405,
        answer=failure("MethodNotAllowed"),
    ),
]


@pytest.mark.parametrize("row", EVICTIONS, ids=lambda row: row.name)
async def test_an_eviction_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)
