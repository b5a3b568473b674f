"""EvictionPolicies on the wire."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from taintkeeper.cluster.policy_wire import decode_namespace, decode_policy, encode_policy_status
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE
from taintkeeper.core.policies import Mode, Policy, TaintPattern
from taintkeeper.core.policy_messages import PolicyStatus
from taintkeeper.core.rules import RuleCondition
from taintkeeper.core.selectors import Requirement, Selector
from taintkeeper.core.traits import Trait
from tests.policy_specs import BAD, DEFAULTS, GOOD, taint

EXAMPLES = Path(__file__).parents[3] / "manifests" / "examples" / "eviction-policies.yaml"
META = {"name": "p", "uid": "u", "resourceVersion": "12", "generation": 3}


def raw(spec: Any, **more: Any) -> bytes:
    return json.dumps({"metadata": META, "spec": spec, **more}).encode()


def policy(spec: Any) -> Policy:
    seen = decode_policy(raw(spec))
    assert seen.fault == ""
    assert seen.policy is not None
    return seen.policy


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD)
def test_a_policy_that_makes_sense_is_read_with_the_servers_defaults_or_without(spec: dict[str, Any]) -> None:
    assert policy(spec) == policy({**DEFAULTS, **spec})


def test_the_examples_make_sense() -> None:
    examples = list(yaml.safe_load_all(EXAMPLES.read_text()))
    assert [policy(example["spec"]).precedence for example in examples] == [100, 200]


def test_all_that_a_policy_says_is_read() -> None:
    assert policy(GOOD["everything"]) == Policy(
        "p",
        precedence=100,
        taints=(
            TaintPattern("example.com/maintenance", "now", NO_SCHEDULE),
            TaintPattern("node.kubernetes.io/unreachable", None, NO_EXECUTE),
            TaintPattern("", None, NO_EXECUTE),
        ),
        namespaces=Selector(
            (("empty", ""), ("example.com/tier", "prod")),
            (Requirement("a", "In", frozenset({"b", ""})), Requirement("c", "DoesNotExist")),
        ),
        pods=Selector((), (Requirement("d", "NotIn", frozenset("e")),)),
        mode=Mode.EVICT_THEN_DELETE,
        blocked_seconds=600.0,
        default_toleration_seconds=0.0,
        grace_seconds=1,
        max_concurrent_per_node=1,
        ignored=frozenset({Trait.UNMANAGED, Trait.DAEMON_SET, Trait.LOCAL_STORAGE}),
        dry_run=True,
    )


def test_a_policy_that_says_nothing_has_pods_evicted_by_every_taint_with_no_execute() -> None:
    assert policy({}) == Policy("p", taints=(TaintPattern("", None, NO_EXECUTE),), mode=Mode.EVICT)


@pytest.mark.parametrize(
    ("field", "trait"),
    [
        ("unmanagedPods", Trait.UNMANAGED),
        ("daemonSetPods", Trait.DAEMON_SET),
        ("podsWithLocalStorage", Trait.LOCAL_STORAGE),
    ],
)
def test_each_kind_of_pod_is_ignored_by_its_own_field(field: str, trait: Trait) -> None:
    assert policy({field: "Ignore"}).ignored == {trait}
    assert policy({field: "Evict"}).ignored == set()


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ({"key": "a"}, None),
        ({"key": "a", "value": ""}, None),
        ({"key": "a", "value": "b"}, "b"),
        ({"key": "a", "operator": "Exists"}, None),
        ({"key": "a", "operator": "Exists", "value": ""}, None),
        ({"key": "a", "operator": "Equal", "value": "b"}, "b"),
        ({"key": "a", "operator": "Equal"}, ""),
        ({"key": "a", "operator": "", "value": "b"}, "b"),
    ],
)
def test_without_an_operator_a_value_is_compared_if_there_is_one(pattern: dict[str, str], value: str | None) -> None:
    assert policy({"taints": [pattern]}).taints == (TaintPattern("a", value, NO_EXECUTE),)


@pytest.mark.parametrize(("spec", "field"), BAD)
def test_what_the_server_would_refuse_is_a_fault_of_the_same_field(spec: Any, field: str) -> None:
    seen = decode_policy(raw(spec))
    assert seen.policy is None
    assert seen.fault.startswith((f"{field}:", f"{field}.", f"{field}["))


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"mode": "Force"}, "spec.mode: 'Force' is none of Evict, EvictThenDelete, Delete, Ignore"),
        ({"unmanagedPods": "Skip"}, "spec.unmanagedPods: 'Skip' is none of Evict, Ignore"),
        ({"precedence": "high"}, 'spec.precedence: "high" is wrong, expected `int | null`, got `str`'),
        ({"taints": [{}, {"key": 1}]}, "spec.taints[1].key: 1 is wrong, expected `str | null`, got `int`"),
        ({"taints": [{"key": "x" * 99, "value": ["a"] * 99}]}, 'spec.taints[0].value: ["a","a","a"'),
        ({"podSelector": {"matchLabels": {"a": 1}}}, "spec.podSelector.matchLabels[...]: expected `str`, got `int`"),
        (
            {"podSelector": {"matchExpressions": [{"key": "a"}]}},
            "spec.podSelector.matchExpressions[0].operator: is mis",
        ),
        (taint(key="a", operator="Gt"), "spec.taints[0].operator: 'Gt' is none of Exists, Equal"),
        (taint(key="a", operator="Exists", value="b"), "spec.taints[0].value: 'b' is given, the operator Exists takes"),
        ("text", 'spec: "text" is wrong, expected `object`, got `str`'),
        (None, "spec: null is wrong, expected `object`, got `null`"),
    ],
)
def test_a_fault_names_the_field_and_the_value(spec: Any, fault: str) -> None:
    found = decode_policy(raw(spec)).fault
    assert found.startswith(fault)
    assert len(found) < 200


def test_it_is_read_which_version_of_which_object_it_is() -> None:
    seen = decode_policy(raw({}))
    assert (seen.name, seen.uid, seen.resource_version, seen.generation) == ("p", "u", "12", 3)


STATUS = PolicyStatus(3, 4, 2, 7, 1, (RuleCondition("Active", "True", "InForce", "It works.", 1_700_000_000.0),))
ENCODED = {
    "observedGeneration": 3,
    "pending": 4,
    "blocked": 2,
    "evicted": 7,
    "exempt": 1,
    "conditions": [
        {
            "type": "Active",
            "status": "True",
            "observedGeneration": 3,
            "lastTransitionTime": "2023-11-14T22:13:20Z",
            "reason": "InForce",
            "message": "It works.",
        }
    ],
}


def test_a_status_is_written_as_the_api_spells_it_and_read_again() -> None:
    assert encode_policy_status(STATUS) == ENCODED
    assert decode_policy(raw({}, status=ENCODED)).status == STATUS


@pytest.mark.parametrize("status", [None, "text", {"pending": "many"}, {"conditions": [{}]}])
def test_a_status_that_cannot_be_read_is_none(status: Any) -> None:
    seen = decode_policy(raw({}, status=status))
    assert (seen.status, seen.fault) == (None, "")


def test_an_object_that_is_nothing_but_its_identity_is_read() -> None:
    seen = decode_policy(json.dumps({"metadata": {"name": "p", "uid": "u"}}).encode())
    assert (seen.name, seen.uid, seen.policy) == ("p", "u", None)


@pytest.mark.parametrize("text", ["[]", "{}", '{"metadata": 1}'])
def test_what_is_no_object_cannot_be_read(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_policy(text.encode())


def test_a_namespace_is_read_by_its_name_and_labels() -> None:
    labelled = json.dumps({"metadata": {"name": "n", "labels": {"a": "b"}}}).encode()
    assert decode_namespace(labelled) == ("n", {"a": "b"})
    assert decode_namespace(b'{"metadata": {"name": "n"}}') == ("n", {})
