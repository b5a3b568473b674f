"""How a reflector gets its first view and a new one when its place in the history is lost."""

import pytest

from tests.unit.cluster.reflector_bench import PATH, added, deleted, follow, paged_list, streamed_list, thing
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, Stream, bookmark, error, line, page, reply

pytestmark = pytest.mark.looptime

NEXT = streamed_list(20, "b")
FIRST_PAGE, NEXT_PAGE = paged_list(7, "a", more="next"), paged_list(20, "b")


async def test_the_first_list_is_streamed_and_can_be_relied_on_once_it_is_complete() -> None:
    bench = await follow(ScriptedApi(streamed_list(7, "a", "b", then=[added("c", 8), 60.0])), seconds=0.1)
    assert bench.told == ["seen a", "seen b", "alive", "seen c"]
    params = bench.api.sent[0].params
    assert 300 <= int(params.pop("timeoutSeconds")) <= 600
    assert params == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    assert bench.api.sent[0].line == f"GET {PATH}"


async def test_a_bookmark_within_the_list_does_not_end_it() -> None:
    bench = await follow(ScriptedApi(Stream(added("a"), bookmark(5), 60.0)))
    assert bench.told == ["seen a"]


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_to_stream_is_asked_for_pages(status: int) -> None:
    script: list[Answer] = [reply(status), paged_list(7, "a", "b", more="next"), paged_list(7, "c")]
    bench = await follow(ScriptedApi(*script), seconds=0.1)
    assert bench.told == ["seen a", "seen b", "seen c", "alive"]
    assert bench.requests() == ["stream", "page", "page next", "watch from 7"]
    assert bench.api.sent[1].params == {"limit": "2000"}
    assert bench.api.sent[2].params == {"limit": "2000", "continue": "next"}


async def test_a_server_that_refused_to_stream_once_is_not_asked_again() -> None:
    script: list[Answer] = [reply(422), paged_list(7, "a"), Stream(60.0, error(410)), paged_list(9, "b")]
    bench = await follow(ScriptedApi(*script), seconds=80.0)
    assert bench.requests() == ["stream", "page", "watch from 7", "page", "watch from 9"]
    assert bench.told == ["seen a", "alive", "stale", "failed", "seen b", "gone a", "alive"]


@pytest.mark.parametrize("status", [400, 422])
async def test_a_refused_watch_from_a_known_place_is_not_taken_for_a_server_that_cannot_stream(status: int) -> None:
    script: list[Answer] = [
        streamed_list(7, "a", then=[60.0]),
        reply(status),
        Stream(60.0, error(410)),
        streamed_list(9, "a"),
    ]
    bench = await follow(ScriptedApi(*script), seconds=150.0)
    assert bench.requests() == ["stream", "watch from 7", "watch from 7", "stream"]


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param([Stream(60.0, error(410))], id="as an event"),
        pytest.param([Stream(60.0), reply(410)], id="as an answer"),
        pytest.param([Stream(30.0, line("MODIFIED", thing("a", 9)), 30.0, error(410))], id="after a change"),
    ],
)
async def test_a_lost_place_leads_to_a_new_list_at_once_and_what_vanished_is_told_as_gone(lost: list[Stream]) -> None:
    api = ScriptedApi(streamed_list(7, "a", "b", then=[60.0]), *lost, streamed_list(20, "b", "c"))
    bench = await follow(api, seconds=125.0)
    assert bench.told[:3] == ["seen a", "seen b", "alive"]
    assert bench.told[-6:] == ["stale", "failed", "seen b", "seen c", "gone a", "alive"]
    assert bench.requests()[-1] == "stream"
    assert api.sent[-1].at == 120.0


async def test_a_server_that_has_no_first_list_is_not_hurried() -> None:
    bench = await follow(ScriptedApi(reply(410), streamed_list(7, "a")), seconds=5.0)
    assert bench.api.pauses()[0] >= 0.5


async def test_changes_during_the_first_list_are_part_of_it() -> None:
    changes = [deleted("a", 8), added("c", 9), line("MODIFIED", thing("b", 10))]
    first = Stream(added("a"), added("b"), *changes, bookmark(10, end=True), 60.0, error(410))
    bench = await follow(ScriptedApi(first, streamed_list(20, "b")), seconds=70.0)
    first_view = ["seen a", "seen b", "gone a", "seen c", "seen b", "alive"]
    assert bench.told == [*first_view, "stale", "failed", "seen b", "gone c", "alive"]


async def test_what_vanished_is_told_by_the_first_list_without_it_and_by_no_later_one() -> None:
    lists = [streamed_list(7, "a", "b", then=[60.0, error(410)]), *[streamed_list(9, "b", then=[60.0, error(410)])] * 3]
    bench = await follow(ScriptedApi(*lists), seconds=235.0)
    assert bench.told.count("gone a") == 1
    assert bench.requests() == ["stream"] * 4


async def test_what_vanished_and_was_told_so_during_a_new_list_is_not_told_twice() -> None:
    again = Stream(added("a"), deleted("a", 8), bookmark(9, end=True), 60.0)
    bench = await follow(ScriptedApi(streamed_list(7, "a", then=[60.0, error(410)]), again), seconds=70.0)
    assert bench.told.count("gone a") == 1


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([Stream(added("a"), LOST), NEXT], id="the connection is lost"),
        pytest.param([Stream(added("a")), NEXT], id="the stream ends"),
        pytest.param([Stream(added("a"), error(500)), NEXT], id="an error is told"),
        pytest.param([Stream(added("a"), b"garbage\n"), NEXT], id="garbage comes"),
        pytest.param([Stream(added("a"), 1000.0), NEXT], id="nothing more comes"),
        pytest.param([reply(400), FIRST_PAGE, reply(410), NEXT_PAGE], id="a later page has expired"),
        pytest.param([reply(400), FIRST_PAGE, LOST, NEXT_PAGE], id="a later page is lost"),
    ],
)
async def test_what_a_list_that_broke_off_had_told_of_is_gone_if_the_next_has_it_no_more(script: list[Answer]) -> None:
    bench = await follow(ScriptedApi(*script), seconds=100.0)
    assert bench.told == ["seen a", "failed", "seen b", "gone a", "alive"]


async def test_a_list_that_broke_off_is_never_relied_on() -> None:
    bench = await follow(ScriptedApi(Stream(added("a"), LOST), forever=LOST), seconds=3600.0)
    assert "alive" not in bench.told


async def test_a_thing_of_the_same_name_that_came_anew_is_another() -> None:
    batch = deleted("old", 8) + added("new", 9, name="old")
    bench = await follow(ScriptedApi(streamed_list(7, "old", then=[batch, 60.0])), seconds=1.0)
    assert bench.told == ["seen old", "alive", "gone old", "seen new"]


async def test_a_page_that_is_no_list_is_a_failure_like_any_other() -> None:
    bench = await follow(ScriptedApi(reply(422), reply(200, {"kind": "Status"}), page(7)), seconds=30.0)
    assert bench.told == ["failed", "alive"]
