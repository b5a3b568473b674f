"""The view of nodes: what Kopf tells, made complete by lists of our own."""

import asyncio
import contextlib
from random import Random
from typing import Any

import pytest

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.node_feed import NodeFeed
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import LOST, Answer, Late, ScriptedApi, Sent, page, reply

pytestmark = pytest.mark.looptime

HOUR = 3600.0


def nodes(*names: str, more: str = "", uid: str = "") -> Reply:
    return page(17, *(wires.node(name, meta={"uid": uid or f"{name}-uid"}) for name in names), more=more)


def event(type_: str | None, name: str, uid: str = "") -> dict[str, Any]:
    return {"type": type_, "object": wires.node(name, meta={"uid": uid or f"{name}-uid"})}


class FeedBench:
    """A feed at work, and what it told, a short line each; ``alive`` where that changes."""

    def __init__(
        self, *script: Answer, forever: Answer | None = None, during: dict[int, list[Any]] | None = None
    ) -> None:
        self.api = ScriptedApi(*script, forever=forever or nodes("a", "b"), meanwhile=self._tell)
        self.told: list[str] = []
        self.alive = False
        self._during = during or {}
        self.feed = NodeFeed(
            self.api,
            Random(0),
            seen=lambda node: self.told.append(f"seen {node.name}"),
            gone=lambda name: self.told.append(f"gone {name}"),
            alive=self._alive,
            failed=lambda _: self.told.append("failed"),
        )

    def _alive(self, alive: bool) -> None:
        if alive is not self.alive:
            self.told.append("alive" if alive else "stale")
        self.alive = alive

    def _tell(self, _: Sent) -> None:
        for each in self._during.get(len(self.api.sent), ()):
            self.feed.take(each)

    async def run(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.feed.run()

    def times(self) -> list[float]:
        return [sent.at for sent in self.api.sent]


async def test_what_kopf_tells_is_no_complete_view_before_a_list_of_our_own() -> None:
    bench = FeedBench(Late(5.0, nodes("a", "b")))
    bench.feed.take(event("ADDED", "a"))
    bench.feed.take(event(None, "b"))
    await bench.run(4.9)
    assert bench.told == ["seen a", "seen b"]
    assert not bench.alive


async def test_the_view_is_complete_once_everything_is_listed() -> None:
    bench = FeedBench(nodes("a", more="next"), Late(1.0, nodes("b")))
    await bench.run(10.0)
    assert bench.told == ["seen a", "seen b", "alive"]
    assert [(sent.line, sent.params) for sent in bench.api.sent] == [
        ("GET /api/v1/nodes", {"limit": "100"}),
        ("GET /api/v1/nodes", {"limit": "100", "continue": "next"}),
    ]
    assert bench.feed.last_heard == 1.0


async def test_changes_that_kopf_tells_of_are_passed_on() -> None:
    bench = FeedBench()
    await bench.run(10.0)
    bench.told.clear()
    for each in (event("MODIFIED", "a"), event("ADDED", "c"), event("DELETED", "b"), event("DELETED", "b")):
        bench.feed.take(each)
    assert bench.told == ["seen a", "seen c", "gone b"]


async def test_the_nodes_are_listed_again_every_five_minutes() -> None:
    bench = FeedBench()
    await bench.run(1000.0)
    assert bench.times() == [0.0, 300.0, 600.0, 900.0]
    assert bench.told == ["seen a", "seen b", "alive", *["seen a", "seen b"] * 3]


async def test_nodes_that_vanished_while_kopf_was_blind_are_gone_soon_after_it_lists_again() -> None:
    bench = FeedBench(nodes("a", "ghost"), nodes("a"))
    asyncio.get_running_loop().call_later(10.0, bench.feed.take, event(None, "a"))
    await bench.run(20.0)
    assert bench.told == ["seen a", "seen ghost", "alive", "seen a", "seen a", "gone ghost"]
    assert bench.times() == [0.0, 12.0]


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
async def test_events_of_a_watch_that_goes_on_lead_to_no_list(type_: str) -> None:
    bench = FeedBench(during={1: [event(type_, "a")]})
    await bench.run(299.0)
    assert bench.times() == [0.0]


async def test_a_list_of_kopfs_during_our_own_leads_to_another_of_ours() -> None:
    # What vanished between the two was in our list and is in no event.
    bench = FeedBench(nodes("a", "ghost"), nodes("a"), during={1: [event(None, "a")]})
    await bench.run(10.0)
    assert bench.told[-1] == "gone ghost"
    assert bench.times() == [0.0, 2.0]


async def test_many_events_of_one_list_of_kopfs_lead_to_one_list_of_ours() -> None:
    bench = FeedBench()
    for index in range(100):
        bench.feed.take(event(None, f"n{index}"))
    await bench.run(200.0)
    assert bench.times() == [0.0]
    for _ in range(100):
        asyncio.get_running_loop().call_later(10.0, bench.feed.take, event(None, "a"))
    await bench.run(200.0)
    assert bench.times() == [0.0, 200.0, 212.0]


async def test_a_node_that_kopf_tells_of_during_the_list_is_no_ghost() -> None:
    bench = FeedBench(nodes("a", more="next"), nodes("b"), during={2: [event("ADDED", "c")]})
    await bench.run(10.0)
    assert bench.told == ["seen a", "seen c", "seen b", "alive"]


async def test_a_node_that_was_deleted_and_came_anew_during_the_list_is_no_ghost() -> None:
    bench = FeedBench(nodes("a", "b"), nodes("a", more="next"), nodes(), during={3: [
        event("DELETED", "b"), event("ADDED", "b", uid="new"),
    ]})  # fmt: skip
    await bench.run(310.0)
    assert bench.told[-3:] == ["seen a", "gone b", "seen b"]


async def test_a_node_that_was_deleted_during_the_list_is_not_brought_back_by_it() -> None:
    deletion = {3: [event("DELETED", "b"), event("DELETED", "a"), event("ADDED", "a", uid="new")]}
    bench = FeedBench(nodes("a", "b"), nodes(more="next"), nodes("a", "b"), during=deletion)
    await bench.run(310.0)
    assert bench.told == ["seen a", "seen b", "alive", "gone b", "gone a", "seen a"]
    await bench.run(1.0)
    assert not bench.feed._deleted, "the next list is newer"


async def test_a_late_deletion_of_an_earlier_node_of_the_same_name_is_ignored() -> None:
    bench = FeedBench(nodes("a", uid="new"))
    await bench.run(10.0)
    bench.feed.take(event("DELETED", "a", uid="old"))
    assert bench.told == ["seen a", "alive"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param([LOST], id="nobody answers"),
        pytest.param([reply(403)], id="forbidden"),
        pytest.param([reply(500)], id="broken"),
        pytest.param([reply(200, {"kind": "Status"})], id="no list"),
        pytest.param([nodes("a", more="next"), reply(410)], id="a later page has expired"),
        pytest.param([nodes("a", more="next"), LOST], id="a later page is lost"),
    ],
)
async def test_a_list_that_fails_is_asked_for_anew_and_the_view_is_not_relied_on_meanwhile(
    failure: list[Answer],
) -> None:
    bench = FeedBench(nodes("a", "b"), *failure, nodes("b"))
    await bench.run(305.0)
    assert [each for each in bench.told[3:] if each != "seen a"] == ["stale", "failed", "seen b", "gone a", "alive"]
    assert 300.5 <= bench.times()[-1] <= 300.75
    assert "continue" not in bench.api.sent[-1].params


