"""The three forms of PATCH as pure functions: JSON merge patch, strategic merge patch, JSON patch."""

from collections.abc import Callable
from typing import Any

from testbed.embedded.failures import Failure, bad_request, generic
from testbed.embedded.resources import Kind, Object

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

MERGE_KEYS: dict[str, str] = {
    "conditions": "type",
    "addresses": "type",
    "ownerReferences": "uid",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "containerStatuses": "name",
}
"""Lists of objects that a strategic merge patch merges by key.

Every other list, a node's taints among them, is replaced as a whole.
"""

MERGED_SETS = {"finalizers", "podCIDRs"}
"""Lists of strings that a strategic merge patch adds to."""


def apply_patch(kind: Kind, content_type: str, current: Object, patch: Any) -> Object:
    """Return the object after a patch.

    Raises:
        Failure: 415 for a form this kind does not take, 400 for a patch of the wrong shape, 422 for a JSON patch that
            does not apply.
    """
    forms: dict[str, Callable[[Object, Any], Object]] = {MERGE: merge, JSON_PATCH: json_patch}
    if not kind.custom:
        forms[STRATEGIC] = strategic_merge
    form = forms.get(content_type.partition(";")[0].strip())
    if form is None:
        raise generic(415)
    if not isinstance(patch, list if form is json_patch else dict):
        raise bad_request("the patch has the wrong shape for its content type")
    return form(current, patch)


def merge(current: Any, patch: Any) -> Any:
    """Return what RFC 7386 makes of a value and a patch: objects merge, null removes, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic_merge(current: Any, patch: Any, field: str = "") -> Any:
    """Return what the API's own merge makes of a value and a patch: as :func:`merge`, but some lists merge by key."""
    if isinstance(patch, dict):
        return _strategic_object(current, patch)
    if isinstance(patch, list) and isinstance(current, list) and field in MERGE_KEYS:
        return _strategic_list(current, patch, MERGE_KEYS[field])
    if isinstance(patch, list) and isinstance(current, list) and field in MERGED_SETS:
        return [*current, *(each for each in patch if each not in current)]
    return [each for each in patch if not _is_directive(each)] if isinstance(patch, list) else patch


def _is_directive(each: Any) -> bool:
    return isinstance(each, dict) and "$patch" in each


def _strategic_object(current: Any, patch: Object) -> Any:
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            listed = key.partition("/")[2]
            result[listed] = [each for each in result.get(listed) or [] if each not in value]
        elif key.startswith("$"):
            continue  # the order of elements and retained keys matter to no kind that is served here
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = strategic_merge(result.get(key), value, key)
    return result


def _strategic_list(current: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    if any(each.get("$patch") == "replace" for each in patch):
        return [each for each in patch if not _is_directive(each)]
    have = {each.get(merge_key): each for each in current}
    changed: dict[Any, Any] = {}
    deleted = set()
    for each in patch:
        identity = each.get(merge_key)
        if identity is None:
            raise generic(500, f"map: {each} does not contain declared merge key: {merge_key}")
        if each.get("$patch") == "delete":
            deleted.add(identity)
        else:
            changed[identity] = _strategic_object(have.get(identity), each)
    untouched = {key: each for key, each in have.items() if key not in changed and key not in deleted}
    return _in_order(untouched, changed, list(have))


def _in_order(untouched: dict[Any, Any], changed: dict[Any, Any], order: list[Any]) -> list[Any]:
    """Return both as one list in the old order; what is new comes before what it meets, as the API has it."""
    left, right, result = list(untouched), list(changed), []
    while left and right:
        keeps_place = right[0] in order and order.index(left[0]) < order.index(right[0])
        result.append(untouched[left.pop(0)] if keeps_place else changed[right.pop(0)])
    return [*result, *(untouched[key] for key in left), *(changed[key] for key in right)]


def json_patch(current: Any, operations: list[Object]) -> Any:
    """Return the value after the operations of RFC 6902.

    Raises:
        Failure: 422, an operation does not apply, a ``test`` does not hold, or an operation is unknown.
    """
    result = current
    for operation in operations:
        result = _apply_operation(result, operation)
    return result


def _apply_operation(document: Any, operation: Object) -> Any:
    name = operation.get("op")
    path = _pointer(operation.get("path"))
    if name in {"move", "copy"}:
        source = _pointer(operation.get("from"))
        value = _read(document, source)
        document = _edit(document, source, "remove", None) if name == "move" else document
        return _edit(document, path, "add", value)
    if name == "test":
        if _tested(document, path) != operation.get("value"):
            raise _does_not_apply()
        return document
    if name not in {"add", "remove", "replace"}:
        raise _does_not_apply()
    return _edit(document, path, name, operation.get("value"))


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _does_not_apply()
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _does_not_apply() -> Failure:
    return generic(422)  # the API does not say which operation it was


def _read(node: Any, path: list[str]) -> Any:
    for part in path:
        node = _child(node, part)
    return node


def _tested(document: Any, path: list[str]) -> Any:
    """Return what a test compares with: a missing member of an object counts as null."""
    parent = _read(document, path[:-1])
    if path and isinstance(parent, dict):
        return parent.get(path[-1])
    return _read(document, path)


def _child(node: Any, part: str) -> Any:
    if isinstance(node, dict) and part in node:
        return node[part]
    if isinstance(node, list) and part.isdigit() and int(part) < len(node):
        return node[int(part)]
    raise _does_not_apply()


def _edit(node: Any, path: list[str], operation: str, value: Any) -> Any:
    if not path:
        return value
    part, rest = path[0], path[1:]
    if rest:
        return _with_child(node, part, _edit(_child(node, part), rest, operation, value))
    if operation == "remove" or (operation == "replace" and isinstance(node, list)):
        _child(node, part)  # of an object's members, only a removal needs one that is there
    if isinstance(node, dict):
        kept = {key: each for key, each in node.items() if key != part}
        return kept if operation == "remove" else {**node, part: value}
    if isinstance(node, list):
        return _edit_list(node, part, operation, value)
    raise _does_not_apply()


def _with_child(node: Any, part: str, child: Any) -> Any:
    if isinstance(node, dict):
        return {**node, part: child}
    index = int(part)
    return [*node[:index], child, *node[index + 1 :]]


def _edit_list(node: list[Any], part: str, operation: str, value: Any) -> list[Any]:
    if operation == "add":
        index = len(node) if part == "-" else int(part) if part.isdigit() else -1
        if not 0 <= index <= len(node):
            raise _does_not_apply()
        return [*node[:index], value, *node[index:]]
    index = int(part)
    return [*node[:index], *([] if operation == "remove" else [value]), *node[index + 1 :]]
