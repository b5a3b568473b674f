"""The Lease that decides who leads, read and written."""

import re
from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.client import MERGE_PATCH, Reply, StatusError, UnreachableError
from taintkeeper.cluster.lease_lock import LeaseLock, decode_record, lock_permissions
from taintkeeper.core.election import Claim, Record, Terms
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, reply

TERMS = Terms("us_1", lease_seconds=15, renew_seconds=10.0, retry_seconds=2.0)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/home/leases"
MICROTIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def lease(**spec: Any) -> dict[str, Any]:
    return {"kind": "Lease", "metadata": {"name": "lock", "uid": "u1", "resourceVersion": "7"}, "spec": spec}


OURS = reply(200, lease(holderIdentity="us_1", leaseDurationSeconds=15, leaseTransitions=2))
THEIRS = reply(200, lease(holderIdentity="them_1", leaseDurationSeconds=15, leaseTransitions=2))
MISSING = reply(404, {"kind": "Status", "reason": "NotFound", "code": 404})


def lock(*script: Answer) -> tuple[LeaseLock, ScriptedApi]:
    api = ScriptedApi(*script)
    return LeaseLock(api, "home", "lock", TERMS), api


def times(spec: dict[str, Any]) -> set[str]:
    """Take the times out of a spec; return the names of those that are right."""
    return {name for name in ("acquireTime", "renewTime") if MICROTIME.fullmatch(spec.pop(name, ""))}


@pytest.mark.parametrize(
    ("spec", "record"),
    [
        (
            {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2, "renewTime": "nonsense"},
            Record("u1", "7", "a", 15.0, 2),
        ),
        ({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 2}, Record("u1", "7", "", 1.0, 2)),
        ({}, Record("u1", "7", "", None, 0)),
        ({"holderIdentity": None, "strategy": "OldestEmulationVersion"}, Record("u1", "7", "", None, 0)),
    ],
    ids=["held", "given back", "empty", "of a coordinated election"],
)
def test_a_lease_is_read_whatever_it_leaves_out(spec: dict[str, Any], record: Record) -> None:
    assert decode_record(msgspec.json.encode(lease(**spec))) == record


async def test_it_is_read_from_the_store() -> None:
    candidate, api = lock(THEIRS)
    assert await candidate.look() == Record("u1", "7", "them_1", 15.0, 2)
    assert [(sent.line, sent.params) for sent in api.sent] == [(f"GET {LEASES}/lock", {})]


async def test_that_there_is_no_lease_is_an_answer() -> None:
    candidate, _ = lock(MISSING)
    assert await candidate.look() is None


async def test_who_creates_the_lease_begins_a_term() -> None:
    candidate, api = lock(OURS)
    assert await candidate.claim(Claim(None, begins=True, transitions=0)) == Record("u1", "7", "us_1", 15.0, 2)
    (sent,) = api.sent
    assert sent.line == f"POST {LEASES}"
    body = sent.call.body
    assert body["metadata"] == {"name": "lock", "namespace": "home"}
    assert times(body["spec"]) == {"acquireTime", "renewTime"}
    assert body["spec"] == {"holderIdentity": "us_1", "leaseDurationSeconds": 15, "leaseTransitions": 0}


@pytest.mark.parametrize("begins", [True, False], ids=["taken", "renewed"])
async def test_the_lease_is_written_at_the_version_that_was_seen(begins: bool) -> None:
    candidate, api = lock(OURS)
    await candidate.claim(Claim("7", begins=begins, transitions=3))
    (sent,) = api.sent
    assert (sent.line, sent.call.content_type) == (f"PATCH {LEASES}/lock", MERGE_PATCH)
    assert sent.call.body["metadata"] == {"resourceVersion": "7"}
    spec = sent.call.body["spec"]
    assert times(spec) == ({"acquireTime", "renewTime"} if begins else {"renewTime"})
    assert spec == {"holderIdentity": "us_1", "leaseDurationSeconds": 15, "leaseTransitions": 3}


async def test_who_gives_it_back_leaves_a_lease_without_a_holder() -> None:
    candidate, api = lock(OURS, OURS)
    await candidate.release()
    body = api.sent[1].call.body
    assert body["metadata"] == {"resourceVersion": "7"}
    assert times(body["spec"]) == {"acquireTime", "renewTime"}
    assert body["spec"] == {"holderIdentity": "", "leaseDurationSeconds": 1}


@pytest.mark.parametrize("answer", [THEIRS, MISSING], ids=["somebody else's", "deleted"])
async def test_a_lease_that_is_not_ours_is_not_given_back(answer: Answer) -> None:
    candidate, api = lock(answer)
    await candidate.release()
    assert [sent.call.method for sent in api.sent] == ["GET"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (LOST, UnreachableError),
        (reply(409), StatusError),
        (reply(403), StatusError),
        (reply(500), StatusError),
        (Reply(404, b"<html>", {}), StatusError),
        (Reply(200, b"<html>", {}), msgspec.DecodeError),
    ],
    ids=["no answer", "409", "403", "500", "a proxy knows of no such path", "a proxy's page"],
)
async def test_what_is_no_answer_about_the_lease_is_an_error(answer: Answer, error: type[Exception]) -> None:
    candidate, _ = lock(answer, answer)
    with pytest.raises(error):
        await candidate.look()
    with pytest.raises(error):
        await candidate.claim(Claim("7", begins=False, transitions=0))


def test_it_needs_no_more_than_its_one_lease() -> None:
    assert list(map(str, lock_permissions("home", "lock"))) == [
        "create leases.coordination.k8s.io in namespace home",
        "get leases.coordination.k8s.io named lock in namespace home",
        "patch leases.coordination.k8s.io named lock in namespace home",
    ]
