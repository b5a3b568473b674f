"""What every actor is: a set of keys that need a look, filled by changes of objects, and one look at a time."""

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar

from testbed.embedded.registry import Registry
from testbed.embedded.resources import Object
from testbed.embedded.store import Change

LOOKS_PER_TURN = 50
"""How many keys are looked at before requests get their turn."""


class Actor(ABC):
    """A control loop in the server's event loop. While it is off, keys gather; when it is on again, it catches up."""

    name: ClassVar[str]

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.store = registry.store
        self.on = True
        self._marked: dict[str, None] = {}
        self._wake = asyncio.Event()
        self.store.listeners.append(self.notice)

    @abstractmethod
    def notice(self, change: Change) -> None:
        """Mark the keys that a change concerns."""

    @abstractmethod
    def look(self, key: str) -> None:
        """Do what there is to do about a key."""

    def mark(self, key: str) -> None:
        """Have a key looked at soon."""
        self._marked[key] = None
        self._wake.set()

    def mark_later(self, key: str, seconds: float) -> None:
        """Have a key looked at after some seconds."""
        asyncio.get_running_loop().call_later(seconds, self.mark, key)

    def switch(self, *, on: bool) -> None:
        """Turn the actor on or off."""
        self.on = on
        self._wake.set()

    async def run(self) -> None:
        """Look at marked keys until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.on and self._marked:
                for key in list(self._marked)[:LOOKS_PER_TURN]:
                    del self._marked[key]
                    self.look(key)
                await asyncio.sleep(0)


def name_of(value: Object) -> str:
    """Return namespace and name of a namespaced object as one key."""
    return f"{value['metadata']['namespace']}/{value['metadata']['name']}"


def controller_of(value: Object) -> Object | None:
    """Return the owner reference that is marked as controller, if there is one."""
    owners = value["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def is_active(pod: Object) -> bool:
    """Return whether a pod counts as one of its owner's: neither ended nor being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in {"Succeeded", "Failed"}