@pytest.mark.parametrize("failure", [LOST, reply(403), Late(2.0, reply(503)), reply(200, {"kind": "Status"})], ids=str)
async def test_a_lasting_failure_costs_a_growing_pause_each_time(failure: Answer) -> None:
    bench = FeedBench(forever=failure)
    await bench.run(HOUR)
    assert not bench.alive
    assert 180 <= len(bench.times()) <= HOUR / 10.0 + 12
    assert all(10.0 <= pause <= 17.0 for pause in bench.api.pauses()[-20:])


ODD = wires.node("a") | {"spec": 5}


async def test_a_node_that_makes_no_sense_is_passed_over_and_stays_known_as_it_was() -> None:
    bench = FeedBench(nodes("a", "b"), page(17, ODD, wires.node("b")))
    asyncio.get_running_loop().call_later(10.0, bench.feed.take, {"type": "MODIFIED", "object": ODD})
    asyncio.get_running_loop().call_later(20.0, bench.feed.doubt)
    await bench.run(60.0)
    assert bench.told == ["seen a", "seen b", "alive", "stale", "seen b", "alive"]
    assert bench.feed.unreadable == 1


async def test_what_kopf_tells_counts_as_heard() -> None:
    bench = FeedBench()
    assert bench.feed.last_heard == float("-inf")
    await bench.run(100.0)
    assert bench.feed.last_heard == 0.0
    bench.feed.take(event("MODIFIED", "a"))
    assert bench.feed.last_heard == 100.0


async def test_a_doubt_has_all_nodes_listed_at_once_and_nothing_relied_on_until_they_are() -> None:
    bench = FeedBench(nodes("a", "b"), Late(3.0, nodes("b")))
    asyncio.get_running_loop().call_later(50.0, bench.feed.doubt)
    await bench.run(60.0)
    assert bench.told == ["seen a", "seen b", "alive", "stale", "seen b", "gone a", "alive"]
    assert bench.times() == [0.0, 50.0]


async def test_a_doubt_that_comes_up_while_nodes_are_listed_has_them_listed_once_more() -> None:
    bench = FeedBench(Late(3.0, nodes("a")), Late(3.0, nodes("a")))
    asyncio.get_running_loop().call_later(1.0, bench.feed.doubt)
    await bench.run(60.0)
    assert bench.told == ["seen a", "seen a", "alive"]
    assert bench.times() == [0.0, 3.0]


async def test_while_kopf_cannot_watch_nodes_no_list_is_relied_on() -> None:
    bench = FeedBench()
    asyncio.get_running_loop().call_later(10.0, bench.feed.interrupted, True)
    asyncio.get_running_loop().call_later(500.0, bench.feed.interrupted, False)
    await bench.run(499.0)
    assert not bench.alive
    await bench.run(2.0)
    assert bench.alive
