"""Keeps a view of one kind of object up to date: list, watch, and again, for as long as the process lives.

What it has to get right, since decisions rest on it:

* The first list is streamed by the server (``sendInitialEvents``, KEP-3157); one that refuses that is asked for pages.
* HTTP 410 and an ERROR event with code 410 alike mean that our place in the history is lost: list again. What has
  vanished meanwhile is found by comparing the new list with what was known, and told as gone.
* Any other error leads to a growing, jittered pause and a watch from where we were.
* A watch that says nothing for 90 s is dead, whatever TCP thinks: the server sends bookmarks every minute.
* A watch that simply ends is resumed at once. Servers do that every few minutes, and in bursts.
* An object that makes no sense is passed over (:mod:`taintkeeper.cluster.reading`), and the history goes on behind it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Generic

import aiohttp
import msgspec

from taintkeeper.cluster.client import ApiClient, Call, StatusError, UnreachableError
from taintkeeper.cluster.listing import ListMeta, pages
from taintkeeper.cluster.reading import Item, Key, Kind, Reader
from taintkeeper.cluster.rest import Rest
from taintkeeper.core.pacing import Backoff

__all__ = ["Kind", "Listener", "Reflector"]

logger = logging.getLogger("taintkeeper")

PAGE_SIZE = 2000
SILENCE_SECONDS = 90.0
TIMEOUT_SECONDS = (300, 600)
STREAMING_REFUSED = frozenset({400, 422})
ERROR_BACKOFF = Backoff(base=0.5, cap=30.0, jitter=0.5)
QUICK_SECONDS = 1.0
"""A watch that ends sooner than this is not resumed at once, or a broken proxy would have us turn in circles."""
STEADY_SECONDS = 10.0
"""After a watch that worked for so long before it broke, pauses begin anew; what breaks sooner makes them grow."""


def log_unreadable(what: str, why: str) -> None:
    """Say that an object is passed over."""
    logger.warning("%s is passed over, since it cannot be read: %s", what, why)


@dataclass(frozen=True, slots=True)
class Listener(Generic[Key, Item]):
    """Who is told: of every object added or modified, of every key gone, and when the view can be relied on or not.

    ``unreadable`` is told once of each object that is passed over: what it is, and why.
    """

    seen: Callable[[Item], None]
    gone: Callable[[Key], None]
    alive: Callable[[bool], None]
    failed: Callable[[str], None]
    unreadable: Callable[[str, str], None] = log_unreadable


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Version(msgspec.Struct, rename={"resource_version": "resourceVersion"}):
    resource_version: str


class _Placed(msgspec.Struct):
    """What tells of any object where in the history it stands."""

    metadata: _Version


class _Marked(msgspec.Struct):
    """What is read of a bookmark, and of an ERROR."""

    metadata: ListMeta = field(default_factory=ListMeta)
    code: int = 0
    message: str = ""


_event_decoder = msgspec.json.Decoder(_Event)
_placed_decoder = msgspec.json.Decoder(_Placed)
_marked_decoder = msgspec.json.Decoder(_Marked)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Reflector(Generic[Key, Item]):
    """Lists and watches one kind; tells its listener. Run :meth:`run` as a task that lives as long as the process."""

    def __init__(self, client: ApiClient, kind: Kind[Key, Item], listener: Listener[Key, Item], random: Random) -> None:
        self.last_heard = float("-inf")
        """When anything last came from the server, on the event loop's clock."""
        self._client = client
        self._kind = kind
        self._listener = listener
        self._reader = Reader(kind, listener.unreadable)
        self._random = random
        self._known: set[Key] = set()
        self._listing: set[Key] | None = None
        self._version: str | None = None
        self._latest: msgspec.Raw | None = None
        self._streaming = True
        self._failures = 0
        self._rest = Rest()
        self._complete_since: float | None = None

    @property
    def unreadable(self) -> int:
        """How many objects there are that cannot be read, and so are not part of the view as they are."""
        return self._reader.unreadable

    async def run(self) -> None:
        """Keep the view up to date until cancelled."""
        while True:
            self._failures += 1
            self._complete_since = None
            try:
                await self._follow()
                at_once, steady_seconds = True, QUICK_SECONDS
            except (UnreachableError, StatusError, msgspec.DecodeError) as error:
                at_once, steady_seconds = self._lose(error), STEADY_SECONDS
            if self._complete_since is not None and self._now() - self._complete_since > steady_seconds:
                self._failures = 0
            pause = ERROR_BACKOFF.delay(max(0, self._failures - 1), self._random)
            if at_once and self._failures <= 1:
                await asyncio.sleep(0)
            else:
                await self._rest.sleep(pause)

    def hurry(self) -> None:
        """Try again now if a pause is being made: others have reached the server again."""
        self._rest.wake()

    def _lose(self, error: Exception) -> bool:
        """Note that the watch broke; return whether to begin anew at once."""
        self._note_place()
        self._listener.alive(False)
        self._listing = None
        code = error.code if isinstance(error, StatusError) else 0
        if self._version is None and self._streaming and code in STREAMING_REFUSED:
            self._streaming = False
            return True
        self._listener.failed(str(error))
        had_place, gone = self._version is not None, code == 410
        if gone:
            self._version = None
        return gone and had_place

    async def _follow(self) -> None:
        self._note_place()
        if self._version is None and not self._streaming:
            await self._list_pages()
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._random.randint(*TIMEOUT_SECONDS)),
        }
        if self._version is None:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            self._begin_listing()
        else:
            params["resourceVersion"] = self._version
        call = Call("GET", self._kind.path, "watch", self._kind.resource, params)
        async with self._client.stream(call, silence_seconds=SILENCE_SECONDS) as response:
            if self._version is not None:
                self._rely()
            async for line in _lines(response):
                self.last_heard = self._now()
                self._take(line)
        if self._listing is not None:
            raise UnreachableError("the watch ended before the list was complete")

    async def _list_pages(self) -> None:
        self._begin_listing()
        async for page in pages(self._client, self._kind.resource, self._kind.path, size=PAGE_SIZE):
            for raw in page.items:
                self._see(raw)
            self.last_heard = self._now()
            version = page.metadata.resource_version
        self._complete(version)

    def _begin_listing(self) -> None:
        self._listing = set()
        self._reader.begin_list()

    def _take(self, line: bytes) -> None:
        event = _event_decoder.decode(line)
        match event.type:
            case "ADDED" | "MODIFIED":
                self._see(event.object)
            case "DELETED":
                self._drop(event.object)
            case "BOOKMARK":
                self._mark(event.object)
                return
            case "ERROR":
                status = _marked_decoder.decode(event.object)
                raise StatusError(status.code, status.message)
            case _:
                return
        if self._listing is None:
            self._latest = event.object

    def _note_place(self) -> None:
        """Read our place in the history from the latest event: once for each watch, not once for each event."""
        latest, self._latest = self._latest, None
        if latest is not None:
            # From an object that does not tell, the place is where it was: the next one will tell.
            with suppress(msgspec.DecodeError):
                self._version = _placed_decoder.decode(latest).metadata.resource_version

    def _mark(self, raw: msgspec.Raw) -> None:
        metadata = _marked_decoder.decode(raw).metadata
        if self._listing is None:
            self._version, self._latest = metadata.resource_version, None
        elif INITIAL_EVENTS_END in (metadata.annotations or {}):
            self._complete(metadata.resource_version)

    def _complete(self, version: str) -> None:
        found, self._listing = self._listing or set(), None
        for key in self._known - found:
            self._listener.gone(key)
        self._known = found
        self._reader.end_list()
        self._version = version
        self._rely()

    def _rely(self) -> None:
        self._complete_since = self._now()
        self._listener.alive(True)

    def _see(self, raw: msgspec.Raw) -> None:
        item = self._reader.read(raw)
        if item is None:
            self._keep(self._reader.key(raw))
            return
        key = self._kind.key(item)
        # Known at once, even if the list breaks off: the next one tells whether it is still there.
        self._known.add(key)
        self._keep(key)
        self._listener.seen(item)

    def _keep(self, key: Key | None) -> None:
        """Note that what is known by this key is still there."""
        if self._listing is not None and key in self._known:
            self._listing.add(key)

    def _drop(self, raw: msgspec.Raw) -> None:
        self._reader.forget(raw)
        key = self._reader.key(raw)
        if key is None:
            # Nobody can tell what went: the next list will.
            return
        self._known.discard(key)
        if self._listing is not None:
            self._listing.discard(key)
        self._listener.gone(key)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of a body, however long; let others have their turn between the chunks."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
        await asyncio.sleep(0)
