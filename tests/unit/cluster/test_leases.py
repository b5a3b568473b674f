"""Leases as they are watched, and as they are read before a node is declared Unknown."""

from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.leases import LEASES, decode_lease, read_lease
from taintkeeper.core.health import Lease
from taintkeeper.core.health_messages import LeaseRead, ReadResult
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import LOST, ScriptedApi, reply

RENEWED = "2026-01-01T00:00:10.123456Z"


def lease(name: str = "n1", **spec: Any) -> dict[str, Any]:
    metadata = wires.metadata(name, namespace="kube-node-lease")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, **spec}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "renewed"),
    [
        ({"renewTime": RENEWED}, RENEWED),
        ({"renewTime": "10000-01-01T00:00:00.000000Z"}, "10000-01-01T00:00:00.000000Z"),
        ({"renewTime": None}, ""),
        ({}, ""),
    ],
    ids=str,
)
def test_the_time_of_a_lease_is_kept_as_it_is_spelt(spec: dict[str, Any], renewed: str) -> None:
    assert decode_lease(msgspec.json.encode(lease(**spec))) == Lease("n1", renewed)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"metadata": {}}'], ids=str)
def test_what_is_no_lease_is_not_taken_for_one(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_lease(body)


def test_only_the_leases_of_nodes_are_watched() -> None:
    assert LEASES.path == "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    assert LEASES.key(Lease("n1", RENEWED)) == "n1"


async def test_a_lease_is_read_from_the_store_itself() -> None:
    api = ScriptedApi(reply(200, lease(renewTime=RENEWED)))
    assert await read_lease(api, "n1") == LeaseRead("n1", ReadResult.FOUND, RENEWED)
    (sent,) = api.sent
    assert sent.line == f"GET {LEASES.path}/n1"
    assert sent.params == {}, "with a resourceVersion the answer might be an old one"
    assert (sent.call.verb, sent.call.resource) == ("get", "leases")


async def test_a_lease_that_is_not_there_is_missing() -> None:
    body = {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'leases "n1" not found'}
    read = await read_lease(ScriptedApi(reply(404, body)), "n1")
    assert read == LeaseRead("n1", ReadResult.MISSING, detail='404: leases "n1" not found')


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (LOST, "connection lost"),
        (reply(500), "500: answered 500"),
        (reply(503), "503: answered 503"),
        (reply(403), "403: answered 403"),
        (reply(429), "429: answered 429"),
        (reply(404), "404: answered 404"),
        (Reply(404, b"<html>no such host</html>", {}), "404: <html>no such host</html>"),
        (Reply(200, b"<html>welcome</html>", {}), "JSON is malformed"),
    ],
    ids=str,
)
async def test_every_other_answer_tells_nothing(answer: Reply | Exception, detail: str) -> None:
    read = await read_lease(ScriptedApi(answer), "n1")
    assert (read.node, read.result, read.renewed) == ("n1", ReadResult.FAILED, "")
    assert read.detail.startswith(detail)
