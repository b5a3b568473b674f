"""Asking what we may do."""

import msgspec
import pytest

from taintkeeper.cluster.access import Permission, missing_permissions
from taintkeeper.cluster.client import Reply, StatusError, UnreachableError
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, reply

EVICT = Permission("create", "pods", subresource="eviction")
BUDGETS = Permission("list", "poddisruptionbudgets", group="policy")
NODES = Permission("patch", "nodes")
STATUS = Permission("patch", "nodetaintrules", group="taintkeeper.io", subresource="status")
EVERYWHERE = {"namespace": "", "name": ""}
"""The API takes what is empty for all namespaces and all objects."""

LEASE = Permission("get", "leases", group="coordination.k8s.io", namespace="home", name="lock")


def verdict(*, allowed: bool) -> Reply:
    return reply(201, {"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed, "reason": "RBAC"}})


YES, NO = verdict(allowed=True), verdict(allowed=False)


async def test_each_permission_is_asked_for_in_all_namespaces() -> None:
    api = ScriptedApi(forever=YES)
    assert await missing_permissions(api, [EVICT, BUDGETS]) == []
    assert {sent.line for sent in api.sent} == {"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"}
    assert [sent.call.body for sent in api.sent] == [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        for attributes in (
            {"verb": "create", "group": "", "resource": "pods", "subresource": "eviction", **EVERYWHERE},
            {"verb": "list", "group": "policy", "resource": "poddisruptionbudgets", "subresource": "", **EVERYWHERE},
        )
    ]


async def test_a_permission_for_one_object_is_asked_for_as_such() -> None:
    api = ScriptedApi(forever=YES)
    assert await missing_permissions(api, [LEASE]) == []
    asked = api.sent[0].call.body["spec"]["resourceAttributes"]
    assert (asked["namespace"], asked["name"]) == ("home", "lock")


@pytest.mark.reported("planetlabs/draino#104")
@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        ([YES, YES, YES], []),
        ([YES, NO, YES], [BUDGETS]),
        ([NO, NO, NO], [EVICT, BUDGETS, NODES]),
        ([reply(201, {"status": {}}), YES, YES], [EVICT]),
    ],
    ids=["none missing", "one missing", "all missing", "no verdict is a no"],
)
async def test_what_is_not_granted_is_missing(answers: list[Answer], missing: list[Permission]) -> None:
    assert await missing_permissions(ScriptedApi(*answers), [EVICT, BUDGETS, NODES]) == missing


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (LOST, UnreachableError),
        (reply(401), StatusError),
        (reply(500), StatusError),
        (Reply(200, b"<html>", {}), msgspec.DecodeError),
        (reply(200, {"kind": "Status"}), msgspec.DecodeError),
    ],
    ids=["nobody answers", "401", "500", "a proxy's page", "no review"],
)
async def test_a_server_that_gives_no_verdict_is_an_error(answer: Answer, error: type[Exception]) -> None:
    with pytest.raises(error):
        await missing_permissions(ScriptedApi(answer), [EVICT])


@pytest.mark.parametrize(
    ("permission", "text"),
    [
        (NODES, "patch nodes"),
        (EVICT, "create pods/eviction"),
        (BUDGETS, "list poddisruptionbudgets.policy"),
        (STATUS, "patch nodetaintrules.taintkeeper.io/status"),
        (LEASE, "get leases.coordination.k8s.io named lock in namespace home"),
    ],
    ids=str,
)
def test_permissions_are_spelled_as_for_kubectl(permission: Permission, text: str) -> None:
    assert str(permission) == text
