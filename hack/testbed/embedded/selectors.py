"""Label and field selectors: the text form in a request, the object form in a spec, and whether an object matches."""

import re
from collections.abc import Callable

from testbed.embedded.failures import bad_request
from testbed.embedded.resources import NODES, PODS, Kind, Object

Match = Callable[[Object], bool]

_TERM = re.compile(
    r"""\s*(?:
        (?P<set_key>[^\s!=,()]+)\s+(?P<set_operator>in|notin)\s*\((?P<values>[^)]*)\)
        | (?P<key>[^\s!=,()]+)\s*(?P<operator>==|!=|=)\s*(?P<value>[^\s,()]*)
        | (?P<absent>!?)\s*(?P<bare>[^\s!=,()]+)
    )\s*(?:,|$)""",
    re.VERBOSE,
)

COMMON_FIELDS = {"metadata.name", "metadata.namespace"}
FIELDS = {
    NODES: {"spec.unschedulable"},
    PODS: {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"},
}
"""What a field selector may name, apart from the name and namespace; events may name any field."""


def everything(_: Object) -> bool:
    """Match every object: what an empty selector means in a request."""
    return True


def parse_labels(text: str) -> Match:
    """Return the matcher for a ``labelSelector`` of a request.

    Raises:
        Failure: 400, the text is no selector.
    """
    if not text.strip():
        return everything
    tests: list[Callable[[dict[str, str]], bool]] = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise bad_request(f"unable to parse requirement: {text[position:]!r}")
        position = term.end()
        tests.append(_label_test(term))
    return lambda found: all(test(found["metadata"].get("labels") or {}) for test in tests)


def _label_test(term: re.Match[str]) -> Callable[[dict[str, str]], bool]:
    if key := term["set_key"]:
        values = {value.strip() for value in term["values"].split(",")}
        return _requirement(key, "In" if term["set_operator"] == "in" else "NotIn", values)
    if key := term["key"]:
        return _requirement(key, "NotIn" if term["operator"] == "!=" else "In", {term["value"]})
    return _requirement(term["bare"], "DoesNotExist" if term["absent"] else "Exists", set())


def _requirement(key: str, operator: str, values: set[str]) -> Callable[[dict[str, str]], bool]:
    if operator == "In":
        return lambda labels: labels.get(key) in values
    if operator == "NotIn":
        return lambda labels: labels.get(key) not in values
    if operator == "Exists":
        return lambda labels: key in labels
    return lambda labels: key not in labels


def matches_selector(selector: Object | None, labels: dict[str, str] | None) -> bool:
    """Return whether a ``LabelSelector`` matches; none at all matches nothing, an empty one everything."""
    if selector is None:
        return False
    wanted: dict[str, str] = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    have = labels or {}
    return all(have.get(key) == value for key, value in wanted.items()) and all(
        _requirement(each["key"], each["operator"], set(each.get("values") or ()))(have) for each in expressions
    )


def parse_fields(kind: Kind, text: str) -> Match:
    """Return the matcher for a ``fieldSelector`` of a request.

    Raises:
        Failure: 400, the text is no selector or names a field this kind cannot be selected by.
    """
    tests: list[Match] = []
    for term in filter(None, text.split(",")):
        parts = re.fullmatch(r"\s*([^!=]+?)\s*(==|!=|=)\s*(.*?)\s*", term)
        if parts is None:
            raise bad_request(f"invalid selector: {text!r}; can't understand {term!r}")
        path, operator, value = parts.groups()
        if kind.kind != "Event" and path not in COMMON_FIELDS | FIELDS.get(kind, set()):
            raise bad_request(f"field label not supported: {path}")
        tests.append(_field_test(path.split("."), value, equal=operator != "!="))
    return (lambda found: all(test(found) for test in tests)) if tests else everything


def _field_test(path: list[str], value: str, *, equal: bool) -> Match:
    def test(found: Object) -> bool:
        node: object = found
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        text = "" if node is None else str(node).lower() if isinstance(node, bool) else str(node)
        if value == "false" and not text:
            return equal
        return (text == value) is equal

    return test
