"""Kubernetes events: what they say, and when they are the same event again."""

import asyncio
import re

import pytest

from taintkeeper.cluster.events import Notice, Subject
from tests.unit.cluster.event_bench import BLOCKED, CREATED, EVICTED, POD, TAINTED, at_work
from tests.unit.cluster.scripted_api import LOST, Answer, Late, reply

pytestmark = pytest.mark.looptime


async def test_an_event_says_what_happened_to_what_and_when() -> None:
    async with at_work() as bench:
        await asyncio.sleep(5.0)
        bench.sink.send(EVICTED)
        await asyncio.sleep(1.0)
    body = bench.body()
    name = body["metadata"].pop("name")
    assert name.startswith("p1.")
    assert len(name) == len("p1.") + 16
    assert bench.api.sent[0].line == "POST /api/v1/namespaces/default/events"
    assert body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p1", "uid": "p1-uid", "namespace": "default"},
        "type": "Normal",
        "reason": "TaintManagerEviction",
        "message": "Marking for deletion Pod default/p1",
        "source": {"component": "taintkeeper"},
        "reportingComponent": "taintkeeper",
        "reportingInstance": "",
        "firstTimestamp": "2026-01-01T00:00:05Z",
        "lastTimestamp": "2026-01-01T00:00:05Z",
        "count": 1,
    }


async def test_events_about_nodes_are_kept_where_kubectl_looks_for_them() -> None:
    async with at_work() as bench:
        bench.sink.send(TAINTED)
        await asyncio.sleep(1.0)
    assert bench.api.sent[0].line == "POST /api/v1/namespaces/default/events"
    assert bench.body()["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1-uid"}


@pytest.mark.reported("kubernetes/kubernetes#19562")
async def test_the_same_event_again_within_a_minute_makes_no_call_and_afterwards_counts() -> None:
    async with at_work() as bench:
        for second in (0.0, 1.0, 59.0, 60.0, 119.0, 120.5):
            await asyncio.sleep(second - asyncio.get_running_loop().time())
            bench.sink.send(BLOCKED)
        await asyncio.sleep(1.0)
    assert bench.calls() == ["POST", "PATCH", "PATCH"]
    name = bench.body(0)["metadata"]["name"]
    assert [sent.line for sent in bench.api.sent[1:]] == [f"PATCH /api/v1/namespaces/default/events/{name}"] * 2
    assert bench.api.sent[1].call.content_type == "application/merge-patch+json"
    assert bench.body(1) == {"count": 4, "lastTimestamp": "2026-01-01T00:01:00Z"}
    assert bench.body(2) == {"count": 6, "lastTimestamp": "2026-01-01T00:02:00Z"}
    assert bench.dropped == 0


@pytest.mark.reported("aws/karpenter-provider-aws#1414")
async def test_an_hour_of_the_same_event_is_one_event_that_counts() -> None:
    async with at_work() as bench:
        for _ in range(720):
            bench.sink.send(BLOCKED)
            await asyncio.sleep(5.0)
    assert bench.calls() == ["POST", *["PATCH"] * 59]
    assert bench.body()["count"] == 709


async def test_events_that_differ_in_anything_are_different_events() -> None:
    async with at_work() as bench:
        for notice in (EVICTED, BLOCKED, TAINTED, EVICTED):
            bench.sink.send(notice)
        await asyncio.sleep(1.0)
    assert [bench.body(index)["reason"] for index in range(3)] == [
        "TaintManagerEviction",
        "EvictionBlocked",
        "TaintAdded",
    ]
    assert bench.calls() == ["POST"] * 3


@pytest.mark.parametrize("status", [404, 410, 403, 500])
async def test_an_event_that_cannot_be_counted_up_begins_anew(status: int) -> None:
    async with at_work(CREATED, reply(status)) as bench:
        for _ in range(3):
            bench.sink.send(BLOCKED)
            await asyncio.sleep(61.0)
    assert bench.calls() == ["POST", "PATCH", "POST"]
    assert bench.dropped == 1
    assert bench.body(0)["metadata"]["name"] != bench.body(2)["metadata"]["name"]
    assert bench.body(2)["count"] == 1


