"""The view of objects of our own kinds, rules here: what Kopf tells, made complete by lists of our own."""

import asyncio
import contextlib
from random import Random
from typing import Any

import pytest

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.custom_feed import CustomFeed, CustomListener
from taintkeeper.cluster.rule_wire import RULES
from taintkeeper.core.rules import RuleSeen
from tests.rule_specs import spec
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import LOST, Answer, Late, ScriptedApi, Sent, page, reply

pytestmark = pytest.mark.looptime

PATH = "GET /apis/taintkeeper.io/v1alpha1/nodetaintrules"
NOT_DEFINED = reply(404)


def wire(name: str, uid: str = "") -> dict[str, Any]:
    return {"metadata": wires.metadata(name, uid=uid or f"{name}-uid"), "spec": spec()}


def rules(*names: str, more: str = "", uid: str = "") -> Reply:
    return page(17, *(wire(name, uid) for name in names), more=more)


def event(type_: str | None, name: str, uid: str = "") -> dict[str, Any]:
    return {"type": type_, "object": wire(name, uid)}


class FeedBench:
    """A feed at work, and what it told, a short line each."""

    def __init__(
        self, *script: Answer, forever: Answer | None = None, during: dict[int, list[Any]] | None = None
    ) -> None:
        self.api = ScriptedApi(*script, forever=forever or rules("a", "b"), meanwhile=self._tell)
        self.told: list[str] = []
        self._during = during or {}
        listener: CustomListener[RuleSeen] = CustomListener(
            seen=lambda rule: self.told.append(f"seen {rule.name}"),
            gone=lambda name: self.told.append(f"gone {name}"),
            listed=lambda: self.told.append("listed"),
            defined=lambda defined: self.told.append("defined" if defined else "not defined"),
            failed=lambda _: self.told.append("failed"),
        )
        self.feed = CustomFeed(self.api, RULES, listener, Random(0))

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
    bench = FeedBench(Late(5.0, rules("a", "b")))
    bench.feed.take(event("ADDED", "a"))
    await bench.run(4.9)
    assert bench.told == ["seen a"]
    assert bench.feed.last_heard == float("-inf")


async def test_the_view_is_complete_once_everything_is_listed_page_by_page() -> None:
    bench = FeedBench(rules("a", more="next"), rules("b"))
    await bench.run(10.0)
    assert bench.told == ["seen a", "seen b", "defined", "listed"]
    assert [(sent.line, sent.params) for sent in bench.api.sent] == [
        (PATH, {"limit": "500"}),
        (PATH, {"limit": "500", "continue": "next"}),
    ]
    assert bench.feed.last_heard == 0.0


async def test_rules_are_listed_every_half_minute_and_what_is_not_in_the_list_is_gone() -> None:
    bench = FeedBench(rules("a", "b"), forever=rules("b"))
    await bench.run(61.0)
    assert bench.times() == [0.0, 30.0, 60.0]
    assert bench.told[4:] == ["seen b", "gone a", "listed", "seen b", "listed"]


async def test_when_kopf_begins_anew_the_rules_are_listed_soon() -> None:
    bench = FeedBench()
    task = asyncio.create_task(bench.run(20.0))
    await asyncio.sleep(5.0)
    bench.feed.take(event(None, "a"))
    await asyncio.sleep(1.0)
    bench.feed.take(event(None, "b"))
    await task
    assert bench.times() == [0.0, 7.0]


async def test_a_rule_that_is_deleted_is_gone_at_once_and_only_once() -> None:
    bench = FeedBench()
    await bench.run(1.0)
    bench.told.clear()
    bench.feed.take(event("DELETED", "a", uid="another"))
    bench.feed.take(event("DELETED", "a"))
    bench.feed.take(event("DELETED", "a"))
    assert bench.told == ["gone a"]


async def test_a_list_does_not_bring_back_what_was_deleted_meanwhile_nor_drop_what_came() -> None:
    during = [event("DELETED", "a"), event("ADDED", "new")]
    bench = FeedBench(rules("a"), rules("a"), during={2: during}, forever=rules("new"))
    await bench.run(31.0)
    assert bench.told[3:] == ["gone a", "seen new", "listed"]
    await bench.run(31.0)
    assert bench.feed._deleted == set(), "what was deleted before a list is not in it"


async def test_a_list_that_fails_changes_nothing_and_is_tried_again_ever_more_seldom() -> None:
    bench = FeedBench(rules("a"), forever=LOST)
    await bench.run(300.0)
    assert bench.told[:3] == ["seen a", "defined", "listed"]
    assert set(bench.told[3:]) == {"failed"}
    pauses = bench.api.pauses()[1:]
    assert pauses[0] < 1.0
    assert 30.0 <= pauses[-1] <= 45.0


@pytest.mark.parametrize("refusal", [reply(403), reply(500), Reply(200, b"<html>", {})])
async def test_a_refusal_is_no_empty_list(refusal: Reply) -> None:
    bench = FeedBench(refusal, rules("a"))
    await bench.run(5.0)
    assert bench.told == ["failed", "seen a", "defined", "listed"]


# The definition


async def test_without_the_definition_there_are_no_rules_and_that_is_told_once() -> None:
    bench = FeedBench(forever=NOT_DEFINED)
    await bench.run(300.0)
    assert bench.told == ["not defined"] + ["listed"] * 10
    assert bench.times() == [30.0 * index for index in range(10)]


async def test_rules_are_noticed_after_their_definition_is_installed() -> None:
    bench = FeedBench(NOT_DEFINED, NOT_DEFINED, forever=rules("a"))
    await bench.run(70.0)
    assert bench.told == ["not defined", "listed", "listed", "seen a", "defined", "listed"]


async def test_rules_go_with_their_definition_once_a_second_list_says_so() -> None:
    bench = FeedBench(rules("a"), NOT_DEFINED, rules("a"), forever=NOT_DEFINED)
    await bench.run(125.0)
    assert bench.told[3:] == [
        *("not defined", "listed"),
        *("seen a", "defined", "listed"),
        *("not defined", "listed"),
        *("gone a", "listed"),
    ]
