"""How a reflector keeps its place in the history, and what it reads from the stream."""

import asyncio

import pytest

from tests.unit.cluster.reflector_bench import ReflectorBench, added, deleted, follow, streamed_list, thing
from tests.unit.cluster.scripted_api import LOST, ScriptedApi, Stream, bookmark, error, line

pytestmark = pytest.mark.looptime

LONG_LINE = line("ADDED", thing("b", 8, padding="x" * 200_000))


async def test_a_watch_that_ends_is_resumed_at_once_without_a_list_and_can_be_relied_on_all_the_while() -> None:
    api = ScriptedApi(streamed_list(7, "a", then=[added("b", 8), 60.0]), Stream(60.0, deleted("a", 9)))
    bench = await follow(api, seconds=130.0)
    assert bench.told == ["seen a", "alive", "seen b", "gone a"]
    assert bench.requests() == ["stream", "watch from 8", "watch from 9"]
    assert [sent.at for sent in api.sent] == [0.0, 60.0, 120.0]


@pytest.mark.parametrize(
    ("events", "place"),
    [
        pytest.param([], 7, id="the end of the list"),
        pytest.param([bookmark(50)], 50, id="a bookmark"),
        pytest.param([added("b", 60)], 60, id="something came"),
        pytest.param([line("MODIFIED", thing("a", 61))], 61, id="something changed"),
        pytest.param([deleted("a", 62)], 62, id="something went"),
        pytest.param([added("b", 60), bookmark(70)], 70, id="a bookmark after a change"),
        pytest.param([bookmark(70), added("b", 80)], 80, id="a change after a bookmark"),
        pytest.param([added("b", 60) + added("c", 61)], 61, id="two changes in one chunk"),
        pytest.param([added("b", 60), line("NEWS", {"metadata": {"resourceVersion": "99"}})], 60, id="an unknown type"),
    ],
)
@pytest.mark.parametrize("end", [60.0, LOST, error(500), b"garbage\n", 1000.0], ids=repr)
async def test_a_watch_goes_on_where_the_last_event_was(
    events: list[bytes], place: int, end: float | bytes | Exception
) -> None:
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[60.0, *events, end])), seconds=200.0)
    assert bench.requests() == ["stream", f"watch from {place}"]


async def test_an_unknown_type_of_event_is_passed_over() -> None:
    odd = line("NEWS", "not even an object")
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[odd, 60.0, added("b", 8), 1.0, LOST])), seconds=70.0)
    assert bench.told == ["seen a", "alive", "seen b", "stale", "failed", "alive"]


@pytest.mark.parametrize("code", [0, 403, 500, 504])
async def test_an_error_event_that_is_not_about_the_place_leads_to_a_pause_and_no_list(code: int) -> None:
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[60.0, error(code)])), seconds=70.0)
    assert bench.told == ["seen a", "alive", "stale", "failed", "alive"]
    assert bench.requests() == ["stream", "watch from 7"]
    assert 0.5 <= bench.api.pauses()[0] - 60.0 <= 0.75


@pytest.mark.reported("nolar/kopf#1276")
async def test_a_watch_that_says_nothing_for_ninety_seconds_is_taken_for_dead() -> None:
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[89.0, b"\n", 3600.0])), seconds=181.0)
    assert bench.told == ["seen a", "alive", "stale", "failed", "alive"]
    assert 179.5 <= bench.api.sent[1].at <= 179.75


async def test_an_error_event_without_sense_is_a_failure_like_any_other() -> None:
    bench = await follow(ScriptedApi(streamed_list(7, then=[2.0, line("ERROR", ["what?"])])), seconds=10.0)
    assert bench.told == ["alive", "stale", "failed", "alive"]


async def test_chunks_may_end_anywhere() -> None:
    whole = added("a") + added("b") + bookmark(7, end=True) + deleted("a", 8)
    for cut in range(1, len(whole)):
        bench = await follow(ScriptedApi(Stream(whole[:cut], whole[cut:], 60.0)), seconds=1.0)
        assert bench.told == ["seen a", "seen b", "alive", "gone a"], f"cut after {cut} bytes"


@pytest.mark.parametrize("size", [1, 7, 65_536, 1_000_000])
async def test_lines_may_be_longer_than_any_buffer(size: int) -> None:
    head = LONG_LINE[:-50]
    # Byte by byte is slow, and tells nothing in the middle of the padding.
    pieces = [LONG_LINE] if size > 65_536 else [*_pieces(head, max(size, 50_000)), *_pieces(LONG_LINE[-50:], size)]
    bench = await follow(ScriptedApi(streamed_list(7, then=[*pieces, 60.0])), seconds=1.0)
    assert bench.told == ["alive", "seen b"]


async def test_half_a_line_at_the_end_is_read_again_from_the_last_place() -> None:
    half = added("b", 8)[:-1]
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[60.0, half]), Stream(added("b", 8))), seconds=61.0)
    assert bench.told == ["seen a", "alive", "seen b"]
    assert bench.requests()[:2] == ["stream", "watch from 7"]


async def test_it_knows_when_the_server_last_said_anything() -> None:
    bench = ReflectorBench(ScriptedApi(Stream(5.0, added("a"), bookmark(7, end=True), 60.0, bookmark(8), 60.0)))
    assert bench.reflector.last_heard == float("-inf")
    heard = []
    async with asyncio.timeout(None) as limit:
        task = asyncio.create_task(bench.run(100.0))
        for _ in range(3):
            await asyncio.sleep(33.0)
            heard.append(bench.reflector.last_heard)
        await task
    assert limit.expired() is False
    assert heard == [5.0, 65.0, 65.0]


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]
