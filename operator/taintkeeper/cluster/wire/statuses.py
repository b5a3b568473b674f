"""What our own resources have in common on the wire: conditions in a status, and what is wrong with a spec."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from taintkeeper.cluster.wire.common import Wire
from taintkeeper.cluster.wire.times import Time, moment, timestamp
from taintkeeper.core.rules import RuleCondition

LONGEST_VALUE = 60
"""How many characters of a value that makes no sense are told."""

_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")
_MISSING = re.compile(r"Object missing required field `(?P<field>.*)`")


class StatusConditionWire(Wire, frozen=True):
    """One of ``status.conditions``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Time = None


def decode_conditions(wires: Iterable[StatusConditionWire] | None) -> tuple[RuleCondition, ...]:
    """Return the conditions that stand in a status."""
    return tuple(
        RuleCondition(each.type, each.status, each.reason, each.message, moment(each.last_transition_time) or 0.0)
        for each in wires or ()
    )


def encode_conditions(conditions: Iterable[RuleCondition], generation: int) -> list[dict[str, Any]]:
    """Write conditions as the API spells them; times are cut to the second, as the API does."""
    return [
        {
            "type": each.type,
            "status": each.status,
            "observedGeneration": generation,
            "lastTransitionTime": timestamp(each.since),
            "reason": each.reason,
            "message": each.message,
        }
        for each in conditions
    ]


def spec_fault(error: Exception, raw: bytes | msgspec.Raw) -> str:
    """Return what msgspec says about a spec, with field and value in front, spelled as in the object."""
    found = _PATH.fullmatch(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    if missing := _MISSING.fullmatch(what):
        return f"spec{path}.{missing['field']}: is missing"
    return f"spec{path}: {_value(raw, path)}{what[:1].lower()}{what[1:]}"


def _value(raw: bytes | msgspec.Raw, path: str) -> str:
    """Return the value at this path; nothing where it cannot be found, such as in a map of labels."""
    try:
        value = msgspec.json.decode(raw)
        for name, index in _STEP.findall(path):
            value = value[name] if name else value[int(index)]
        text = msgspec.json.encode(value).decode()
    except (msgspec.DecodeError, LookupError, TypeError, RecursionError):
        return ""
    return f"{text[:LONGEST_VALUE]} is wrong, "
