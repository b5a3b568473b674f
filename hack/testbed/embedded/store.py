"""The objects and what happened to them: one counter of versions, one table and one bounded history per kind.

Values are never changed in place, so a list, a watch and a later patch may share them. Everything runs on the server's
event loop: a change is complete, numbered and visible to every watch before the next request is looked at.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from testbed.embedded.failures import expired
from testbed.embedded.resources import STORED, Kind, Object

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Record:
    """One stored object, with its JSON made at most once."""

    __slots__ = ("_body", "kind", "value", "version")

    def __init__(self, kind: Kind, value: Object, version: int) -> None:
        self.kind = kind
        self.value = value
        self.version = version
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The JSON without kind and apiVersion, as the items of most lists have it."""
        if self._body is None:
            self._body = msgspec.json.encode(self.value)
        return self._body

    @property
    def full(self) -> bytes:
        """The JSON with kind and apiVersion."""
        return b'{"kind":"%s","apiVersion":"%s",%s' % (
            self.kind.kind.encode(),
            self.kind.api_version.encode(),
            self.body[1:],
        )

    @property
    def item(self) -> bytes:
        """The JSON as an item of a list: only those of custom resources repeat their kind."""
        return self.full if self.kind.custom else self.body


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one object; ``previous`` is missing when it was added."""

    type: ChangeType
    record: Record
    previous: Record | None = None


class History:
    """The latest changes of one kind, read by position, so that no watch needs a queue of its own."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.oldest = 0
        """A watch may resume from this version or a later one."""
        self._changes: list[Change] = []
        self._first = 0
        self._waiting: set[asyncio.Event] = set()

    @property
    def end(self) -> int:
        """The position behind the latest change."""
        return self._first + len(self._changes)

    def append(self, change: Change) -> None:
        """Remember a change and wake every reader."""
        self._changes.append(change)
        if len(self._changes) > 2 * self.limit:
            self._drop(len(self._changes) - self.limit)
        self.wake()

    def forget(self, version: int) -> None:
        """Drop all that is remembered up to now, the version given: who resumes from an earlier one is too late."""
        self._drop(len(self._changes))
        self.oldest = version

    def _drop(self, count: int) -> None:
        if count:
            self.oldest = self._changes[count - 1].record.version
            del self._changes[:count]
            self._first += count

    def position_after(self, version: int) -> int:
        """Return the position of the first change later than a version.

        Raises:
            Failure: 410, the history no longer reaches back that far.
        """
        if version < self.oldest:
            raise expired(f"too old resource version: {version} ({self.oldest})")
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].record.version <= version:
                low = middle + 1
            else:
                high = middle
        return self._first + low

    def read(self, position: int) -> list[Change]:
        """Return the changes from a position on.

        Raises:
            Failure: 410, the reader was too slow and its position is gone.
        """
        if position < self._first:
            raise expired(f"too old resource version: the watch fell behind ({self.oldest})")
        return self._changes[position - self._first :]

    def subscribe(self, wake: asyncio.Event) -> None:
        """Have an event set with every change, until :meth:`unsubscribe`."""
        self._waiting.add(wake)

    def unsubscribe(self, wake: asyncio.Event) -> None:
        """Undo :meth:`subscribe`."""
        self._waiting.discard(wake)

    def wake(self) -> None:
        """Wake every reader, whether or not there is anything new for it."""
        for wake in self._waiting:
            wake.set()


class Store:
    """All objects of all kinds.

    Args:
        history: how many changes of each kind are remembered at least.
    """

    def __init__(self, history: int) -> None:
        self.version = 0
        self.histories = {kind: History(history) for kind in STORED}
        self.listeners: list[Callable[[Change], None]] = []
        """Called with every change, before the writer gets its answer."""
        self._tables: dict[Kind, dict[str, Record]] = {kind: {} for kind in STORED}

    def get(self, kind: Kind, key: str) -> Record | None:
        """Return the record of one object, or None."""
        return self._tables[kind].get(key)

    def records(self, kind: Kind, namespace: str = "") -> Iterator[Record]:
        """Yield the records of a kind, of one namespace if given, in no particular order."""
        records = self._tables[kind].values()
        if not namespace or not kind.namespaced:
            return iter(records)
        return (record for record in records if record.value["metadata"]["namespace"] == namespace)

    def sorted_records(self, kind: Kind, namespace: str = "") -> list[tuple[str, Record]]:
        """Return keys and records in the order of lists: by namespace, then by name."""
        table = self._tables[kind]
        prefix = f"{namespace}/" if namespace and kind.namespaced else ""
        keys = sorted(table) if not prefix else sorted(key for key in table if key.startswith(prefix))
        return [(key, table[key]) for key in keys]

    def put(self, kind: Kind, key: str, value: Object) -> Record:
        """Store a new state of an object under the next version and return its record."""
        previous = self._tables[kind].get(key)
        record = self._number(kind, value)
        self._tables[kind][key] = record
        self._publish(Change("MODIFIED" if previous else "ADDED", record, previous))
        return record

    def remove(self, kind: Kind, key: str) -> Record:
        """Remove an object and return its last state, which carries the version of its removal as the API's does."""
        previous = self._tables[kind].pop(key)
        record = self._number(kind, previous.value)
        self._publish(Change("DELETED", record, previous))
        return record

    def _number(self, kind: Kind, value: Object) -> Record:
        self.version += 1
        metadata = {**value["metadata"], "resourceVersion": str(self.version)}
        return Record(kind, {**value, "metadata": metadata}, self.version)

    def _publish(self, change: Change) -> None:
        self.histories[change.record.kind].append(change)
        for listener in self.listeners:
            listener(change)

    def forget_history(self) -> None:
        """Forget every past change: a watch that resumes from before now gets 410."""
        for history in self.histories.values():
            history.forget(self.version)
