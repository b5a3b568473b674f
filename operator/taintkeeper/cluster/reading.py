"""Reads the objects of one kind; one that makes no sense to us must not keep the others from being seen.

An object that cannot be read is told of once, and passed over. One that was known before stays known as it was then:

* A pod is evicted, if at all, by what was last known of it. What may have changed since is checked by the API server:
  its UID and its budgets. Only a toleration that was added in the same breath does not count.
* A budget holds its pods as it did. The API server has the last word anyway.
* A policy or rule stays in force as it last made sense.

One that was never known is not acted on: its pod stays, its budget is for the API server to keep.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Kind(Generic[Key, Item]):
    """A kind of object to watch. ``key`` tells objects apart; use the UID where a name may come back as another.

    ``decode`` may raise anything for what makes no sense. It should read an object that consists of nothing but its
    name, namespace and UID: that is how one that can no longer be read is recognised as one that was known.
    """

    resource: str
    path: str
    decode: Callable[[msgspec.Raw], Item]
    key: Callable[[Item], Key]


class _Identity(msgspec.Struct, omit_defaults=True):
    name: Any = None
    namespace: Any = None
    uid: Any = None


class _Identified(msgspec.Struct):
    metadata: _Identity


_identity_decoder = msgspec.json.Decoder(_Identified)


class Reader(Generic[Key, Item]):
    """Reads objects of a kind. ``tell`` is given the kind and name of one that cannot be read, and the reason, once."""

    def __init__(self, kind: Kind[Key, Item], tell: Callable[[str, str], None]) -> None:
        self._kind = kind
        self._tell = tell
        self._unreadable: set[str] = set()
        self._not_listed: set[str] = set()

    @property
    def unreadable(self) -> int:
        """How many objects there are that cannot be read."""
        return len(self._unreadable)

    def read(self, raw: msgspec.Raw) -> Item | None:
        """Return the object; None, and tell so, where it makes no sense."""
        try:
            item = self._kind.decode(raw)
        except Exception as error:
            # Whatever it is, a fault of the object or of ours: it concerns this one alone.
            self._pass_over(_name(raw), error)
            return None
        if self._unreadable:
            self._unreadable.discard(_name(raw))
        return item

    def key(self, raw: msgspec.Raw) -> Key | None:
        """Return the key of an object whether it can be read or not; None where it does not even say what it is."""
        for read in (bytes, _bare):
            with suppress(Exception):
                return self._kind.key(self._kind.decode(msgspec.Raw(read(raw))))
        return None

    def forget(self, raw: msgspec.Raw) -> None:
        """Note that the object is gone."""
        self._unreadable.discard(_name(raw))

    def begin_list(self) -> None:
        """Note that all objects are about to be read anew."""
        self._not_listed = set(self._unreadable)

    def end_list(self) -> None:
        """Note that all objects have been read since the list began: what did not come is gone."""
        self._unreadable -= self._not_listed
        self._not_listed = set()

    def _pass_over(self, name: str, error: Exception) -> None:
        self._not_listed.discard(name)
        if name not in self._unreadable:
            self._unreadable.add(name)
            self._tell(f"{self._kind.resource} {name}", " ".join(str(error).split()) or type(error).__name__)


def _bare(raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(_identity_decoder.decode(raw))


def _name(raw: msgspec.Raw) -> str:
    try:
        identity = _identity_decoder.decode(raw).metadata
    except (msgspec.DecodeError, RecursionError):
        return "without a name"
    return f"{identity.namespace}/{identity.name}" if identity.namespace else f"{identity.name}"
