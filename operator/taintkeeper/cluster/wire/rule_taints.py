"""The annotation of a node that remembers which rule brought which of its taints."""

from collections.abc import Mapping

import msgspec

RULE_TAINTS_ANNOTATION = "taintkeeper.io/rule-taints"

_decoder = msgspec.json.Decoder(dict[str, str])


def decode_rule_taints(text: str | None) -> dict[tuple[str, str], str]:
    """Read from a node's annotation which rule brought which taint; what cannot be read counts as not remembered."""
    if text is None:
        return {}
    try:
        memory = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    taints = {tuple(taint.rpartition(":")[::2]): rule for taint, rule in memory.items()}
    return {(key, effect): rule for (key, effect), rule in taints.items() if key and effect}


def encode_rule_taints(memory: Mapping[tuple[str, str], str]) -> str | None:
    """Write that memory for a node's annotation; None, which removes it, where there is nothing to remember."""
    if not memory:
        return None
    return msgspec.json.encode({f"{key}:{effect}": rule for (key, effect), rule in sorted(memory.items())}).decode()
