"""An API server that follows a script, at the level of :class:`ApiClient`: no sockets, so that time may be virtual."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import aiohttp
import msgspec

from taintkeeper.cluster.client import ApiClient, Call, Reply, StatusError, UnreachableError, status_message

SILENCE = math.inf


@dataclass(frozen=True)
class Stream:
    """A body that comes in steps: chunks, seconds of silence, and at the end perhaps an error; then it ends cleanly."""

    steps: tuple[bytes | float | Exception, ...] = ()

    def __init__(self, *steps: bytes | float | Exception) -> None:
        object.__setattr__(self, "steps", steps)


@dataclass(frozen=True)
class Late:
    """An answer that takes its time."""

    seconds: float
    answer: "Answer"


Answer = Stream | Reply | Exception | Late

LOST = UnreachableError("connection lost")
IDLE = Stream(*(30.0, b"\n") * 1000)
"""A watch on which nothing happens for hours; empty lines keep it from looking dead."""


@dataclass(frozen=True)
class Sent:
    """A request, and when it was sent on the event loop's clock."""

    at: float
    call: Call

    @property
    def params(self) -> dict[str, str]:
        """The query."""
        return dict(self.call.params or {})

    @property
    def line(self) -> str:
        """The method and path."""
        return f"{self.call.method} {self.call.path}"


class ScriptedApi(ApiClient):
    """Answers every request with the next answer of its script, and after its end with ``forever``.

    ``meanwhile`` is called before each answer is given, with the request.
    """

    def __init__(
        self, *script: Answer, forever: Answer = IDLE, meanwhile: Callable[[Sent], None] = lambda _: None
    ) -> None:
        self.script = list(script)
        self.forever = forever
        self.sent: list[Sent] = []
        self._meanwhile = meanwhile

    async def send(self, call: Call) -> Reply:
        """Answer a request; a stream is no answer to one."""
        answer = await self._next(call)
        assert isinstance(answer, Reply), f"the script has a stream where {call} is asked for"
        return answer

    @asynccontextmanager
    async def stream(self, call: Call, *, silence_seconds: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a stream, unless the script has a refusal."""
        answer = await self._next(call)
        if isinstance(answer, Reply):
            raise StatusError(answer.status, status_message(answer.body))
        assert isinstance(answer, Stream)
        yield cast("aiohttp.ClientResponse", _Response(answer, silence_seconds))

    async def _next(self, call: Call) -> Stream | Reply:
        self.sent.append(Sent(asyncio.get_running_loop().time(), _frozen(call)))
        answer = self.script.pop(0) if self.script else self.forever
        while isinstance(answer, Late):
            await asyncio.sleep(answer.seconds)
            answer = answer.answer
        self._meanwhile(self.sent[-1])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pauses(self) -> list[float]:
        """Return the times between requests."""
        return [after.at - before.at for before, after in pairwise(self.sent)]


def _frozen(call: Call) -> Call:
    """Copy a call, since whoever sent it may go on to change its parameters."""
    params = None if call.params is None else dict(call.params)
    return Call(call.method, call.path, call.verb, call.resource, params, call.body, call.content_type)


@dataclass
class _Response:
    stream: Stream
    silence_seconds: float

    @property
    def content(self) -> "_Response":
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        for step in self.stream.steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, bytes):
                yield step
            elif step < self.silence_seconds:
                await asyncio.sleep(step)
            else:
                await asyncio.sleep(self.silence_seconds)
                raise UnreachableError(f"silent for {self.silence_seconds} s")


def reply(status: int, body: Any = None, **headers: str) -> Reply:
    """Return an answer with a JSON body; without one the API's own for this status."""
    given = body if body is not None else {"kind": "Status", "code": status, "message": f"answered {status}"}
    return Reply(status, msgspec.json.encode(given), {name.replace("_", "-"): text for name, text in headers.items()})


def line(type_: str, object_: Any) -> bytes:
    """Return an event of a watch."""
    return msgspec.json.encode({"type": type_, "object": object_}) + b"\n"


def bookmark(version: int | str, *, end: bool = False) -> bytes:
    """Return a bookmark; ``end`` says that the initial events are complete."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Thing", "metadata": metadata})


def error(code: int) -> bytes:
    """Return an ERROR event."""
    return line("ERROR", {"kind": "Status", "code": code, "message": f"told {code}"})


def page(version: int | str, *objects: Any, more: str = "") -> Reply:
    """Return a page of a list; ``more`` is the token for the next one."""
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return reply(200, {"kind": "List", "metadata": metadata, "items": list(objects)})


class ApiByPath(ApiClient):
    """Several scripts, each for the requests of one path."""

    def __init__(self, **apis: ScriptedApi) -> None:
        self._apis = {f"/{name}": api for name, api in apis.items()}

    def _for(self, call: Call) -> ScriptedApi:
        return next(api for end, api in self._apis.items() if call.path.endswith(end))

    async def send(self, call: Call) -> Reply:
        """Answer by the script of the path."""
        return await self._for(call).send(call)

    @asynccontextmanager
    async def stream(self, call: Call, *, silence_seconds: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Stream by the script of the path."""
        async with self._for(call).stream(call, silence_seconds=silence_seconds) as response:
            yield response
