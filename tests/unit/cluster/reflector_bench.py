"""A reflector of things at work against a scripted API server, in virtual time."""

import asyncio
import contextlib
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.reflector import Kind, Listener, Reflector
from tests.unit.cluster.scripted_api import ScriptedApi, Sent, Stream, bookmark, line, page

PATH = "/apis/example.com/v1/things"


class _Metadata(msgspec.Struct):
    name: str
    uid: str


class Thing(msgspec.Struct):
    """What is watched; told apart by its UID. One whose size is no number cannot be read."""

    metadata: _Metadata
    size: int = 0


THINGS: Kind[str, Thing] = Kind("things", PATH, msgspec.json.Decoder(Thing).decode, lambda each: each.metadata.uid)


def thing(uid: str, version: int = 1, *, name: str = "", **more: Any) -> dict[str, Any]:
    """Return a thing as the API spells it."""
    return {"metadata": {"name": name or uid, "uid": uid, "resourceVersion": str(version)}, **more}


def added(uid: str, version: int = 1, *, name: str = "") -> bytes:
    """Return the event that a thing came."""
    return line("ADDED", thing(uid, version, name=name))


def unreadable(type_: str, uid: str, version: int = 1) -> bytes:
    """Return an event with a thing that makes no sense."""
    return line(type_, thing(uid, version, size="big"))


def deleted(uid: str, version: int = 1) -> bytes:
    """Return the event that a thing went."""
    return line("DELETED", thing(uid, version))


def streamed_list(version: int, *uids: str, then: Iterable[bytes | float | Exception] = (60.0,)) -> Stream:
    """Return a watch that begins with a complete list."""
    return Stream(*map(added, uids), bookmark(version, end=True), *then)


def paged_list(version: int, *uids: str, more: str = "") -> Reply:
    """Return a page of things."""
    return page(version, *map(thing, uids), more=more)


class ReflectorBench:
    """Runs a reflector and writes down what its listener was told, a short line each, ``alive`` where it changes."""

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        self.told: list[str] = []
        self.alive = False
        listener: Listener[str, Thing] = Listener(
            seen=lambda each: self.told.append(f"seen {each.metadata.uid}"),
            gone=lambda uid: self.told.append(f"gone {uid}"),
            alive=self._alive,
            failed=lambda _: self.told.append("failed"),
            unreadable=lambda what, _: self.told.append(f"unreadable {what}"),
        )
        self.reflector = Reflector(api, THINGS, listener, Random(0))

    def _alive(self, alive: bool) -> None:
        if alive is not self.alive:
            self.told.append("alive" if alive else "stale")
        self.alive = alive

    async def run(self, seconds: float) -> list[str]:
        """Let it run for so long, then return all that was told."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.reflector.run()
        return self.told

    def requests(self) -> list[str]:
        """Return each request in short: a list of everything, or a watch from a version."""
        return [_short(sent) for sent in self.api.sent]


async def follow(api: ScriptedApi, seconds: float = 20.0) -> ReflectorBench:
    """Return a bench that has run for so long."""
    bench = ReflectorBench(api)
    await bench.run(seconds)
    return bench


def _short(sent: Sent) -> str:
    params = sent.params
    if "watch" not in params:
        return f"page {params['continue']}" if "continue" in params else "page"
    return "stream" if "sendInitialEvents" in params else f"watch from {params['resourceVersion']}"
