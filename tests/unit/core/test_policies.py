"""What a policy says, and whether it makes sense."""

from typing import Any

import pytest

from taintkeeper.core.first_seen import UNREACHABLE
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint
from taintkeeper.core.policies import DEFAULTS, Decision, Mode, Policy, TaintPattern, any_matches
from taintkeeper.core.policy_checks import find_fault
from taintkeeper.core.selectors import Requirement, Selector
from taintkeeper.core.traits import Trait
from tests.unit.core.policy_bench import policy, seen

SECONDS = 31_536_000


@pytest.mark.parametrize(
    ("pattern", "taint", "matches"),
    [
        (TaintPattern(), Taint("a", NO_EXECUTE), True),
        (TaintPattern(), Taint("a", NO_EXECUTE, "b"), True),
        (TaintPattern(), Taint("a", NO_SCHEDULE), False),
        (TaintPattern("a"), Taint("a", NO_EXECUTE, "b"), True),
        (TaintPattern("a"), Taint("b", NO_EXECUTE), False),
        (TaintPattern("a", "b"), Taint("a", NO_EXECUTE, "b"), True),
        (TaintPattern("a", "b"), Taint("a", NO_EXECUTE, "c"), False),
        (TaintPattern("a", "b"), Taint("a", NO_EXECUTE), False),
        (TaintPattern("a", ""), Taint("a", NO_EXECUTE), True),
        (TaintPattern("a", ""), Taint("a", NO_EXECUTE, "b"), False),
        (TaintPattern("a", None, NO_SCHEDULE), Taint("a", NO_SCHEDULE), True),
        (TaintPattern("a", None, NO_SCHEDULE), Taint("a", NO_EXECUTE), False),
    ],
)
def test_a_pattern_stands_for_taints_by_key_value_and_effect(
    pattern: TaintPattern, taint: Taint, *, matches: bool
) -> None:
    assert pattern.matches(taint) is matches
    assert policy(taints=(TaintPattern("x"), pattern)).covers(taint) is matches
    assert any_matches([TaintPattern("x"), pattern], [Taint("y", "PreferNoSchedule"), taint]) is matches


@pytest.mark.parametrize(
    ("wide", "narrow", "covers"),
    [
        (TaintPattern(), TaintPattern("a", "b"), True),
        (TaintPattern("a"), TaintPattern("a", "b"), True),
        (TaintPattern("a", "b"), TaintPattern("a", "b"), True),
        (TaintPattern("a", "b"), TaintPattern("a"), False),
        (TaintPattern("a", "b"), TaintPattern("a", "c"), False),
        (TaintPattern("a"), TaintPattern(), False),
        (TaintPattern("a"), TaintPattern("b"), False),
        (TaintPattern("a"), TaintPattern("a", None, NO_SCHEDULE), False),
    ],
)
def test_a_pattern_covers_another_when_it_stands_for_all_of_its_taints(
    wide: TaintPattern, narrow: TaintPattern, *, covers: bool
) -> None:
    assert wide.covers(narrow) is covers


def test_the_highest_precedence_comes_first_and_equal_ones_go_by_name() -> None:
    policies = [policy("c", precedence=-1), policy("b"), policy("a"), policy("z", precedence=7)]
    assert [each.name for each in sorted(policies, key=lambda each: each.order)] == ["z", "a", "b", "c"]


@pytest.mark.parametrize(
    ("facts", "patience"),
    [
        ({"mode": Mode.EVICT_THEN_DELETE}, 300.0),
        ({"mode": Mode.EVICT_THEN_DELETE, "blocked_seconds": 60.0}, 60.0),
        ({"mode": Mode.EVICT_THEN_DELETE, "blocked_seconds": 0.0}, 0.0),
        ({"mode": Mode.EVICT}, None),
        ({"mode": Mode.DELETE}, None),
        ({"mode": Mode.IGNORE}, None),
    ],
)
def test_only_evict_then_delete_loses_its_patience(facts: dict[str, Any], patience: float | None) -> None:
    assert policy(**facts).patience == patience


