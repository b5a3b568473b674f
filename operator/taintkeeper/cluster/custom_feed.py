"""Objects of a kind of ours as Kopf sees them, made complete.

Kopf tells at once what happens to them, but not when it has told of all of them; and where the resource is not defined
when Kopf starts, it does not look again. So they are listed when we start, whenever Kopf has begun anew and every half
minute: that costs next to nothing, since rules and policies are few. What is not in the list is gone.

Where the API server does not know the resource, there are none: that is a complete answer, and the lists go on, so that
objects are noticed soon after their definition is installed. Those that have been known stay so until a second list
says the same: of several API servers, one may be late to hear of a definition.

A list that fails changes nothing. They are what people want, not what goes on: the last that was known stays good.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Generic

import msgspec

from taintkeeper.cluster.client import ApiClient, StatusError, UnreachableError
from taintkeeper.cluster.custom_kind import CustomKind, Seen
from taintkeeper.cluster.listing import pages
from taintkeeper.cluster.rest import Rest
from taintkeeper.core.pacing import Backoff

PAGE_SIZE = 500
SWEEP_SECONDS = 30.0
SETTLE_SECONDS = 2.0
ERROR_BACKOFF = Backoff(base=0.5, cap=30.0, jitter=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomListener(Generic[Seen]):
    """Who is told of objects seen, and gone by name, and of every complete list.

    ``defined`` is told whether the API server knows the resource, when that is found out and when it changes;
    ``failed`` why a list failed.
    """

    seen: Callable[[Seen], None]
    gone: Callable[[str], None]
    listed: Callable[[], None]
    defined: Callable[[bool], None]
    failed: Callable[[str], None]


class CustomFeed(Generic[Seen]):
    """Tells of the objects of one kind. Run :meth:`run` as a task, and give :meth:`take` what Kopf sees."""

    def __init__(
        self, client: ApiClient, kind: CustomKind[Seen, Any], listener: CustomListener[Seen], random: Random
    ) -> None:
        self.last_heard = float("-inf")
        """When a complete list last came from the server, on the event loop's clock."""
        self._client = client
        self._kind = kind
        self._listener = listener
        self._random = random
        self._uids: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._defined: bool | None = None
        self._wanted = asyncio.Event()
        self._rest = Rest()

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in a watch event as Kopf has it: its type (None while Kopf lists) and the object as a dictionary."""
        item = self._kind.decode(msgspec.json.encode(event["object"]))
        if event["type"] == "DELETED":
            self._deleted.add(item.uid)
            if self._uids.get(item.name) == item.uid:
                self._drop(item.name)
            return
        self._see(item)
        if event["type"] is None:
            # Kopf lists: at the start, and after its watch was lost, when deletions may have escaped it.
            self._wanted.set()

    async def run(self) -> None:
        """List them when it is called for, until cancelled; the first time at once."""
        while True:
            self._wanted.clear()
            await self._sweep()
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(SETTLE_SECONDS)

    def hurry(self) -> None:
        """Try again now if a pause is being made: others have reached the server again."""
        self._rest.wake()

    async def _sweep(self) -> None:
        failures = 0
        while True:
            try:
                await self._list()
            except (UnreachableError, StatusError, msgspec.DecodeError) as error:
                self._listener.failed(str(error))
                await self._rest.sleep(ERROR_BACKOFF.delay(failures, self._random))
                failures += 1
            else:
                self.last_heard = asyncio.get_running_loop().time()
                self._listener.listed()
                return

    async def _list(self) -> None:
        before = dict(self._uids)
        found: set[str] = set()
        self._deleted.clear()
        try:
            async for page in pages(self._client, self._kind.resource, self._kind.path, size=PAGE_SIZE):
                for raw in page.items:
                    item = self._kind.decode(raw)
                    # The list shows the objects as they were when it began; what Kopf told of since is newer.
                    if item.uid not in self._deleted:
                        found.add(item.name)
                        self._see(item)
        except StatusError as error:
            if error.code != 404:
                raise
            if self._note_defined(False):
                return
        else:
            self._note_defined(True)
        # Only what was known before the list began: what Kopf told of meanwhile is no ghost.
        for name, uid in before.items():
            if name not in found and self._uids.get(name) == uid:
                self._drop(name)

    def _note_defined(self, defined: bool) -> bool:
        """Note whether the resource is known to the API server; return whether that is news."""
        if defined is self._defined:
            return False
        self._defined = defined
        self._listener.defined(defined)
        return True

    def _see(self, item: Seen) -> None:
        self._uids[item.name] = item.uid
        self._listener.seen(item)

    def _drop(self, name: str) -> None:
        if self._uids.pop(name, None) is not None:
            self._listener.gone(name)
