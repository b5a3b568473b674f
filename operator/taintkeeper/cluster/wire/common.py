"""What objects of all kinds have in common on the wire."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintkeeper.cluster.wire.times import Time


class Wire(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Base of all wire structs: the API's spelling, and nothing for the collector to follow."""


class Meta(Wire, frozen=True):
    """``metadata`` of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time = None
    deletion_timestamp: Time = None
    annotations: dict[str, str] | None = None
    labels: msgspec.Raw = msgspec.Raw(b"null")


class ConditionWire(Wire, frozen=True):
    """A condition of a node or a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_heartbeat_time: Time = None
    last_transition_time: Time = None


class Shared:
    """Decodes small pieces of JSON that many objects repeat to the letter, each once."""

    LIMIT = 10_000

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        self._decode = decode
        self._known: dict[bytes, Any] = {}

    def __call__(self, raw: msgspec.Raw) -> Any:
        """Return the decoded piece; the same object for the same bytes."""
        key = bytes(raw)
        if key not in self._known:
            if len(self._known) >= self.LIMIT:
                self._known.clear()
            self._known[key] = self._decode(key)
        return self._known[key]


_labels_decoder = msgspec.json.Decoder(dict[str, str] | None)


def decode_labels(raw: bytes) -> dict[str, str]:
    """Read labels; null stands for none."""
    return _labels_decoder.decode(raw) or {}
