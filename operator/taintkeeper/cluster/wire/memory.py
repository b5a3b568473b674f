"""The annotation of a node that remembers when its taints were first seen."""

from collections.abc import Mapping
from typing import Any

import msgspec

from taintkeeper.cluster.wire.times import moment, timestamp

FIRST_SEEN_ANNOTATION = "taintkeeper.io/first-seen"

_decoder = msgspec.json.Decoder(dict[str, Any])


def decode_first_seen(text: str | None) -> dict[str, float]:
    """Read the memory from a node's annotation; what of it cannot be read counts as not remembered."""
    if text is None:
        return {}
    try:
        times = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    moments = {taint: moment(value) for taint, value in times.items()}
    return {taint: at for taint, at in moments.items() if at is not None and at >= 0.0}


def encode_first_seen(memory: Mapping[str, float]) -> str | None:
    """Write the memory for a node's annotation; None, which removes it, where there is nothing to remember."""
    if not memory:
        return None
    return msgspec.json.encode({taint: timestamp(at, digits=3) for taint, at in sorted(memory.items())}).decode()
