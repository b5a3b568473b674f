"""The form in which the API keeps objects: fields of the right shape, times normalised, what is empty left out.

Clients that compare what they wrote with what they read meet all of this.
"""

from collections.abc import Callable
from typing import Any

from testbed.embedded.failures import Failure, bad_request
from testbed.embedded.resources import EVENTS, LEASES, NODES, PODS, Kind, Object
from testbed.embedded.timestamps import checked_micro, whole_seconds

Path = tuple[str, ...]

SECONDS: dict[Kind, tuple[Path, ...]] = {
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

MICROSECONDS: dict[Kind, tuple[Path, ...]] = {
    LEASES: (("spec", "acquireTime"), ("spec", "renewTime")),
    EVENTS: (("eventTime",), ("series", "lastObservedTime")),
}
"""Fields that take exactly six decimals."""

WRITTEN_AS_NULL: dict[Kind, tuple[str, ...]] = {
    NODES: ("lastHeartbeatTime", "lastTransitionTime"),
    PODS: ("lastProbeTime", "lastTransitionTime"),
}
"""Times of a condition that are there even when they are unknown."""

LEFT_OUT_WHEN_EMPTY: tuple[Path, ...] = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("metadata", "finalizers"),
    ("metadata", "ownerReferences"),
    ("spec", "taints"),
    ("spec", "taints", "*", "value"),
    ("spec", "taints", "*", "timeAdded"),
    ("spec", "unschedulable"),
    ("status", "conditions"),
)

SHAPES: tuple[tuple[Path, type], ...] = (
    (("metadata",), dict),
    (("metadata", "labels"), dict),
    (("metadata", "labels", "*"), str),
    (("metadata", "annotations"), dict),
    (("metadata", "annotations", "*"), str),
    (("metadata", "finalizers"), list),
    (("metadata", "ownerReferences"), list),
    (("spec",), dict),
    (("spec", "taints"), list),
    (("spec", "taints", "*"), dict),
    (("spec", "tolerations"), list),
    (("spec", "tolerations", "*"), dict),
    (("spec", "containers"), list),
    (("spec", "containers", "*"), dict),
    (("status",), dict),
    (("status", "conditions"), list),
    (("status", "conditions", "*"), dict),
)
"""What has to be what; a null passes as absent."""


def canonical(kind: Kind, value: Object) -> Object:
    """Return an object in the form the API keeps.

    Raises:
        Failure: 400, a field has the wrong shape or a time cannot be read.
    """
    check_shape(kind, value)
    for path in SECONDS.get(kind, ()):
        value = _at(value, path, _reading(kind, whole_seconds))
    for path in MICROSECONDS.get(kind, ()):
        value = _at(value, path, _reading(kind, checked_micro))
    if fields := WRITTEN_AS_NULL.get(kind):
        value = _at(value, ("status", "conditions", "*"), lambda each: {**dict.fromkeys(fields), **each})
    for path in LEFT_OUT_WHEN_EMPTY if not kind.custom else ():
        value = _without_empty(value, path)
    return value


def check_shape(kind: Kind, value: Object) -> None:
    """Check that the fields this server looks into are what they have to be.

    Raises:
        Failure: 400, one is not.
    """
    for path, wanted in SHAPES:
        for found in _found(value, path):
            if found is not None and not isinstance(found, wanted):
                why = f"json: cannot unmarshal {found!r} into field {'.'.join(path)} of type {wanted.__name__}"
                raise _unreadable(kind, why)


def _found(node: Any, path: Path) -> list[Any]:
    if not path:
        return [node]
    part, rest = path[0], path[1:]
    if part == "*":
        inner = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
        return [found for each in inner for found in _found(each, rest)]
    return _found(node[part], rest) if isinstance(node, dict) and part in node else []


def _reading(kind: Kind, read: Callable[[Any], str]) -> Callable[[Any], str]:
    def convert(text: Any) -> str:
        try:
            return read(text)
        except ValueError as error:
            raise _unreadable(kind, str(error)) from None

    return convert


def _unreadable(kind: Kind, why: str) -> Failure:
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def _at(node: Any, path: Path, convert: Callable[[Any], Any]) -> Any:
    """Return a copy in which every value at a path is converted; the same object if none changes."""
    if not path:
        return node if node is None else convert(node)
    part, rest = path[0], path[1:]
    if part == "*":
        converted = [_at(each, rest, convert) for each in node] if isinstance(node, list) else node
        return node if converted == node else converted
    if not isinstance(node, dict) or part not in node:
        return node
    child = _at(node[part], rest, convert)
    return node if child is node[part] else {**node, part: child}


def _without_empty(value: Object, path: Path) -> Object:
    """Return a copy in which nothing empty is at a path."""
    name = path[-1]

    def drop(parent: Any) -> Any:
        empty = isinstance(parent, dict) and name in parent and not parent[name]
        return {key: each for key, each in parent.items() if key != name} if empty else parent

    result: Object = _at(value, path[:-1], drop)
    return result
