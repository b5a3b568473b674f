"""Signs that a controller of kube-controller-manager runs: the events that it sends, and the taints that it writes.

Its events are watched from now on. No reflector, since only what is new matters: the watch begins at the present, and
what was sent before, or while it was broken, is never asked for. The API server keeps no cache of events, so that their
watches have no bookmarks to tell that they live: each ends by itself after some minutes, and what is silent for longer
is dead.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.client import ApiClient, Call, StatusError, UnreachableError
from taintkeeper.cluster.listing import Page
from taintkeeper.core.pacing import Backoff

PERMISSIONS = (Permission("list", "events"), Permission("watch", "events"))

PATH = "/api/v1/events"
TIMEOUT_SECONDS = (240, 300)
SILENCE_SECONDS = 330.0
ERROR_BACKOFF = Backoff(base=1.0, cap=60.0, jitter=0.5)
STEADY_SECONDS = 10.0
"""After a watch that lasted so long pauses begin anew."""


class _Version(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Involved(msgspec.Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Event(msgspec.Struct, rename="camel"):
    """What is read of an Event, and of the Status that an ERROR consists of."""

    metadata: _Version = msgspec.field(default_factory=_Version)
    involved_object: _Involved = msgspec.field(default_factory=_Involved)
    reason: str = ""
    message: str = ""
    code: int = 0


class _Change(msgspec.Struct):
    type: str
    object: _Event


_page_decoder = msgspec.json.Decoder(Page)
_change_decoder = msgspec.json.Decoder(_Change)

SIGNS = ("ADDED", "MODIFIED")
"""An event that is sent again is a change of the first one. One that is deleted has only become too old."""


class SignWatch:
    """Watches the events that a component sends. Run :meth:`run` as a task.

    ``component`` is the ``reportingComponent`` of its events. ``seen`` is told of each in a few words, ``failed`` why
    the watch cannot be had, once until it has worked again.
    """

    def __init__(
        self,
        client: ApiClient,
        component: str,
        random: Random,
        *,
        seen: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        self._client = client
        self._selector = f"reportingComponent={component}"
        self._random = random
        self._seen = seen
        self._failed = failed
        self._version = ""

    async def run(self) -> None:
        """Watch until cancelled, whatever goes wrong; what ends soon is begun anew ever more seldom."""
        brief, told = 0, False
        while True:
            begun = self._now()
            why = await self._try()
            if self._now() - begun >= STEADY_SECONDS:
                brief, told = 0, False
            if why is not None and not told:
                told = True
                self._failed(why)
            await asyncio.sleep(ERROR_BACKOFF.delay(brief, self._random))
            brief += 1

    async def _try(self) -> str | None:
        """Watch until the watch ends; return why it broke, None where it ended as it should."""
        try:
            await self._follow()
        except UnreachableError as error:
            return str(error)
        except (StatusError, msgspec.DecodeError, ValueError) as error:
            # Whatever it was, the place in the history is the least of what is trusted now.
            self._version = ""
            return None if isinstance(error, StatusError) and error.code == 410 else str(error)
        return None

    async def _follow(self) -> None:
        if not self._version:
            self._version = await self._present()
        params = {
            "fieldSelector": self._selector,
            "watch": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(self._random.randint(*TIMEOUT_SECONDS)),
        }
        call = Call("GET", PATH, "watch", "events", params)
        async with self._client.stream(call, silence_seconds=SILENCE_SECONDS) as response:
            async for line in response.content:
                if line.strip():
                    self._take(line)

    async def _present(self) -> str:
        """Return the place in the history where we are now; of the events themselves none is wanted."""
        params = {"fieldSelector": self._selector, "limit": "1"}
        reply = await self._client.send(Call("GET", PATH, "list", "events", params))
        reply.raise_for_status()
        return _page_decoder.decode(reply.body).metadata.resource_version

    def _take(self, line: bytes) -> None:
        change = _change_decoder.decode(line)
        event = change.object
        if change.type == "ERROR":
            raise StatusError(event.code, event.message)
        self._version = event.metadata.resource_version
        if change.type in SIGNS:
            self._seen(_describe(event))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


MANAGER = "kube-controller-manager"
"""Whose changes of objects those of all its controllers are, in ``metadata.managedFields``."""


class TaintWrites:
    """Finds out from nodes when kube-controller-manager changed taints, of which ``seen`` is told in a few words.

    Of its controllers the node-lifecycle-controller alone does that. Who wrote the list of taints last has it among
    its managed fields (the list is atomic); so what is new since a node was seen before, and is
    kube-controller-manager's, was written meanwhile.
    """

    def __init__(self, seen: Callable[[str], None]) -> None:
        self._seen = seen
        self._taints: dict[str, Any] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in a watch event of a node, as Kopf hands it to its handlers."""
        node = event["object"]
        name = node["metadata"]["name"]
        if event["type"] == "DELETED":
            self._taints.pop(name, None)
            return
        taints = node.get("spec", {}).get("taints")
        before = self._taints.setdefault(name, taints)
        if taints != before:
            self._taints[name] = taints
            if any(map(_manages_taints, node["metadata"].get("managedFields", ()))):
                self._seen(f"{MANAGER} changed the taints of node {name}")


def _manages_taints(entry: Mapping[str, Any]) -> bool:
    return entry.get("manager") == MANAGER and "f:taints" in entry.get("fieldsV1", {}).get("f:spec", {})


def _describe(event: _Event) -> str:
    """Say in a few words what an event tells, on one line."""
    involved = event.involved_object
    name = f"{involved.namespace}/{involved.name}" if involved.namespace else involved.name
    message = " ".join(event.message.split())
    return f"event {event.reason} on {involved.kind} {name}: {message}"
