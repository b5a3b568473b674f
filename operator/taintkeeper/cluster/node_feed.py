"""Nodes as Kopf sees them, made complete.

Kopf tells what happens to nodes, but not when it has told of all of them, and after its watch was lost (HTTP 410)
not which ones were deleted meanwhile. So the nodes are listed once when we start, and again whenever Kopf has begun
anew, whenever something may have escaped us, and every few minutes; what is not in that list is gone.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from taintkeeper.cluster.client import ApiClient, StatusError, UnreachableError
from taintkeeper.cluster.listing import pages
from taintkeeper.cluster.reading import Kind, Reader
from taintkeeper.cluster.reflector import log_unreadable
from taintkeeper.cluster.rest import Rest
from taintkeeper.cluster.wire import decode_node
from taintkeeper.core.objects import Node
from taintkeeper.core.pacing import Backoff

NODES: Kind[str, Node] = Kind("nodes", "/api/v1/nodes", decode_node, lambda node: node.name)
PAGE_SIZE = 100
"""Small, since a page is taken in at one go, and nothing else gets a turn meanwhile."""
SWEEP_SECONDS = 300.0
SETTLE_SECONDS = 2.0
ERROR_BACKOFF = Backoff(base=0.5, cap=10.0, jitter=0.5)


class NodeFeed:
    """Tells of nodes seen and gone, and whether the view is complete. Run :meth:`run` as a task."""

    def __init__(
        self,
        client: ApiClient,
        random: Random,
        *,
        seen: Callable[[Node], None],
        gone: Callable[[str], None],
        alive: Callable[[bool], None],
        failed: Callable[[str], None],
        unreadable: Callable[[str, str], None] = log_unreadable,
    ) -> None:
        self.last_heard = float("-inf")
        """When anything last came from the server, on the event loop's clock."""
        self._client = client
        self._random = random
        self._seen = seen
        self._gone = gone
        self._alive = alive
        self._failed = failed
        self._uids: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._reader = Reader(NODES, unreadable)
        self._wanted = asyncio.Event()
        self._rest = Rest()
        self._settling = False
        self._doubts = 0
        self._interrupted = False

    @property
    def unreadable(self) -> int:
        """How many nodes there are that cannot be read."""
        return self._reader.unreadable

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in a watch event as Kopf has it: its type (None while Kopf lists) and the object as a dictionary."""
        self.last_heard = asyncio.get_running_loop().time()
        raw = msgspec.Raw(msgspec.json.encode(event["object"]))
        node = self._reader.read(raw)
        if node is None:
            return
        if event["type"] == "DELETED":
            self._reader.forget(raw)
            self._deleted.add(node.uid)
            if self._uids.get(node.name) == node.uid:
                self._drop(node.name)
            return
        self._see(node)
        if event["type"] is None:
            # Kopf lists: at the start, and after its watch was lost, when deletions may have escaped it.
            self._settling = True
            self._wanted.set()

    def hurry(self) -> None:
        """Try again now if a pause is being made: others have reached the server again."""
        self._rest.wake()

    def doubt(self) -> None:
        """Note that something may have escaped us: what is known is stale until all nodes have been listed anew."""
        self._doubts += 1
        self._alive(False)
        self._wanted.set()

    def interrupted(self, interrupted: bool) -> None:
        """Note that Kopf's own watch of nodes fails, or works again; meanwhile no list of ours stays true for long."""
        self._interrupted = interrupted
        self.doubt()

    async def run(self) -> None:
        """List the nodes when it is called for, until cancelled; the first time at once."""
        while True:
            self._wanted.clear()
            self._settling = False
            await self._sweep()
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                continue
            if self._settling:
                await asyncio.sleep(SETTLE_SECONDS)

    async def _sweep(self) -> None:
        failures = 0
        while True:
            doubts = self._doubts
            try:
                await self._list()
            except (UnreachableError, StatusError, msgspec.DecodeError) as error:
                self._alive(False)
                self._failed(str(error))
                await self._rest.sleep(ERROR_BACKOFF.delay(failures, self._random))
                failures += 1
            else:
                self.last_heard = asyncio.get_running_loop().time()
                if doubts == self._doubts and not self._interrupted:
                    self._alive(True)
                return

    async def _list(self) -> None:
        before = dict(self._uids)
        found: set[str] = set()
        self._deleted.clear()
        self._reader.begin_list()
        async for page in pages(self._client, NODES.resource, NODES.path, size=PAGE_SIZE):
            for raw in page.items:
                self._take_listed(raw, found)
        self._reader.end_list()
        # Only what was known before the list began: a node that Kopf told of meanwhile is no ghost.
        for name, uid in before.items():
            if name not in found and self._uids.get(name) == uid:
                self._drop(name)

    def _take_listed(self, raw: msgspec.Raw, found: set[str]) -> None:
        node = self._reader.read(raw)
        if node is None:
            # One that was known stays as it was last: it is not gone.
            found.add(self._reader.key(raw) or "")
        elif node.uid not in self._deleted:
            # The list shows the cluster as it was when it began; what Kopf told of since is newer.
            found.add(node.name)
            self._see(node)

    def _see(self, node: Node) -> None:
        self._uids[node.name] = node.uid
        self._seen(node)

    def _drop(self, name: str) -> None:
        if self._uids.pop(name, None) is not None:
            self._gone(name)
