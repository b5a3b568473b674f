"""What a rule says, and whether it makes sense."""

from typing import Any

import pytest

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE
from taintkeeper.core.rule_checks import find_fault
from taintkeeper.core.rules import Limit
from taintkeeper.core.selectors import Requirement, Selector
from tests.unit.core.rule_bench import rule, seen

MEMORY = {"condition_type": "MemoryPressure", "key": "node.kubernetes.io/memory-pressure"}
UNREACHABLE = {"condition_type": "Ready", "condition_status": "Unknown", "key": "node.kubernetes.io/unreachable"}


@pytest.mark.parametrize(
    ("limit", "selected", "allowed"),
    [
        (Limit(3), 10, 3),
        (Limit(3), 0, 3),
        (Limit(0), 10, 0),
        (Limit(30, percent=True), 10, 3),
        (Limit(30, percent=True), 3, 0),
        (Limit(50, percent=True), 3, 1),
        (Limit(99, percent=True), 1000, 990),
        (Limit(100, percent=True), 7, 7),
    ],
)
def test_a_limit_is_a_number_or_a_percentage_rounded_down(limit: Limit, selected: int, allowed: int) -> None:
    assert limit.of(selected) == allowed


def test_a_limit_is_spelled_as_in_the_spec() -> None:
    assert (str(Limit(3)), str(Limit(30, percent=True))) == ("3", "30%")


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"value": "yes", "effect": "PreferNoSchedule", "rate_limited": True},
        {"for_seconds": 86400.0, "clear_seconds": 0.0, "limit": Limit(100, percent=True)},
        {"limit": Limit(1_000)},
        {"key": "plain", "condition_type": "example.com/Hot", "condition_status": "Unknown"},
        {"selector": Selector((("a", ""),), (Requirement("b", "NotIn", frozenset("c")), Requirement("d", "Exists")))},
        MEMORY,
        MEMORY | {"effect": NO_EXECUTE, "rate_limited": False},
        UNREACHABLE | {"effect": NO_EXECUTE, "rate_limited": True},
    ],
)
def test_a_rule_that_makes_sense_has_no_fault(facts: dict[str, Any]) -> None:
    assert find_fault(rule(**facts)) == ""


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"condition_type": ""}, "spec.condition.type: '' "),
        ({"condition_status": "true"}, "spec.condition.status: 'true' is none of True, False, Unknown"),
        ({"key": "a/b/c"}, "spec.taint.key: 'a/b/c' "),
        ({"key": "a\n"}, "spec.taint.key: 'a\\n' "),
        ({"key": "x" * 254 + "/a"}, "spec.taint.key: "),
        ({"key": "node.kubernetes.io/unschedulable"}, "spec.taint.key: 'node.kubernetes.io/unschedulable' does not"),
        ({"value": "a b"}, "spec.taint.value: 'a b' "),
        ({"effect": "Evict"}, "spec.taint.effect: 'Evict' is none of NoSchedule, PreferNoSchedule, NoExecute"),
        ({"selector": Selector((("a b", "c"),))}, "spec.nodeSelector.matchLabels: 'a b' "),
        ({"selector": Selector((("a", "b c"),))}, "spec.nodeSelector.matchLabels: 'b c' "),
        (
            {"selector": Selector((), (Requirement("a", "Exists"), Requirement("b", "Gt")))},
            "spec.nodeSelector.matchExpressions[1].operator: 'Gt' is none of",
        ),
        ({"for_seconds": -1.0}, "spec.forSeconds: -1 is not between 0 and 86400"),
        ({"clear_seconds": 86401.0}, "spec.clearSeconds: 86401 is not between 0 and 86400"),
        ({"limit": Limit(-1)}, "spec.maxUnhealthy: '-1' "),
        ({"limit": Limit(101, percent=True)}, "spec.maxUnhealthy: '101%' "),
        (MEMORY | {"condition_status": "False"}, "spec.taint.key: 'node.kubernetes.io/memory-pressure' stands for"),
        (MEMORY | {"value": "a"}, "spec.taint.value: 'a' must be empty"),
        (MEMORY | {"rate_limited": True}, "spec.rateLimited: true "),
        (UNREACHABLE | {"effect": NO_EXECUTE}, "spec.rateLimited: false "),
    ],
)
def test_a_fault_names_the_field_and_the_value(facts: dict[str, Any], fault: str) -> None:
    assert find_fault(rule(**facts)).startswith(fault)


@pytest.mark.parametrize(
    ("facts", "built_in"),
    [
        (MEMORY | {"effect": NO_SCHEDULE}, True),
        (MEMORY | {"effect": NO_EXECUTE}, False),
        (MEMORY | {"effect": "PreferNoSchedule"}, False),
        (UNREACHABLE | {"effect": NO_SCHEDULE}, True),
        (UNREACHABLE | {"effect": NO_EXECUTE}, True),
        ({}, False),
    ],
)
def test_built_in_is_what_the_operator_does_without_a_rule(facts: dict[str, Any], built_in: bool) -> None:
    assert rule(**facts).built_in is built_in


def test_states_of_one_rule_have_an_order_and_those_of_two_have_none() -> None:
    assert seen(rule(), version=9).older_than(seen(rule(), version=10))
    assert not seen(rule(), version=10).older_than(seen(rule(), version=10))
    assert not seen(rule(), version=9).older_than(seen(rule(), version=10, uid="another"))
