"""Whether keys and values of labels and taints, and label selectors, make sense, in words that name field and value."""

import re
from collections.abc import Iterator

from taintkeeper.core.selectors import Requirement, Selector

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_subdomain(text: str) -> bool:
    """Say whether this can be the name of most objects: ``IsDNS1123Subdomain`` of apimachinery."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Say whether this can be the key of a label or taint, as ``IsQualifiedName`` of apimachinery does."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Say whether this can be the value of a label or taint: ``IsValidLabelValue`` of apimachinery."""
    return not text or _NAME.fullmatch(text) is not None


def selector_faults(field: str, selector: Selector) -> Iterator[str]:
    """Yield what is wrong with the label selector that stands in this field, as ``ValidateLabelSelector`` would."""
    for key, value in selector.labels:
        if not is_qualified_name(key):
            yield f"{field}.matchLabels: {key!r} cannot be the key of a label"
        if not is_label_value(value):
            yield f"{field}.matchLabels: {value!r} cannot be the value of a label"
    for index, requirement in enumerate(selector.requirements):
        for fault in _requirement(requirement):
            yield f"{field}.matchExpressions[{index}].{fault}"


def _requirement(requirement: Requirement) -> Iterator[str]:
    if not is_qualified_name(requirement.key):
        yield f"key: {requirement.key!r} cannot be the key of a label"
    match requirement.operator:
        case "In" | "NotIn" if not requirement.values:
            yield f"values: none are given, the operator {requirement.operator} needs some"
        case "Exists" | "DoesNotExist" if requirement.values:
            yield f"values: {sorted(requirement.values)} are given, the operator {requirement.operator} takes none"
        case other if other not in OPERATORS:
            yield f"operator: {other!r} is none of {', '.join(OPERATORS)}"
    for value in sorted(requirement.values):
        if not is_label_value(value):
            yield f"values: {value!r} cannot be the value of a label"
