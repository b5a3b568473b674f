"""Times as the API reads and writes them: whole seconds, but six decimals in leases and ``eventTime``."""

import datetime as dt
import re
from typing import Any

from testbed.embedded.failures import bad_request
from testbed.embedded.resources import EVENTS, LEASES, NODES, PODS, Kind, Object

SECONDS: dict[Kind, tuple[tuple[str, ...], ...]] = {
    NODES: (
        ("spec", "taints", "*", "timeAdded"),
        ("status", "conditions", "*", "lastHeartbeatTime"),
        ("status", "conditions", "*", "lastTransitionTime"),
    ),
    PODS: (
        ("status", "startTime"),
        ("status", "conditions", "*", "lastProbeTime"),
        ("status", "conditions", "*", "lastTransitionTime"),
    ),
    EVENTS: (("firstTimestamp",), ("lastTimestamp",)),
}
"""Fields that hold whole seconds; what is finer is cut off."""

MICROSECONDS: dict[Kind, tuple[tuple[str, ...], ...]] = {
    LEASES: (("spec", "acquireTime"), ("spec", "renewTime")),
    EVENTS: (("eventTime",), ("series", "lastObservedTime")),
}
"""Fields that take exactly six decimals."""

_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def now(offset_seconds: float = 0) -> str:
    """Return the time now, or that many seconds later, in whole seconds."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=offset_seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro() -> str:
    """Return the time now with six decimals."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> dt.datetime:
    """Return the moment a text of either form stands for."""
    return dt.datetime.fromisoformat(text)


def normalised(kind: Kind, value: Object) -> Object:
    """Return the object with its times as the API stores them.

    Raises:
        Failure: 400, a time cannot be read.
    """
    for path in SECONDS.get(kind, ()):
        value = _at(value, path, lambda text: _seconds(kind, text))
    for path in MICROSECONDS.get(kind, ()):
        value = _at(value, path, lambda text: _checked_micro(kind, text))
    return value


def _at(node: Any, path: tuple[str, ...], convert: Any) -> Any:
    if not path:
        return node if node is None else convert(node)
    part, rest = path[0], path[1:]
    if part == "*":
        return [_at(each, rest, convert) for each in node] if isinstance(node, list) else node
    if not isinstance(node, dict) or part not in node:
        return node
    child = _at(node[part], rest, convert)
    return node if child is node[part] else {**node, part: child}


def _seconds(kind: Kind, text: Any) -> str:
    if not isinstance(text, str) or not _SECOND.fullmatch(text):
        raise _unreadable(kind, text, "2006-01-02T15:04:05Z07:00")
    if len(text) == 20 and text.endswith("Z"):
        return text
    return parse(text).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _checked_micro(kind: Kind, text: Any) -> str:
    if not isinstance(text, str) or not _MICRO.fullmatch(text):
        raise _unreadable(kind, text, "2006-01-02T15:04:05.000000Z07:00")
    return parse(text).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _unreadable(kind: Kind, text: Any, layout: str) -> Exception:
    where = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    return bad_request(f'{where}: parsing time "{text}" as "{layout}": cannot parse "{text}"')
