"""Writes pass a fence, and are seen through to their answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from taintkeeper.cluster.access import Permission, missing_permissions
from taintkeeper.cluster.client import ApiClient, Call, Fence, UnreachableError
from tests.unit.cluster.http_server import Handler, Served, serving
from tests.unit.cluster.test_client import Token

READ = Call("GET", "/api/v1/nodes", "list", "nodes")
WRITES = [
    Call("PATCH", "/api/v1/nodes/n1", "patch", "nodes", body={}),
    Call("POST", "/api/v1/namespaces/a/pods/b/eviction", "create", "pods/eviction", body={}),
    Call("POST", "/api/v1/namespaces/a/events", "create", "events", body={}),
    Call("DELETE", "/api/v1/namespaces/a/pods/b", "delete", "pods"),
]


class Answers:
    """Answers with 200 once it may."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may = asyncio.Event()

    async def __call__(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.may.wait()
        return web.Response(text='{"status": {"allowed": true}}')


@asynccontextmanager
async def connected(handler: Handler, fence: Fence = lambda: True) -> AsyncIterator[tuple[ApiClient, Served]]:
    async with serving(handler) as served:
        client = ApiClient(Token(served.url), observe=lambda *_: None, fence=fence)
        try:
            yield client, served
        finally:
            await client.close()


async def at_once(_: web.Request) -> web.Response:
    return web.Response(text='{"status": {"allowed": true}}')


@pytest.mark.parametrize("call", WRITES, ids=lambda call: f"{call.method} {call.resource}")
@pytest.mark.reported("kopf peering")
async def test_who_does_not_lead_writes_nothing(call: Call) -> None:
    async with connected(at_once, lambda: False) as (client, served):
        with pytest.raises(UnreachableError, match="not sent, since we do not lead"):
            await client.send(call)
    assert served.requests == []


async def test_who_does_not_lead_may_read_and_ask_what_it_may_do() -> None:
    async with connected(at_once, lambda: False) as (client, served):
        await client.send(READ)
        assert await missing_permissions(client, [Permission("create", "pods")]) == []
    assert [request.method for request in served.requests] == ["GET", "POST"]


async def test_the_fence_is_asked_again_when_a_connection_has_been_made_and_before_anything_is_sent() -> None:
    answers = [True, False]
    async with connected(at_once, lambda: answers.pop(0)) as (client, served):
        with pytest.raises(UnreachableError, match="not sent, since we do not lead"):
            await client.send(WRITES[0])
        assert answers == []
    assert served.requests == []


async def test_who_leads_writes() -> None:
    async with connected(at_once) as (client, served):
        for call in WRITES:
            assert (await client.send(call)).status == 200
    assert [request.method for request in served.requests] == ["PATCH", "POST", "POST", "DELETE"]


async def test_a_write_that_nobody_waits_for_any_more_is_seen_through_to_its_answer() -> None:
    answers = Answers()
    async with connected(answers) as (client, _):
        sending = asyncio.create_task(client.send(WRITES[0]))
        await answers.asked.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert not await client.settle(0.05)
        answers.may.set()
        assert await client.settle(5.0)


async def test_a_read_that_nobody_waits_for_any_more_holds_nothing_up() -> None:
    answers = Answers()
    async with connected(answers) as (client, _):
        sending = asyncio.create_task(client.send(READ))
        await answers.asked.wait()
        assert await client.settle(0.0)
        sending.cancel()


async def test_closing_ends_what_is_under_way() -> None:
    answers = Answers()
    async with connected(answers) as (client, _):
        sending = asyncio.create_task(client.send(WRITES[0]))
        await answers.asked.wait()
        await client.close()
        assert await client.settle(0.0)
        with pytest.raises(asyncio.CancelledError):
            await sending
        answers.may.set()
