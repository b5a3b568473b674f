"""An object that makes no sense is passed over; the others, and the history, go on."""

import asyncio
import contextlib
import logging
from random import Random
from typing import Any

import pytest

from taintkeeper.cluster.reflector import Kind, Listener, Reflector
from taintkeeper.cluster.wire import decode_budget, decode_node, decode_pod
from tests.unit.cluster import wires
from tests.unit.cluster.reflector_bench import THINGS, added, deleted, follow, streamed_list, thing, unreadable
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, Stream, bookmark, error, line, page, reply

pytestmark = pytest.mark.looptime

BAD = "unreadable things x"
Step = bytes | float | Exception


async def test_an_object_that_cannot_be_read_is_told_of_once_and_the_history_goes_on_behind_it() -> None:
    events: list[Step] = [unreadable("ADDED", "x", 8), added("b", 9), unreadable("MODIFIED", "x", 10), 60.0]
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=events)), seconds=70.0)
    assert bench.told == ["seen a", "alive", BAD, "seen b"]
    assert bench.requests() == ["stream", "watch from 10"]
    assert bench.reflector.unreadable == 1


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([Stream(added("a"), unreadable("ADDED", "x"), bookmark(7, end=True), 60.0)], id="streamed"),
        pytest.param([reply(422), page(7, thing("a"), thing("x", size="big"))], id="paged"),
    ],
)
async def test_a_list_with_an_object_that_cannot_be_read_is_complete_without_it(script: list[Answer]) -> None:
    bench = await follow(ScriptedApi(*script), seconds=1.0)
    assert bench.told == ["seen a", BAD, "alive"]
    assert bench.reflector.unreadable == 1


async def test_an_object_that_was_put_right_is_seen_and_told_of_again_when_it_breaks_again() -> None:
    events: list[Step] = [
        unreadable("ADDED", "x", 8),
        added("x", 9),
        unreadable("MODIFIED", "x", 10),
        added("x", 11),
        60.0,
    ]
    bench = await follow(ScriptedApi(streamed_list(7, then=events)), seconds=1.0)
    assert bench.told == ["alive", BAD, "seen x", BAD, "seen x"]
    assert bench.reflector.unreadable == 0


@pytest.mark.parametrize("again", [streamed_list(20, "a"), None], ids=["read well", "still unreadable"])
async def test_an_object_that_was_known_stays_known_as_it_was(again: Stream | None) -> None:
    still = again or Stream(unreadable("ADDED", "a"), bookmark(20, end=True), 60.0)
    first = streamed_list(7, "a", then=[unreadable("MODIFIED", "a", 8), 60.0, error(410)])
    bench = await follow(ScriptedApi(first, still), seconds=100.0)
    assert "gone a" not in bench.told
    assert bench.told.count("unreadable things a") == 1
    assert bench.reflector.unreadable == (again is None)


async def test_an_object_that_was_known_is_gone_when_it_goes_whatever_it_looks_like_then() -> None:
    events: list[Step] = [
        unreadable("MODIFIED", "a", 8),
        unreadable("DELETED", "a", 9),
        unreadable("DELETED", "b", 10),
        60.0,
    ]
    bench = await follow(ScriptedApi(streamed_list(7, "a", "b", then=events)), seconds=1.0)
    assert bench.told == ["seen a", "seen b", "alive", "unreadable things a", "gone a", "gone b"]
    assert bench.reflector.unreadable == 0


async def test_an_object_that_vanished_unseen_is_unreadable_no_more() -> None:
    first = streamed_list(7, "a", then=[unreadable("ADDED", "x", 8), unreadable("ADDED", "y", 9), 60.0, error(410)])
    second = Stream(unreadable("ADDED", "y"), bookmark(20, end=True), 60.0)
    bench = await follow(ScriptedApi(first, second), seconds=100.0)
    assert bench.reflector.unreadable == 1
    assert bench.told[-3:] == ["failed", "gone a", "alive"]


async def test_nobody_is_told_that_an_object_is_gone_that_was_never_seen() -> None:
    lists = [Stream(unreadable("ADDED", "x"), bookmark(7, end=True), 60.0, error(410)), streamed_list(20)]
    bench = await follow(ScriptedApi(*lists), seconds=100.0)
    assert bench.told == [BAD, "alive", "stale", "failed", "alive"]


@pytest.mark.parametrize(
    "odd", ["what?", 5, None, [], {}, {"metadata": 5}, {"metadata": {"name": "x", "uid": 5, "resourceVersion": 5}}]
)
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
async def test_what_does_not_even_say_what_it_is_harms_nobody(type_: str, odd: Any) -> None:
    events: list[Step] = [added("b", 8), line(type_, odd), 60.0]
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[*events, LOST])), seconds=70.0)
    told = [each for each in bench.told if not each.startswith("unreadable")]
    assert told == ["seen a", "alive", "seen b", "stale", "failed", "alive"]
    assert bench.requests()[0] == "stream"


@pytest.mark.parametrize("broken", [KeyError("size"), RecursionError(), OverflowError("date value out of range")])
async def test_whatever_reading_raises_concerns_that_object_alone(
    broken: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def decode(raw: Any) -> Any:
        if b"big" in bytes(raw):
            raise broken
        return THINGS.decode(raw)

    seen: list[str] = []
    listener: Listener[str, Any] = Listener(
        lambda each: seen.append(each.metadata.uid), seen.append, lambda _: None, seen.append
    )
    kind = Kind(THINGS.resource, THINGS.path, decode, THINGS.key)
    events: list[Step] = [line("ADDED", thing("x", 8, size="big")), added("b", 9), deleted("x", 10)]
    reflector = Reflector(ScriptedApi(streamed_list(7, then=events)), kind, listener, Random(0))
    with caplog.at_level(logging.WARNING):
        await _run_for_a_second(reflector)
    assert seen == ["b", "x"]
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("things x is passed over, since it cannot be read: ")


@pytest.mark.parametrize(
    ("decode", "object_", "key"),
    [
        pytest.param(decode_pod, wires.pod(spec={"tolerations": [{"key": 5}]}), "p1-uid", id="pod"),
        pytest.param(decode_budget, wires.budget({"selector": 5}), ("default", "b1"), id="budget"),
        pytest.param(decode_node, wires.node() | {"spec": 5}, "n1", id="node"),
    ],
)
async def test_objects_of_the_api_that_cannot_be_read_are_still_recognised(decode: Any, object_: Any, key: Any) -> None:
    gone: list[Any] = []
    keys = {
        decode_pod: lambda each: each.ref.uid,
        decode_budget: lambda each: each.key,
        decode_node: lambda each: each.name,
    }
    listener: Listener[Any, Any] = Listener(lambda _: None, gone.append, lambda _: None, lambda _: None)
    api = ScriptedApi(streamed_list(7, then=[line("ADDED", object_), line("DELETED", object_), 60.0]))
    await _run_for_a_second(Reflector(api, Kind("some", "/some", decode, keys[decode]), listener, Random(0)))
    assert gone == [key]


async def _run_for_a_second(reflector: Reflector[Any, Any]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await reflector.run()
