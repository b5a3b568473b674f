"""A small HTTP server whose every answer is up to the test."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Served:
    """Where the server is and what it was asked."""

    url: str = ""
    requests: list[web.Request] = field(default_factory=list)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])

    def authorizations(self) -> list[str | None]:
        """Return what each request said of who sent it."""
        return [request.headers.get("Authorization") for request in self.requests]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """Serve on a free port of 127.0.0.1."""
    served = Served()

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        served.requests.append(request)
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        served.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield served
    finally:
        await runner.cleanup()


@dataclass
class Tunnel:
    """An HTTP proxy that leads to one port whatever it is asked for, and what it was asked."""

    url: str = ""
    asked: list[str] = field(default_factory=list)


@asynccontextmanager
async def tunnel(*, to: int) -> AsyncIterator[Tunnel]:
    """Proxy from a free port of 127.0.0.1 to this one."""
    made = Tunnel()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.asked.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        there, back = await asyncio.open_connection("127.0.0.1", to)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()
