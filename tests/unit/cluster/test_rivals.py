"""Watching the events of kube-controller-manager's controllers, as kube-controller-manager 1.36.3 sends them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import aiohttp
import pytest

from taintkeeper.cluster.client import Call
from taintkeeper.cluster.rivals import SignWatch, TaintWrites
from tests.unit.cluster.scripted_api import (
    IDLE,
    LOST,
    Answer,
    ScriptedApi,
    Sent,
    Stream,
    bookmark,
    error,
    line,
    page,
    reply,
)

pytestmark = pytest.mark.looptime

HOUR = 3600.0
SELECTOR = "reportingComponent=taint-eviction-controller"


def eviction(version: int, message: str = "Marking for deletion Pod default/p0") -> dict[str, Any]:
    """Return an event of the taint-eviction-controller; it knows no UID of the pod."""
    return {
        "metadata": {
            "name": "p0.18ed07307cad3238",
            "namespace": "default",
            "uid": "4a0612e3-bb08-44dc-8bb8-31ae8018ba66",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-12-01T04:35:31Z",
        },
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p0", "apiVersion": "v1"},
        "reason": "TaintManagerEviction",
        "message": message,
        "source": {"component": "taint-eviction-controller"},
        "firstTimestamp": "2026-12-01T04:35:31Z",
        "lastTimestamp": "2026-12-01T04:35:31Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "taint-eviction-controller",
        "reportingInstance": "",
    }


def node_not_ready(version: int, count: int = 1) -> dict[str, Any]:
    """Return an event of the node-lifecycle-controller, which calls itself node-controller."""
    return {
        "metadata": {"name": "node-1.18ed0731a372e42e", "namespace": "default", "resourceVersion": str(version)},
        "involvedObject": {
            "kind": "Node",
            "name": "node-1",
            "uid": "588a9b96-06d8-4657-8bf7-d8cf2d9f72ad",
            "apiVersion": "v1",
        },
        "reason": "NodeNotReady",
        "message": "Node node-1 status is now: NodeNotReady",
        "source": {"component": "node-controller"},
        "firstTimestamp": "2026-12-01T04:35:36Z",
        "lastTimestamp": "2026-12-01T04:35:57Z",
        "count": count,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "node-controller",
        "reportingInstance": "",
    }


class LinesApi(ScriptedApi):
    """A scripted API server whose streams are read line by line."""

    @asynccontextmanager
    async def stream(self, call: Call, *, silence_seconds: float) -> AsyncIterator[aiohttp.ClientResponse]:
        async with super().stream(call, silence_seconds=silence_seconds) as response:
            yield cast("aiohttp.ClientResponse", _Lines(response.content.iter_any()))


@dataclass
class _Lines:
    content: AsyncIterator[bytes]


@dataclass
class Bench:
    """A watch that ran for some time, and what it told."""

    api: ScriptedApi
    seen: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def requests(self) -> list[tuple[str, str | None]]:
        """What was asked for: the verb, and from where in the history."""
        return [(sent.call.verb, sent.params.get("resourceVersion")) for sent in self.api.sent]


async def follow(*script: Answer, seconds: float = HOUR, forever: Answer = IDLE) -> Bench:
    bench = Bench(LinesApi(*script, forever=forever))
    component = "taint-eviction-controller"
    watch = SignWatch(bench.api, component, Random(1), seen=bench.seen.append, failed=bench.failed.append)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await watch.run()
    return bench


def only_this_component(sent: Sent) -> bool:
    return sent.line == "GET /api/v1/events" and sent.params["fieldSelector"] == SELECTOR


async def test_only_the_events_of_the_component_come_over_the_wire_and_none_of_the_past() -> None:
    bench = await follow(page(7, eviction(3), more="more"), Stream(60.0, line("ADDED", eviction(9)), 60.0), seconds=90)
    assert all(map(only_this_component, bench.api.sent))
    listed, watched = bench.api.sent
    assert listed.params["limit"] == "1"
    assert watched.params["watch"] == "true"
    assert watched.params["resourceVersion"] == "7"
    assert bench.seen == ["event TaintManagerEviction on Pod default/p0: Marking for deletion Pod default/p0"]


async def test_an_event_that_is_counted_again_is_a_sign_and_one_that_expires_is_none() -> None:
    changes = [line(each, node_not_ready(9, count=2)) for each in ("MODIFIED", "DELETED", "BOOKMARK")]
    bench = await follow(page(7), Stream(*changes, 60.0), seconds=30)
    assert bench.seen == ["event NodeNotReady on Node node-1: Node node-1 status is now: NodeNotReady"]


async def test_what_a_sign_says_fits_on_one_line() -> None:
    bench = await follow(page(7), Stream(line("ADDED", eviction(9, "one\n two\r\n")), 60.0), seconds=30)
    assert bench.seen == ["event TaintManagerEviction on Pod default/p0: one two"]


async def test_a_watch_ends_by_itself_and_goes_on_where_it_was() -> None:
    bench = await follow(
        page(7), Stream(line("ADDED", eviction(9)), 250.0), Stream(250.0, bookmark(12)), IDLE, seconds=900
    )
    assert bench.requests == [("list", None), ("watch", "7"), ("watch", "9"), ("watch", "12")]
    assert {sent.params["timeoutSeconds"] for sent in bench.api.sent[1:]} <= {str(n) for n in range(240, 301)}
    assert max(bench.api.pauses()) < 252.0
    assert bench.failed == []


@pytest.mark.parametrize("expired", [reply(410), Stream(error(410))], ids=["refused", "in the stream"])
async def test_where_the_history_is_forgotten_it_goes_on_with_the_present(expired: Answer) -> None:
    bench = await follow(page(7), Stream(250.0), expired, page(99), IDLE, seconds=300)
    assert bench.requests == [("list", None), ("watch", "7"), ("watch", "7"), ("list", None), ("watch", "99")]
    assert bench.failed == []


async def test_a_connection_that_is_lost_goes_on_where_it_was_and_is_told_once() -> None:
    script: list[Answer] = [
        page(7),
        Stream(line("ADDED", eviction(9)), 60.0, LOST),
        LOST,
        LOST,
        Stream(60.0, LOST),
        LOST,
        IDLE,
    ]
    bench = await follow(*script)
    assert [version for _, version in bench.requests] == [None, "7", "9", "9", "9", "9", "9"]
    assert bench.failed == ["connection lost"] * 2
    assert len(bench.seen) == 1


@pytest.mark.parametrize(
    "garbage",
    [b"<html>\n", b'{"type": "ADDED", "object": {"reason": 5}}\n', b'{"type": "ADDED"}\n', ValueError("too long")],
    ids=["no JSON", "no event", "no object", "a line without end"],
)
async def test_what_makes_no_sense_is_told_and_passed_over(garbage: bytes | Exception) -> None:
    bench = await follow(page(7), Stream(garbage), page(9), Stream(line("ADDED", eviction(12)), 60.0), seconds=30)
    assert bench.requests[-2:] == [("list", None), ("watch", "9")]
    assert len(bench.failed) == 1
    assert len(bench.seen) == 1


async def test_an_error_in_the_stream_is_told_and_is_no_sign() -> None:
    bench = await follow(page(7), Stream(error(500)), page(9), IDLE, seconds=30)
    assert bench.failed == ["500: told 500"]
    assert bench.seen == []


FAILURES: dict[str, Answer] = {
    "nobody answers": LOST,
    "forbidden": reply(403),
    "always expired": reply(410),
    "overloaded": reply(429),
    "broken": reply(500),
    "a list of nonsense": reply(200, {"kind": "Status"}),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("listed", [False, True], ids=["from the start", "after a while"])
async def test_a_lasting_failure_costs_a_growing_pause_each_time(failure: Answer, listed: bool) -> None:
    script: list[Answer] = [page(7), Stream(60.0, LOST)] if listed else []
    bench = await follow(*script, forever=failure)
    assert 40 <= len(bench.api.sent) <= 90
    assert min(bench.api.pauses()[-10:]) >= 60.0
    assert len(bench.failed) <= 1


async def test_watches_that_end_at_once_are_asked_for_ever_more_seldom() -> None:
    bench = await follow(page(7), forever=Stream())
    assert min(bench.api.pauses()[-10:]) >= 60.0
    assert bench.failed == []


async def test_a_watch_that_is_silent_for_longer_than_it_may_last_is_dead() -> None:
    bench = await follow(page(7), Stream(HOUR), IDLE, seconds=400)
    assert [verb for verb, _ in bench.requests] == ["list", "watch", "watch"]
    assert bench.failed == ["silent for 330.0 s"]


KCM, OURS = "kube-controller-manager", "taintkeeper"


def node_event(*keys: str, writer: str = "", name: str = "node-1", type_: str | None = "MODIFIED") -> dict[str, Any]:
    """Return an event of a node with these taints, written last by this manager, as 1.36.3 spells it."""
    managed = [
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-12-01T04:59:58Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {"f:status": {}}}}},
            "subresource": "status",
        },
        {
            "manager": KCM,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-12-01T04:59:58Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:node.alpha.kubernetes.io/ttl": {}}}},
        },
    ]
    if writer:
        taints: dict[str, Any] = {"f:spec": {"f:taints": {}}}
        managed.append({"manager": writer, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": taints})
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in keys]} if keys else {}
    return {"type": type_, "object": {"metadata": {"name": name, "managedFields": managed}, "spec": spec}}


def written(*events: dict[str, Any]) -> list[str]:
    seen: list[str] = []
    writes = TaintWrites(seen.append)
    for each in events:
        writes.take(each)
    return seen


def test_a_taint_that_it_adds_is_a_sign() -> None:
    assert written(node_event(type_=None), node_event("a", writer=KCM)) == [
        "kube-controller-manager changed the taints of node node-1"
    ]


def test_each_of_its_changes_is_a_sign_and_what_else_happens_to_the_node_is_none() -> None:
    a, both = node_event("a", writer=KCM), node_event("a", "b", writer=KCM)
    assert len(written(node_event(), a, a, both, both, a)) == 3


def test_taints_that_it_wrote_before_we_came_are_no_sign() -> None:
    assert written(node_event("a", writer=KCM, type_=None), node_event("a", writer=KCM)) == []


@pytest.mark.parametrize("writer", [OURS, "kubectl-taint", ""], ids=["ours", "by hand", "by nobody known"])
def test_taints_that_others_write_are_no_sign(writer: str) -> None:
    assert written(node_event("a", writer=KCM, type_=None), node_event("b", writer=writer), node_event()) == []


def test_each_node_is_looked_at_by_itself() -> None:
    assert written(node_event(), node_event("a", writer=KCM, name="node-2", type_="ADDED")) == []


def test_a_node_that_comes_again_by_the_same_name_is_another() -> None:
    assert written(node_event(), node_event(type_="DELETED"), node_event("a", writer=KCM, type_="ADDED")) == []


def test_a_node_that_says_next_to_nothing_is_no_sign() -> None:
    bare = {"type": "MODIFIED", "object": {"metadata": {"name": "node-1"}}}
    assert written(node_event("a", writer=KCM), bare, node_event("a", writer=OURS)) == []
