"""Whether a policy makes sense, in words that name the field and the value.

The same checks stand in the resource's definition, where the API server makes them. They are made here again for
objects that no API server checked: some know no CEL, and a definition may have been changed.
"""

from collections.abc import Callable, Iterator

from taintkeeper.core.label_checks import is_label_value, is_qualified_name, selector_faults
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE
from taintkeeper.core.policies import Mode, Policy

LONGEST_SECONDS = 31_536_000.0
HIGHEST_PRECEDENCE = 1_000_000_000
MOST_PATTERNS = 32
EFFECTS = (NO_EXECUTE, NO_SCHEDULE)


def find_fault(policy: Policy) -> str:
    """Return what is wrong with a policy, the first thing found; nothing where it makes sense."""
    return next((fault for check in _CHECKS for fault in check(policy)), "")


def _precedence(policy: Policy) -> Iterator[str]:
    if abs(policy.precedence) > HIGHEST_PRECEDENCE:
        yield f"spec.precedence: {policy.precedence} is not between -{HIGHEST_PRECEDENCE} and {HIGHEST_PRECEDENCE}"


def _taints(policy: Policy) -> Iterator[str]:
    if not 1 <= len(policy.taints) <= MOST_PATTERNS:
        yield f"spec.taints: {len(policy.taints)} patterns are given, there must be 1 to {MOST_PATTERNS}"
    for index, pattern in enumerate(policy.taints):
        field = f"spec.taints[{index}]"
        if pattern.key and not is_qualified_name(pattern.key):
            yield f"{field}.key: {pattern.key!r} is no qualified name, such as example.com/maintenance"
        if not is_label_value(pattern.value or ""):
            yield f"{field}.value: {pattern.value!r} cannot be the value of a taint"
        if pattern.effect not in EFFECTS:
            yield f"{field}.effect: {pattern.effect!r} is none of {', '.join(EFFECTS)}"
        if not pattern.key and pattern.value is not None:
            yield f"{field}.key: '' stands for any key, one is needed to compare the value"
        if not pattern.key and pattern.effect == NO_SCHEDULE:
            yield f"{field}.key: '' stands for any key, one is needed for the effect NoSchedule"


def _selectors(policy: Policy) -> Iterator[str]:
    yield from selector_faults("spec.namespaceSelector", policy.namespaces)
    yield from selector_faults("spec.podSelector", policy.pods)


def _numbers(policy: Policy) -> Iterator[str]:
    for field, seconds, least in (
        ("blockedSeconds", policy.blocked_seconds, 0),
        ("defaultTolerationSeconds", policy.default_toleration_seconds, 0),
        ("gracePeriodSeconds", policy.grace_seconds, 1),
    ):
        if seconds is not None and not least <= seconds <= LONGEST_SECONDS:
            yield f"spec.{field}: {seconds:.0f} is not between {least} and {LONGEST_SECONDS:.0f}"
    if policy.blocked_seconds is not None and policy.mode is not Mode.EVICT_THEN_DELETE:
        yield f"spec.blockedSeconds: {policy.blocked_seconds:.0f} is given, but spec.mode is {policy.mode}"
    if policy.max_concurrent_per_node is not None and policy.max_concurrent_per_node < 1:
        yield f"spec.maxConcurrentPerNode: {policy.max_concurrent_per_node} is less than 1"


_CHECKS: tuple[Callable[[Policy], Iterator[str]], ...] = (_precedence, _taints, _selectors, _numbers)
