"""Kubernetes events: aggregated, bounded, and never in the way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from taintkeeper.cluster import events
from taintkeeper.cluster.events import EventSink, Notice, Subject
from tests.unit.cluster.scripted_api import LOST, Answer, Late, ScriptedApi, reply

pytestmark = pytest.mark.looptime

START = 1767225600.0
POD = Subject("Pod", "p1", "p1-uid", "default")
EVICTED = Notice(POD, "Normal", "TaintManagerEviction", "Marking for deletion Pod default/p1")
BLOCKED = Notice(POD, "Warning", "EvictionBlocked", "Eviction of pod default/p1 is blocked")
TAINTED = Notice(Subject("Node", "n1", "n1-uid"), "Normal", "TaintAdded", "Taint foo:NoSchedule added")
CREATED = reply(201, {})


@dataclass
class SinkBench:
    """A sink at work, with a switch for what is more important."""

    api: ScriptedApi
    busy: bool = False
    dropped: int = 0
    sink: EventSink = field(init=False)

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.sink = EventSink(
            self.api, lambda: START + loop.time(), Random(0), busy=lambda: self.busy, dropped=self._count
        )

    def _count(self) -> None:
        self.dropped += 1

    def calls(self) -> list[str]:
        return [sent.call.method for sent in self.api.sent]

    def body(self, index: int = -1) -> Any:
        return self.api.sent[index].call.body


@contextlib.asynccontextmanager
async def at_work(*script: Answer) -> AsyncIterator[SinkBench]:
    bench = SinkBench(ScriptedApi(*script, forever=CREATED))
    task = asyncio.create_task(bench.sink.run())
    try:
        yield bench
        assert not task.done(), "nothing may end it"
    finally:
        task.cancel()


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


async def test_too_many_events_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "QUEUE_LENGTH", 3)
    bench = SinkBench(ScriptedApi(forever=CREATED))
    for number in range(5):
        bench.sink.send(Notice(POD, "Normal", "Test", str(number)))
    assert bench.dropped == 2
    await bench.sink.drain(1.0)
    assert [bench.body(index)["message"] for index in range(3)] == ["0", "1", "2"]
    assert len(bench.api.sent) == 3


async def test_what_is_remembered_of_events_is_bounded_and_the_oldest_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "REMEMBERED", 2)
    async with at_work() as bench:
        for notice in (EVICTED, BLOCKED, TAINTED):
            bench.sink.send(notice)
            await asyncio.sleep(1.0)
        await asyncio.sleep(60.0)
        for notice in (BLOCKED, TAINTED, EVICTED):
            bench.sink.send(notice)
        await asyncio.sleep(1.0)
    assert bench.calls() == ["POST", "POST", "POST", "PATCH", "POST"]
    assert bench.dropped == 1, "BLOCKED was forgotten for EVICTED before its count could be sent"


async def test_an_event_that_is_sent_again_is_remembered_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "REMEMBERED", 2)
    async with at_work() as bench:
        for notice in (EVICTED, BLOCKED, EVICTED, TAINTED, EVICTED):
            bench.sink.send(notice)
            await asyncio.sleep(61.0)
    assert bench.calls() == ["POST", "POST", "PATCH", "POST", "PATCH"]


async def test_events_wait_while_evictions_are_under_way() -> None:
    async with at_work() as bench:
        bench.busy = True
        bench.sink.send(EVICTED)
        await asyncio.sleep(10.0)
        assert bench.calls() == []
        bench.busy = False
        await asyncio.sleep(0.1)
        assert bench.calls() == ["POST"]


async def test_events_do_not_wait_for_ever() -> None:
    async with at_work() as bench:
        bench.busy = True
        bench.sink.send(EVICTED)
        await asyncio.sleep(29.5)
        assert bench.calls() == []
        await asyncio.sleep(1.0)
        assert bench.calls() == ["POST"]


async def test_what_still_waits_at_the_end_is_sent_for_a_while() -> None:
    bench = SinkBench(ScriptedApi(*[Late(0.4, CREATED)] * 10), busy=True)
    for number in range(10):
        bench.sink.send(Notice(POD, "Normal", "Test", str(number)))
    await bench.sink.drain(2.0)
    assert asyncio.get_running_loop().time() == 2.0
    assert len(bench.api.sent) == 5


@pytest.mark.parametrize("failure", [LOST, Late(100.0, CREATED)], ids=["lost", "late"])
async def test_an_api_that_does_not_answer_keeps_nobody_from_leaving(failure: Answer) -> None:
    bench = SinkBench(ScriptedApi(forever=failure))
    bench.sink.send(EVICTED)
    bench.sink.send(BLOCKED)
    await bench.sink.drain(2.0)
    assert asyncio.get_running_loop().time() <= 2.0
    assert bench.dropped


async def test_an_event_that_waits_for_calm_when_we_leave_is_sent_too() -> None:
    bench = SinkBench(ScriptedApi(forever=CREATED), busy=True)
    task = asyncio.create_task(bench.sink.run())
    bench.sink.send(EVICTED)
    await asyncio.sleep(1.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await bench.sink.drain(2.0)
    assert bench.calls() == ["POST"]
