"""The session to the API server, over real sockets."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import kopf
import pytest
from aiohttp import web

from taintkeeper import __version__
from taintkeeper.cluster.client import MERGE_PATCH, ApiClient, Call, StatusError, UnreachableError
from taintkeeper.cluster.credentials import CredentialsError
from tests.unit.cluster.http_server import Handler, Served, serving

GET = Call("GET", "/api/v1/nodes", "list", "nodes")
Observed = list[tuple[str, str, int]]


class Token:
    """Credentials that are renewed when they are refused: the next of these tokens, then the last one for ever."""

    proxy: str | None = None

    def __init__(self, server: str, *tokens: str, fails: Exception | None = None) -> None:
        self.server = server
        self.expired = 0
        self._tokens = list(tokens) or ["first"]
        self._fails = fails

    def ssl_context(self) -> ssl.SSLContext | None:
        return None

    async def authorization(self) -> str:
        return f"Bearer {self._tokens[0]}"

    def expire(self) -> None:
        self.expired += 1
        if len(self._tokens) > 1:
            self._tokens.pop(0)
        if self._fails is not None:
            raise self._fails

    def for_kopf(self) -> kopf.ConnectionInfo:
        raise NotImplementedError


@asynccontextmanager
async def connected(
    handler: Handler, *tokens: str, fails: Exception | None = None, timeout_seconds: float = 5.0
) -> AsyncIterator[tuple[ApiClient, Served, Token, Observed]]:
    observed: Observed = []
    async with serving(handler) as served:
        credentials = Token(served.url, *tokens, fails=fails)
        client = ApiClient(
            credentials,
            observe=lambda verb, resource, status, seconds: observed.append((verb, resource, status)),
            timeout_seconds=timeout_seconds,
        )
        try:
            yield client, served, credentials, observed
        finally:
            await client.close()


def answering(status: int, text: str = "{}") -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers={"Retry-After": "3"})

    return handle


def accepting(*tokens: str) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        known = request.headers["Authorization"].removeprefix("Bearer ") in tokens
        return web.Response(status=200 if known else 401, text="{}")

    return handle


async def _hang(_: web.Request) -> web.Response:
    await asyncio.sleep(60.0)
    return web.Response()


async def _drop(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_a_redirection_is_not_followed_since_another_request_would_arrive_there() -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "/login"}) if request.path != "/login" else web.Response()

    async with connected(handle) as (client, served, _, _):
        reply = await client.send(Call("POST", "/api/v1/namespaces/a/pods/b/eviction", "create", "pods/eviction"))
        assert reply.status == 302
        with pytest.raises(StatusError, match="302"):
            reply.raise_for_status()
    assert [(request.method, request.path) for request in served.requests] == [
        ("POST", "/api/v1/namespaces/a/pods/b/eviction")
    ]


async def test_a_request_says_what_it_wants_and_who_sends_it() -> None:
    call = Call("PATCH", "/api/v1/nodes/n1", "patch", "nodes", {"a": "b c"}, {"x": [1, None]}, MERGE_PATCH)
    async with connected(answering(200, '{"kind":"Node"}')) as (client, served, _, observed):
        reply = await client.send(call)
    (request,) = served.requests
    assert (request.method, request.path_qs) == ("PATCH", "/api/v1/nodes/n1?a=b+c")
    assert await request.json() == {"x": [1, None]}
    assert {name: request.headers[name] for name in ("Content-Type", "Accept", "Authorization", "User-Agent")} == {
        "Content-Type": "application/merge-patch+json",
        "Accept": "application/json",
        "Authorization": "Bearer first",
        "User-Agent": f"taintkeeper/{__version__}",
    }
    assert (reply.status, reply.body, reply.headers["retry-after"]) == (200, b'{"kind":"Node"}', "3")
    assert observed == [("patch", "nodes", 200)]


async def test_a_server_may_be_behind_a_path() -> None:
    async with serving(answering(200)) as served:
        client = ApiClient(Token(f"{served.url}/k8s/clusters/c-1"), observe=lambda *_: None)
        await client.send(GET)
        await client.close()
    assert served.requests[0].path == "/k8s/clusters/c-1/api/v1/nodes"


@pytest.mark.parametrize("status", [400, 403, 404, 409, 429, 500])
async def test_an_answer_that_says_no_is_an_answer(status: int) -> None:
    async with connected(answering(status, '{"message": "no"}')) as (client, served, _, observed):
        reply = await client.send(GET)
        with pytest.raises(StatusError, match=f"{status}: no") as caught:
            reply.raise_for_status()
    assert (reply.status, caught.value.code, caught.value.message) == (status, status, "no")
    assert observed == [("list", "nodes", status)]
    assert len(served.requests) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html>Bad Gateway", "<html>Bad Gateway"),
        ("", ""),
        ("[]", "[]"),
        ('{"a": 1}', '{"a": 1}'),
        ("x" * 999, "x" * 200),
    ],
    ids=["a page", "nothing", "a list", "another object", "a long page"],
)
async def test_an_error_that_is_no_status_is_told_by_its_beginning(text: str, message: str) -> None:
    async with connected(answering(502, text)) as (client, *_):
        with pytest.raises(StatusError) as caught:
            (await client.send(GET)).raise_for_status()
    assert caught.value.message == message


async def test_credentials_that_are_refused_are_renewed_once() -> None:
    async with connected(accepting("second"), "first", "second") as (client, served, credentials, observed):
        assert (await client.send(GET)).status == 200
        assert (await client.send(GET)).status == 200
    assert served.authorizations() == ["Bearer first", "Bearer second", "Bearer second"]
    assert credentials.expired == 1
    assert observed == [("list", "nodes", 200)] * 2


async def test_credentials_of_many_requests_that_are_refused_together_are_renewed_once() -> None:
    async with connected(accepting("second"), "first", "second", "third") as (client, _, credentials, observed):
        await asyncio.gather(*(client.send(GET) for _ in range(20)))
    assert credentials.expired == 1
    assert observed == [("list", "nodes", 200)] * 20


async def test_credentials_that_are_refused_again_are_an_answer_that_says_no() -> None:
    async with connected(accepting(), "first", "second", "third") as (client, served, credentials, observed):
        assert (await client.send(GET)).status == 401
    assert len(served.requests) == 2
    assert credentials.expired == 1
    assert observed == [("list", "nodes", 401)]


async def test_a_stream_renews_credentials_too() -> None:
    async with connected(accepting("second"), "first", "second") as (client, served, *_):
        assert await _pieces(client) == [b"{}"]
    assert served.authorizations() == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("streaming", [False, True], ids=["request", "stream"])
async def test_credentials_that_cannot_be_renewed_count_as_no_answer(streaming: bool) -> None:
    broken = CredentialsError("KUBECONFIG: 'x' cannot be used: half written")
    async with connected(accepting("second"), fails=broken) as (client, *_):
        with pytest.raises(UnreachableError, match="half written"):
            await _ask(client, streaming)


async def _ask(client: ApiClient, streaming: bool) -> None:
    await (_pieces(client) if streaming else client.send(GET))


async def _pieces(client: ApiClient) -> list[bytes]:
    async with client.stream(GET, silence_seconds=0.3) as response:
        return [piece async for piece in response.content.iter_any()]


@pytest.mark.parametrize("streaming", [False, True], ids=["request", "stream"])
@pytest.mark.parametrize("handler", [_hang, _drop], ids=["no answer", "connection dropped"])
async def test_no_answer_is_told_as_such(handler: Handler, streaming: bool) -> None:
    async with connected(handler, timeout_seconds=0.2) as (client, _, _, observed):
        with pytest.raises(UnreachableError) as caught:
            await _ask(client, streaming)
    assert str(caught.value)
    assert observed == ([] if streaming else [("list", "nodes", 0)])


@pytest.mark.parametrize("streaming", [False, True], ids=["request", "stream"])
async def test_a_refused_connection_is_told_as_such(streaming: bool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    observed: Observed = []
    client = ApiClient(Token(url), observe=lambda verb, resource, status, _: observed.append((verb, resource, status)))
    with pytest.raises(UnreachableError):
        await _ask(client, streaming)
    await client.close()
    assert observed == ([] if streaming else [("list", "nodes", 0)])


async def _in_pieces(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"one\n")
    await asyncio.sleep(0.1)
    await response.write(b"two\n")
    return response


async def test_a_stream_comes_in_pieces_for_as_long_as_it_likes() -> None:
    async with connected(_in_pieces, timeout_seconds=0.05) as (client, *_):
        assert await _pieces(client) == [b"one\n", b"two\n"]


async def _falls_silent(request: web.Request) -> web.StreamResponse:
    response = await _in_pieces(request)
    await asyncio.sleep(60.0)
    return response


async def _breaks(request: web.Request) -> web.StreamResponse:
    response = await _in_pieces(request)
    await _drop(request)
    return response


@pytest.mark.parametrize("handler", [_falls_silent, _breaks], ids=["silence", "connection dropped"])
async def test_a_stream_that_breaks_while_it_is_read_is_told_as_such(handler: Handler) -> None:
    async with connected(handler) as (client, *_):
        with pytest.raises(UnreachableError) as caught:
            await _pieces(client)
    assert str(caught.value)


@pytest.mark.parametrize("status", [400, 403, 410, 422, 500])
async def test_a_stream_that_is_refused_says_why(status: int) -> None:
    async with connected(answering(status, '{"message": "no"}')) as (client, *_):
        with pytest.raises(StatusError) as caught:
            async with client.stream(GET, silence_seconds=1.0):
                pytest.fail("there is nothing to read")
    assert (caught.value.code, caught.value.message) == (status, "no")
