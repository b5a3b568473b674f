"""Whether a rule makes sense, in words that name the field and the value.

The same checks stand in the resource's definition, where the API server makes them. They are made here again for
objects that no API server checked: some know no CEL, and a definition may have been changed.
"""

from collections.abc import Callable, Iterator

from taintkeeper.core.conditions import CONDITION_TAINTS, UNSCHEDULABLE
from taintkeeper.core.label_checks import is_label_value, is_qualified_name, selector_faults
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, OUT_OF_SERVICE
from taintkeeper.core.rules import Rule

EFFECTS = (NO_SCHEDULE, "PreferNoSchedule", NO_EXECUTE)
STATUSES = ("True", "False", "Unknown")
LONGEST_SECONDS = 86_400.0
UNUSABLE_KEYS = frozenset({UNSCHEDULABLE, OUT_OF_SERVICE, "node.cloudprovider.kubernetes.io/uninitialized"})
"""Keys that others set, for reasons that are no condition. By one of them pods are deleted by force."""

_CONDITION_OF_KEY = {key: condition for condition, key in CONDITION_TAINTS.items()}


def find_fault(rule: Rule) -> str:
    """Return what is wrong with a rule, the first thing found; nothing where it makes sense."""
    return next((fault for check in _CHECKS for fault in check(rule)), "")


def _condition(rule: Rule) -> Iterator[str]:
    if not is_qualified_name(rule.condition_type):
        yield f"spec.condition.type: {rule.condition_type!r} cannot be the type of a condition"
    if rule.condition_status not in STATUSES:
        yield f"spec.condition.status: {rule.condition_status!r} is none of {', '.join(STATUSES)}"


def _taint(rule: Rule) -> Iterator[str]:
    if not is_qualified_name(rule.key):
        yield f"spec.taint.key: {rule.key!r} is no qualified name, such as example.com/kernel-deadlock"
    if rule.key in UNUSABLE_KEYS:
        yield f"spec.taint.key: {rule.key!r} does not stand for a condition, no rule can use it"
    if not is_label_value(rule.value):
        yield f"spec.taint.value: {rule.value!r} cannot be the value of a taint"
    if rule.effect not in EFFECTS:
        yield f"spec.taint.effect: {rule.effect!r} is none of {', '.join(EFFECTS)}"


def _selector(rule: Rule) -> Iterator[str]:
    yield from selector_faults("spec.nodeSelector", rule.selector)


def _numbers(rule: Rule) -> Iterator[str]:
    for field, seconds in (("forSeconds", rule.for_seconds), ("clearSeconds", rule.clear_seconds)):
        if not 0.0 <= seconds <= LONGEST_SECONDS:
            yield f"spec.{field}: {seconds:g} is not between 0 and {LONGEST_SECONDS:g}"
    if rule.limit is not None and not 0 <= rule.limit.number <= (100 if rule.limit.percent else rule.limit.number):
        yield f"spec.maxUnhealthy: {str(rule.limit)!r} is neither a number of nodes nor a percentage from 0% to 100%"


def _built_in(rule: Rule) -> Iterator[str]:
    if rule.key not in _CONDITION_OF_KEY:
        return
    type_, status = _CONDITION_OF_KEY[rule.key]
    if (rule.condition_type, rule.condition_status) != (type_, status):
        yield f"spec.taint.key: {rule.key!r} stands for the condition {type_} with the status {status}"
    if rule.value:
        yield f"spec.taint.value: {rule.value!r} must be empty for a key that the operator uses by itself"
    if rule.built_in and rule.rate_limited is not (rule.effect == NO_EXECUTE):
        value = str(rule.rate_limited).lower()
        yield f"spec.rateLimited: {value} is not possible for a taint that the operator sets by itself"


_CHECKS: tuple[Callable[[Rule], Iterator[str]], ...] = (_condition, _taint, _selector, _numbers, _built_in)
