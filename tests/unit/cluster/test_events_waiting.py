"""Kubernetes events that wait: bounded, never forgotten, and never in the way."""

import asyncio

import pytest

from taintkeeper.cluster import events
from taintkeeper.cluster.events import Notice
from tests.unit.cluster.event_bench import BLOCKED, CREATED, EVICTED, POD, TAINTED, SinkBench, at_work
from tests.unit.cluster.scripted_api import LOST, Answer, Late, ScriptedApi

pytestmark = pytest.mark.looptime


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
    assert bench.calls() == ["POST", "POST", "POST", "PATCH", "PATCH", "POST"]
    assert bench.dropped == 0


@pytest.mark.parametrize("known", [False, True], ids=["new", "again"])
async def test_an_event_that_waits_is_never_forgotten_however_many_wait_with_it(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "REMEMBERED", 6 if known else 2)
    notices = [Notice(POD, "Normal", "Test", str(number)) for number in range(6)]
    async with at_work() as bench:
        if known:
            for notice in notices:
                bench.sink.send(notice)
            await asyncio.sleep(61.0)
            monkeypatch.setattr(events, "REMEMBERED", 2)
            bench.api.sent.clear()
        for notice in notices:
            bench.sink.send(notice)
        await asyncio.sleep(1.0)
    assert bench.calls() == (["PATCH"] * 6 if known else ["POST"] * 6)
    assert bench.dropped == 0


@pytest.mark.parametrize("known", [False, True], ids=["new", "again"])
async def test_an_event_that_happens_again_while_it_waits_is_sent_once_with_its_count(known: bool) -> None:
    async with at_work() as bench:
        if known:
            bench.sink.send(BLOCKED)
            await asyncio.sleep(61.0)
            bench.api.sent.clear()
        bench.busy = True
        for _ in range(4):
            bench.sink.send(BLOCKED)
            await asyncio.sleep(5.0)
        bench.busy = False
        await asyncio.sleep(1.0)
    assert bench.calls() == ["PATCH" if known else "POST"]
    assert bench.body()["count"] == 4 + known


async def test_an_event_that_waits_needs_no_second_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "QUEUE_LENGTH", 1)
    bench = SinkBench(ScriptedApi(forever=CREATED))
    bench.sink.send(BLOCKED)
    await asyncio.sleep(61.0)
    bench.sink.send(BLOCKED)
    await bench.sink.drain(1.0)
    assert (bench.body()["count"], bench.dropped) == (2, 0)


async def test_an_event_that_happens_again_while_it_is_being_sent_is_the_same_event() -> None:
    async with at_work(Late(5.0, CREATED)) as bench:
        bench.sink.send(BLOCKED)
        await asyncio.sleep(1.0)
        bench.sink.send(BLOCKED)
        await asyncio.sleep(61.0)
        bench.sink.send(BLOCKED)
        await asyncio.sleep(1.0)
    assert bench.calls() == ["POST", "PATCH"]
    assert bench.body()["count"] == 3


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


async def test_a_hundred_events_wait_no_longer_than_one_and_then_go_one_by_one() -> None:
    async with at_work() as bench:
        bench.busy = True
        for number in range(100):
            bench.sink.send(Notice(POD, "Normal", "Test", str(number)))
        await asyncio.sleep(29.5)
        assert bench.calls() == []
        await asyncio.sleep(7.0)
        assert bench.calls() == ["POST"] * 100
        pauses = bench.api.pauses()
    assert pauses == [pytest.approx(0.05)] * 99, "evictions are still under way"


async def test_what_happens_after_all_was_told_waits_for_evictions_again() -> None:
    async with at_work() as bench:
        bench.busy = True
        for _ in range(2):
            await asyncio.sleep(100.0)
            bench.sink.send(EVICTED)
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(60.0)
            assert bench.api.sent[-1].at == pytest.approx(began + 30.0, abs=0.1)


async def test_what_still_waits_at_the_end_is_sent_for_a_while() -> None:
    bench = SinkBench(ScriptedApi(*[Late(0.4, CREATED)] * 10), busy=True)
    for number in range(10):
        bench.sink.send(Notice(POD, "Normal", "Test", str(number)))
    await bench.sink.drain(2.0)
    assert asyncio.get_running_loop().time() == 2.0
    assert len(bench.api.sent) == 5


async def test_what_could_not_be_sent_before_the_end_is_counted() -> None:
    bench = SinkBench(ScriptedApi(CREATED, forever=Late(100.0, CREATED)))
    for number in range(10):
        bench.sink.send(Notice(POD, "Normal", "Test", str(number)))
    await bench.sink.drain(2.0)
    assert bench.dropped == 9


@pytest.mark.parametrize("failure", [LOST, Late(100.0, CREATED)], ids=["lost", "late"])
async def test_an_api_that_does_not_answer_keeps_nobody_from_leaving(failure: Answer) -> None:
    bench = SinkBench(ScriptedApi(forever=failure))
    bench.sink.send(EVICTED)
    bench.sink.send(BLOCKED)
    await bench.sink.drain(2.0)
    assert asyncio.get_running_loop().time() <= 2.0
    assert (len(bench.api.sent), bench.dropped) == (1, 2)


async def test_an_event_that_waits_for_calm_when_we_leave_is_sent_too() -> None:
    bench = SinkBench(ScriptedApi(forever=CREATED), busy=True)
    task = asyncio.create_task(bench.sink.run())
    bench.sink.send(EVICTED)
    await asyncio.sleep(1.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await bench.sink.drain(2.0)
    assert bench.calls() == ["POST"]
