"""Custom resources: the embedded server, which knows them by heart, answers what one with a definition does."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from testbed.client import Kube, until
from tests.cluster.conformance import ABSENT, MERGE, STRATEGIC, Row, World, check, differ, failure

GROUP = "taintkeeper.io"
POLICIES = f"/apis/{GROUP}/v1alpha1/evictionpolicies"
POLICY = f"{POLICIES}/$node"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

DEFINITION = {
    "metadata": {"name": f"evictionpolicies.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "evictionpolicies", "kind": "EvictionPolicy", "listKind": "EvictionPolicyList"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
async def definition(kube: Kube) -> None:
    """The resource is served. It stays: a server takes seconds to forget one, and it is the operator's own."""
    answer = await kube.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    assert answer.status in {201, 409}

    async def served() -> bool:
        return (await kube.request("GET", POLICIES)).status == 200

    await until(served)


@pytest.fixture
async def world(kube: Kube, definition: None) -> AsyncIterator[World]:
    """A node, after which the policy of the test is named."""
    async with World(kube) as made:
        yield made
        await kube.request("DELETE", made.fill(POLICY))


def policy(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "EvictionPolicy", "metadata": {"name": "$node"}, **fields}


async def a_policy(world: World) -> None:
    body = world.fill(policy(spec={"mode": "Evict", "taints": [{"key": "a"}]}))
    world.remember("policy", await world.kube.create("evictionpolicies", body))


patch = partial(Row, given=a_policy, method="PATCH", path=POLICY, content_type=MERGE)
patch_status = partial(Row, given=a_policy, method="PATCH", path=f"{POLICY}/status", content_type=MERGE)

CALLS = [
    Row(
        name="a new one starts at generation 1 and without status",
        method="POST",
        path=POLICIES,
        body=policy(spec={"mode": "Evict", "taints": [{"key": "a"}]}, status={"pending": 1}),
        status=201,
        answer={"kind": "EvictionPolicy", "metadata": {"generation": 1}, "status": ABSENT},
    ),
    Row(
        name="a list repeats the kind of its items",
        given=a_policy,
        method="GET",
        path=POLICIES,
        status=200,
        answer={"kind": "EvictionPolicyList", "items": [{"kind": "EvictionPolicy", "metadata": {"name": "$node"}}]},
    ),
    patch(
        name="a change of the spec is a new generation",
        body={"spec": {"mode": "Delete"}},
        status=200,
        answer={"metadata": {"generation": 2}, "spec": {"mode": "Delete"}},
    ),
    patch(
        name="a change of the metadata is not",
        body={"metadata": {"labels": {"a": "b"}}},
        status=200,
        answer={"metadata": {"generation": 1, "labels": {"a": "b"}}},
    ),
    patch(
        name="the status does not change without its subresource",
        body={"status": {"pending": 1}},
        status=200,
        answer={"metadata": {"resourceVersion": "$policy_version"}, "status": ABSENT},
    ),
    patch_status(
        name="the status changes through its subresource, and nothing else does",
        body={"metadata": {"labels": {"a": "b"}}, "spec": {"mode": "Delete"}, "status": {"pending": 1}},
        status=200,
        answer={"metadata": {"generation": 1, "labels": ABSENT}, "spec": {"mode": "Evict"}, "status": {"pending": 1}},
    ),
    patch_status(
        name="the status can be based on a version",
        body={"metadata": {"resourceVersion": "1"}, "status": {"pending": 1}},
        status=409,
        answer=failure("Conflict", f'Operation cannot be fulfilled on evictionpolicies.{GROUP} "$node": {MODIFIED}'),
    ),
    patch_status(
        name="the status changes whatever UID is stated",
        body={"metadata": {"uid": "another"}, "status": {"pending": 1}},
        status=200,
        answer={"metadata": {"uid": "$policy_uid"}, "status": {"pending": 1}},
    ),
    patch(
        name="there is no strategic merge patch",
        content_type=STRATEGIC,
        body={"spec": {"mode": "Delete"}},
        status=415,
        answer=failure("UnsupportedMediaType"),
    ),
    Row(
        name="a PUT needs a version",
        given=a_policy,
        method="PUT",
        path=POLICY,
        body=policy(spec={"mode": "Delete", "taints": [{"key": "a"}]}),
        status=422,
        answer=failure("Invalid", group=GROUP, kind="evictionpolicies"),
    ),
    Row(
        name="one that does not exist is not found",
        method="GET",
        path=POLICY,
        status=404,
        answer=failure("NotFound", f'evictionpolicies.{GROUP} "$node" not found', group=GROUP, kind="evictionpolicies"),
    ),
    Row(
        name="a deletion names what is gone",
        given=a_policy,
        method="DELETE",
        path=POLICY,
        status=200,
        answer={"status": "Success", "details": {"name": "$node", "group": GROUP, "kind": "evictionpolicies"}},
    ),
    Row(
        name="discovery knows the resource and its status",
        method="GET",
        path=f"/apis/{GROUP}/v1alpha1",
        status=200,
        answer={"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1alpha1"},
    ),
]


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.name)
async def test_a_call_about_a_custom_resource_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


async def test_a_watch_from_too_long_ago_is_told_so_in_an_event(world: World) -> None:
    async with world.kube.watch(POLICIES, resourceVersion="1", timeoutSeconds="2") as events:
        seen = [event async for event in events]

    assert [event["type"] for event in seen] == ["ERROR"]
    expected = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    assert differ(expected, seen[0]["object"]) == []
    assert seen[0]["object"]["message"].startswith("too old resource version: 1 (")
