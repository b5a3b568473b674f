"""One session to the API server: raw requests and streams, without models."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter

from taintkeeper import __version__
from taintkeeper.cluster.credentials import Credentials, CredentialsError

CONNECT_SECONDS = 10.0
CONNECTIONS = 400
"""More than all that may be under way together: taints alone take 256, and evictions must not stand behind them."""

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON = "application/json"

NOT_LEADER = "not sent, since we do not lead"
UNFENCED = frozenset({"selfsubjectaccessreviews"})
"""What is posted and yet changes nothing, so that whoever does not lead may send it too."""

Observer = Callable[[str, str, int, float], None]
"""Told of every request: verb, resource, status (0 where none came), seconds."""

Fence = Callable[[], bool]
"""Says whether we may write at this moment."""


class UnreachableError(Exception):
    """No answer came: the connection failed, the time was up, or there are no credentials to ask with."""


class StatusError(Exception):
    """The API server answered with an error; ``code`` is the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the API server."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def raise_for_status(self) -> None:
        """Raise :class:`StatusError` unless the request was granted."""
        if self.status >= 300:
            raise StatusError(self.status, status_message(self.body))


@dataclass(frozen=True, slots=True)
class Call:
    """What to ask for. ``verb`` and ``resource`` are the words that RBAC and metrics use."""

    method: str
    path: str
    verb: str
    resource: str
    params: Mapping[str, str] | None = None
    body: Any = None
    content_type: str = JSON

    @property
    def writes(self) -> bool:
        """Whether it changes anything on the cluster."""
        return self.method != "GET" and self.resource not in UNFENCED


class ApiClient:
    """Sends requests with our credentials; renews them once when the server no longer takes them.

    Every write passes ``fence``: where it says no, nothing is sent, and :class:`UnreachableError` is raised instead. A
    write that has been sent is seen through to its answer even when nobody waits for that any more.
    """

    def __init__(
        self, credentials: Credentials, *, observe: Observer, timeout_seconds: float = 30.0, fence: Fence = lambda: True
    ) -> None:
        self._credentials = credentials
        self._observe = observe
        self._fence = fence
        self._writes: set[asyncio.Task[Reply]] = set()
        self._renewing = asyncio.Lock()
        self._renewals = 0
        self._limits = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_SECONDS)
        self._session = aiohttp.ClientSession(
            base_url=credentials.server + "/",
            connector=aiohttp.TCPConnector(ssl=credentials.ssl_context() or True, limit=CONNECTIONS),
            headers={"User-Agent": f"taintkeeper/{__version__}", "Accept": JSON},
        )

    async def close(self) -> None:
        """Close every connection, and with them end what is still under way."""
        for task in self._writes:
            task.cancel()
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self._session.close()

    async def settle(self, seconds: float) -> bool:
        """Wait, for so many seconds at most, until no write is under way; return whether that is so."""
        if not self._writes:
            return True
        _, under_way = await asyncio.wait(self._writes, timeout=seconds)
        return not under_way

    async def send(self, call: Call) -> Reply:
        """Send one request and return the answer, whatever it says; raises :class:`UnreachableError`."""
        if not call.writes:
            return await self._exchange(call)
        task = asyncio.get_running_loop().create_task(self._exchange(call))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def _exchange(self, call: Call) -> Reply:
        begun = time.monotonic()
        status = 0
        try:
            async with self._open(call, self._limits) as response:
                body = await response.read()
                status = response.status
                return Reply(status, body, response.headers)
        finally:
            self._observe(call.verb, call.resource, status, time.monotonic() - begun)

    async def server_time(self) -> float | None:
        """Return the API server's own time, in whole seconds since the epoch; None where it does not tell.

        Raises :class:`UnreachableError`.
        """
        reply = await self.send(Call("GET", "/version", "get", "version"))
        try:
            return parsedate_to_datetime(reply.headers.get("Date", "")).timestamp()
        except ValueError:
            return None

    @asynccontextmanager
    async def stream(self, call: Call, *, silence_seconds: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a response to be read as it comes.

        Raises :class:`UnreachableError` from here, and from the body of the ``async with`` when the connection breaks
        or nothing comes for ``silence_seconds``; :class:`StatusError` when the request is refused.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds)
        async with self._open(call, limits) as response:
            if response.status >= 300:
                raise StatusError(response.status, status_message(await response.read()))
            yield response

    @asynccontextmanager
    async def _open(self, call: Call, limits: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        renewals = self._renewals
        try:
            response = await self._request(call, limits)
            if response.status == 401:
                response.release()
                await self._renew(renewals)
                response = await self._request(call, limits)
            async with response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError, CredentialsError) as error:
            fenced = isinstance(error.__cause__, UnreachableError)
            raise UnreachableError(NOT_LEADER if fenced else str(error) or type(error).__name__) from error

    async def _renew(self, known: int) -> None:
        """Renew the credentials, unless that was done since ``known`` renewals: many are refused together."""
        async with self._renewing:
            if self._renewals == known:
                await asyncio.to_thread(self._credentials.expire)
                self._renewals += 1

    def _passes(self, call: Call) -> Fence:
        return self._fence if call.writes else lambda: True

    async def _request(self, call: Call, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if not self._passes(call)():
            raise UnreachableError(NOT_LEADER)
        headers = {}
        if (authorization := await self._credentials.authorization()) is not None:
            headers["Authorization"] = authorization
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        return await self._session.request(
            call.method,
            call.path.lstrip("/"),
            params=call.params,
            data=None if call.body is None else _Body(msgspec.json.encode(call.body), self._passes(call)),
            headers=headers,
            timeout=limits,
            # Asked for each time: after a refusal they are new, and so is the connection then.
            ssl=self._credentials.ssl_context() or True,
            proxy=self._credentials.proxy,
            # A POST would arrive as a GET elsewhere, and the answer to that would be taken for ours.
            allow_redirects=False,
        )


class _Body(aiohttp.BytesPayload):
    """A request's body that asks the fence at the last moment: before that, a connection may have to be made.

    aiohttp sends the headers together with the beginning of the body.
    """

    def __init__(self, content: bytes, fence: Fence) -> None:
        super().__init__(content)
        self._fence = fence

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if not self._fence():
            raise UnreachableError(NOT_LEADER)
        await super().write_with_length(writer, content_length)


def status_message(body: bytes) -> str:
    """Return what an error's body says: the message of a ``Status`` object, else the body's beginning."""
    try:
        return str(msgspec.json.decode(body)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
