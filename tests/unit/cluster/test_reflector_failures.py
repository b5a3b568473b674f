"""How hard a reflector tries while something is broken: ever more slowly, never giving up, never in circles."""

import pytest

from tests.unit.cluster.reflector_bench import added, follow, streamed_list
from tests.unit.cluster.scripted_api import LOST, Answer, Late, ScriptedApi, Stream, bookmark, error, reply

pytestmark = pytest.mark.looptime

HOUR = 3600.0
MOST_PAUSE = 45.0

FAILURES: dict[str, Answer] = {
    "nobody answers": LOST,
    "nobody answers within ten seconds": Late(10.0, LOST),
    "unauthorized": reply(401),
    "forbidden": reply(403),
    "not found": reply(404),
    "always expired": reply(410),
    "overloaded": reply(429),
    "broken": reply(500),
    "broken, and slow to say so": Late(2.0, reply(503)),
    "every page refused": reply(422),
    "streams end at once": Stream(),
    "watches that break soon": Stream(bookmark(8), 5.0, LOST),
    "garbage": Stream(b"<html>\n"),
    "errors in the stream": Stream(error(500)),
    "expired in the stream": Stream(error(410)),
    "silence": Stream(1000.0),
}

UNNOTICED = (FAILURES["streams end at once"], FAILURES["silence"])
"""What breaks a list, but not a watch: ends are normal, and silence takes 90 s to be noticed."""


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("listed", [False, True], ids=["from the start", "after the list"])
async def test_a_lasting_failure_costs_a_growing_pause_each_time(failure: Answer, listed: bool) -> None:
    script = [streamed_list(7, "a", then=[60.0, LOST])] if listed else []
    bench = await follow(ScriptedApi(*script, forever=failure), seconds=HOUR)
    times = [sent.at for sent in bench.api.sent]
    assert 25 <= len(times) <= HOUR / 30.0 + 12
    pauses = bench.api.pauses()
    assert min(pauses[-10:]) >= 30.0
    assert max(pauses) <= MOST_PAUSE + 90.0
    assert bench.alive is (listed and failure in UNNOTICED)


async def test_a_list_that_breaks_off_again_and_again_is_asked_for_ever_more_seldom() -> None:
    for end in (LOST, error(500), 1000.0, b""):
        bench = await follow(ScriptedApi(forever=Stream(added("a"), 20.0, added("b"), end)), seconds=HOUR)
        assert 25 <= len(bench.api.sent) <= HOUR / 50.0 + 10
        assert min(bench.api.pauses()[-10:]) >= 50.0
        assert not bench.alive


async def test_pauses_differ_so_that_not_all_come_at_once() -> None:
    bench = await follow(ScriptedApi(forever=LOST), seconds=HOUR)
    late = bench.api.pauses()[-20:]
    assert len({round(pause, 3) for pause in late}) == 20
    assert all(30.0 <= pause <= MOST_PAUSE for pause in late)


@pytest.mark.parametrize("end", [LOST, error(500), b""], ids=["lost", "error", "ended"])
async def test_after_a_good_watch_the_pauses_begin_anew(end: Exception | bytes) -> None:
    script: list[Answer] = [streamed_list(7, "a", then=[60.0, LOST]), *[LOST] * 10, Stream(30.0, end)]
    bench = await follow(ScriptedApi(*script), seconds=1000.0)
    pauses = bench.api.pauses()
    assert pauses[10] >= 30.0
    assert 30.0 <= pauses[11] <= 30.75


async def test_a_proxy_that_ends_every_watch_at_once_does_not_have_us_turn_in_circles() -> None:
    script = [streamed_list(7, "a", then=[])]
    bench = await follow(ScriptedApi(*script, forever=Stream(bookmark(9))), seconds=HOUR)
    assert len(bench.api.sent) <= HOUR / 30.0 + 12
    assert bench.requests()[:2] == ["stream", "watch from 7"]


async def test_a_server_that_ends_every_watch_after_a_while_is_followed_without_a_pause() -> None:
    busy = Stream(bookmark(9), 30.0, added("b", 10), 30.0)
    bench = await follow(ScriptedApi(streamed_list(7, "a"), forever=busy), seconds=605.0)
    assert bench.api.pauses() == [60.0] * 10
    assert "stale" not in bench.told