@pytest.mark.parametrize(
    "failure", [LOST, reply(403), reply(409), reply(429), reply(500), Late(30.0, LOST)], ids=lambda each: str(each)[:20]
)
async def test_an_event_that_cannot_be_sent_is_dropped_and_counted_and_the_next_ones_are_sent(failure: Answer) -> None:
    async with at_work(failure) as bench:
        bench.sink.send(BLOCKED)
        bench.sink.send(EVICTED)
        await asyncio.sleep(31.0)
        assert (bench.calls(), bench.dropped) == (["POST", "POST"], 1)
        assert bench.body()["reason"] == "TaintManagerEviction"


async def test_an_event_that_was_not_created_since_nobody_answered_is_created_the_next_time() -> None:
    async with at_work(LOST) as bench:
        bench.sink.send(BLOCKED)
        await asyncio.sleep(61.0)
        bench.sink.send(BLOCKED)
        await asyncio.sleep(1.0)
    assert bench.calls() == ["POST", "POST"]
    assert (bench.body()["count"], bench.dropped) == (2, 1)
    assert bench.body()["firstTimestamp"] == "2026-01-01T00:00:00Z"


async def test_an_event_in_the_servers_own_words_is_the_same_event_whatever_these_are() -> None:
    async with at_work() as bench:
        for words in ("request 1 failed", "request 2 failed", "request 2 failed"):
            bench.sink.send(Notice(POD, "Warning", "EvictionFailed", words, key="transient"))
            await asyncio.sleep(61.0)
        bench.sink.send(Notice(POD, "Warning", "EvictionFailed", "no", key="forbidden"))
        await asyncio.sleep(1.0)
    assert bench.calls() == ["POST", "PATCH", "PATCH", "POST"]
    assert (bench.body(0)["message"], bench.body(0)["count"]) == ("request 1 failed", 1)
    assert (bench.body(1)["message"], bench.body(1)["count"]) == ("request 2 failed", 2)
    assert (bench.body(2).keys(), bench.body(2)["count"]) == ({"count", "lastTimestamp"}, 3)


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="just short enough"),
        pytest.param("x" * 1025, "x" * 1021 + "...", id="one too many"),
        pytest.param("\u00e4" * 512, "\u00e4" * 512, id="bytes count"),
        pytest.param("\u00e4" * 513, "\u00e4" * 510 + "...", id="never half a character"),
        pytest.param("x" + "\U0001f600" * 300, "x" + "\U0001f600" * 255 + "...", id="none of any length"),
    ],
)
async def test_a_message_is_no_longer_than_events_may_hold(message: str, sent: str) -> None:
    async with at_work() as bench:
        for _ in range(2):
            bench.sink.send(Notice(POD, "Normal", "Test", message))
            await asyncio.sleep(61.0)
    assert bench.body(0)["message"] == sent
    assert len(sent.encode()) <= 1024
    assert "message" not in bench.body(1)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("p" * 236, "p" * 236),
        ("p" * 237, "p" * 236),
        ("p" * 253, "p" * 236),
        ("p" * 235 + ".example", "p" * 235),
        ("p" * 234 + "--example", "p" * 234),
    ],
    ids=["fits", "too long by one", "as long as can be", "cut at a dot", "cut at a hyphen"],
)
async def test_an_event_about_an_object_with_a_long_name_has_a_name_no_longer_than_names_may_be(
    name: str, begins: str
) -> None:
    async with at_work() as bench:
        bench.sink.send(Notice(Subject("Pod", name, "uid", "default"), "Normal", "Test", "text"))
        await asyncio.sleep(1.0)
    body = bench.body()
    assert re.fullmatch(rf"{re.escape(begins)}\.[0-9a-f]{{16}}", body["metadata"]["name"])
    assert body["involvedObject"]["name"] == name
