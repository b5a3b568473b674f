"""What the controllers are told of objects of our own kinds, and when they may rely on it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from taintkeeper.core.messages import Knowledge
from taintkeeper.core.rules import RuleGone, RuleSeen
from taintkeeper.views import Audience, Views
from tests.rule_specs import spec
from tests.unit.cluster import wires
from tests.unit.cluster.scripted_api import LOST, Answer, ApiByPath, Late, ScriptedApi, page, reply

pytestmark = pytest.mark.looptime

RULES, POLICIES = "nodetaintrules", "evictionpolicies"
RULE = {"metadata": wires.metadata("r"), "spec": spec()}
RULE_LIST = page(17, RULE)


class Follower:
    """Notes what it is told of rules, and since when it may rely on what it knows."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.fresh: list[tuple[float, bool]] = []

    def feed(self, event: Any) -> None:
        if isinstance(event, Knowledge):
            self.fresh.append((asyncio.get_running_loop().time(), event.fresh))
        elif isinstance(event, RuleSeen | RuleGone):
            self.told.append(event)


@asynccontextmanager
async def following(*rules: Answer, then: Answer = RULE_LIST) -> AsyncIterator[tuple[Views, Follower]]:
    """Run the views for somebody who needs nodes and rules."""
    api = ApiByPath(nodes=ScriptedApi(forever=page(17, wires.node())), nodetaintrules=ScriptedApi(*rules, forever=then))
    follower = Follower()
    audience = Audience(follower, frozenset({"nodes", RULES}))
    views = Views(api, Random(0), [audience], as_seen=lambda node: node, failed=lambda *_: None)
    tasks = [asyncio.create_task(run()) for run in views.tasks().values()]
    try:
        yield views, follower
    finally:
        for task in tasks:
            task.cancel()


async def test_nothing_is_relied_on_before_the_rules_are_listed() -> None:
    async with following(Late(20.0, RULE_LIST)) as (views, follower):
        await asyncio.sleep(10.0)
        assert views.stale() == [RULES]
        await asyncio.sleep(11.0)
    assert follower.fresh == [(20.0, True)]
    assert [event.name for event in follower.told] == ["r"]


async def test_without_the_definition_the_work_goes_on_and_one_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with following(reply(404), reply(404)) as (views, follower):
            await asyncio.sleep(50.0)
            assert (views.stale(), follower.told) == ([], [])
            await asyncio.sleep(20.0)
    assert follower.fresh == [(0.0, True)]
    assert [event.name for event in follower.told] == ["r"]
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", "nodetaintrules.taintkeeper.io is not defined on the API server: there are none until it is"),
        ("INFO", "nodetaintrules.taintkeeper.io is defined on the API server"),
    ]


async def test_what_was_known_stays_good_while_lists_fail() -> None:
    async with following(RULE_LIST, then=LOST) as (views, follower):
        await asyncio.sleep(200.0)
        assert views.stale() == []
    assert follower.fresh == [(0.0, True)]


async def test_what_kopf_sees_is_told_at_once() -> None:
    async with following() as (views, follower):
        await asyncio.sleep(1.0)
        follower.told.clear()
        views.custom_event(RULES, {"type": "MODIFIED", "object": RULE})
        views.custom_event(RULES, {"type": "DELETED", "object": RULE})
    assert [type(event) for event in follower.told] == [RuleSeen, RuleGone]


async def test_whoever_reaches_the_server_again_hurries_the_lists() -> None:
    async with following(*[LOST] * 6) as (views, _):
        await asyncio.sleep(20.0)
        assert RULES in views.stale()
        views.interrupted(True)
        views.interrupted(False)
        await asyncio.sleep(0.1)
        assert views.stale() == []


async def test_the_kinds_that_nobody_needs_are_not_watched() -> None:
    needed = [Audience(Follower(), frozenset({"nodes", kind})) for kind in (RULES, POLICIES)]
    needless = Audience(Follower(), frozenset({"nodes"}))
    for audience, customs in ((needed[0], [RULES]), (needed[1], [POLICIES]), (needless, [])):
        views = Views(ApiByPath(), Random(0), [audience], as_seen=lambda node: node, failed=lambda *_: None)
        assert views.customs == customs
        assert list(views.tasks()) == ["nodes", *customs]