def test_the_defaults_are_policies_that_make_sense_with_names_that_no_object_can_have() -> None:
    unreachable, default, scheduling = DEFAULTS
    assert (unreachable.taints, unreachable.mode, unreachable.patience) == (
        (TaintPattern(UNREACHABLE),),
        Mode.EVICT_THEN_DELETE,
        300.0,
    )
    assert (default.taints, default.mode) == ((TaintPattern(),), Mode.EVICT)
    assert scheduling.mode is Mode.IGNORE
    assert find_fault(unreachable) == find_fault(default) == ""
    assert all(":" in each.name for each in DEFAULTS)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"precedence": 1_000_000_000, "taints": (TaintPattern("example.com/a", "b", NO_SCHEDULE), TaintPattern())},
        {"precedence": -1_000_000_000, "taints": tuple(TaintPattern(f"a{index}") for index in range(32))},
        {"mode": Mode.EVICT_THEN_DELETE, "blocked_seconds": float(SECONDS), "grace_seconds": 1},
        {"default_toleration_seconds": 0.0, "max_concurrent_per_node": 1},
        {"namespaces": Selector((("a", ""),)), "pods": Selector((), (Requirement("b", "NotIn", frozenset("c")),))},
    ],
)
def test_a_policy_that_makes_sense_has_no_fault(facts: dict[str, Any]) -> None:
    assert find_fault(policy(**facts)) == ""


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"precedence": 1_000_000_001}, "spec.precedence: 1000000001 is not between"),
        ({"precedence": -1_000_000_001}, "spec.precedence: -1000000001 is not between"),
        ({"taints": ()}, "spec.taints: 0 patterns are given, there must be 1 to 32"),
        ({"taints": (TaintPattern(),) * 33}, "spec.taints: 33 patterns are given"),
        ({"taints": (TaintPattern("a"), TaintPattern("a b"))}, "spec.taints[1].key: 'a b' is no qualified name"),
        ({"taints": (TaintPattern("a", "b c"),)}, "spec.taints[0].value: 'b c' "),
        ({"taints": (TaintPattern("a", None, "PreferNoSchedule"),)}, "spec.taints[0].effect: 'PreferNoSchedule' is"),
        ({"taints": (TaintPattern("", "b"),)}, "spec.taints[0].key: '' stands for any key, one is needed to compare"),
        ({"taints": (TaintPattern("", None, NO_SCHEDULE),)}, "spec.taints[0].key: '' stands for any key, one is nee"),
        ({"namespaces": Selector((("a b", "c"),))}, "spec.namespaceSelector.matchLabels: 'a b' "),
        ({"pods": Selector((("a", "b c"),))}, "spec.podSelector.matchLabels: 'b c' "),
        (
            {"pods": Selector((), (Requirement("a", "Exists"), Requirement("b", "Gt")))},
            "spec.podSelector.matchExpressions[1].operator: 'Gt' is none of In, NotIn, Exists, DoesNotExist",
        ),
        (
            {"pods": Selector((), (Requirement("a b", "Exists"),))},
            "spec.podSelector.matchExpressions[0].key: 'a b' ",
        ),
        ({"pods": Selector((), (Requirement("a", "In"),))}, "spec.podSelector.matchExpressions[0].values: none are"),
        (
            {"pods": Selector((), (Requirement("a", "Exists", frozenset("b")),))},
            "spec.podSelector.matchExpressions[0].values: ['b'] are given",
        ),
        (
            {"pods": Selector((), (Requirement("a", "In", frozenset({"b c"})),))},
            "spec.podSelector.matchExpressions[0].values: 'b c' ",
        ),
        (
            {"mode": Mode.EVICT_THEN_DELETE, "blocked_seconds": -1.0},
            "spec.blockedSeconds: -1 is not between 0 and 31536000",
        ),
        ({"blocked_seconds": 60.0}, "spec.blockedSeconds: 60 is given, but spec.mode is Evict"),
        ({"default_toleration_seconds": -1.0}, "spec.defaultTolerationSeconds: -1 is not between 0 and"),
        ({"default_toleration_seconds": SECONDS + 1.0}, "spec.defaultTolerationSeconds: 31536001 is not"),
        ({"grace_seconds": 0}, "spec.gracePeriodSeconds: 0 is not between 1 and 31536000"),
        ({"max_concurrent_per_node": 0}, "spec.maxConcurrentPerNode: 0 is less than 1"),
    ],
)
def test_a_fault_names_the_field_and_the_value(facts: dict[str, Any], fault: str) -> None:
    assert find_fault(policy(**facts)).startswith(fault)


@pytest.mark.parametrize(
    ("decision", "rank", "text"),
    [
        (Decision(policy("a")), 0, "policy a, mode Evict"),
        (Decision(policy("a", mode=Mode.DELETE, dry_run=True)), 1, "policy a, mode Delete, dry run"),
        (Decision(policy("a", mode=Mode.IGNORE), "policy"), 2, "policy a has the mode Ignore"),
        (Decision(policy("a"), Trait.ANNOTATED), 2, 'the pod has the annotation taintkeeper.io/evict: "false"'),
        (Decision(policy("a"), Trait.UNMANAGED), 2, "policy a ignores pods that no controller would replace"),
        (Decision(policy("a"), Trait.DAEMON_SET), 2, "policy a ignores pods of DaemonSets"),
        (Decision(policy("a", dry_run=True), Trait.LOCAL_STORAGE), 2, "policy a ignores pods with data on the node"),
        (
            Decision(policy("a"), "namespace-unknown"),
            2,
            "policy a selects by the labels of the namespace, which has not been seen",
        ),
    ],
)
def test_a_decision_tells_its_reason(decision: Decision, rank: int, text: str) -> None:
    assert (decision.rank, str(decision)) == (rank, text)


def test_states_of_one_policy_have_an_order_and_those_of_two_have_none() -> None:
    made: Policy = policy()
    assert seen(made, version=9).older_than(seen(made, version=10))
    assert not seen(made, version=10).older_than(seen(made, version=10))
    assert not seen(made, version=9).older_than(seen(made, version=10, uid="another"))
    assert not seen(made, version="x").older_than(seen(made, version=10))
