"""NodeTaintRules on the wire: read whatever they say, and refuse what the API server refuses."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.rule_wire import decode_rule, encode_rule_status
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE
from taintkeeper.core.rules import Limit, Rule, RuleCondition, RuleSeen, RuleStatus
from taintkeeper.core.selectors import Requirement, Selector
from tests.rule_specs import BAD, GOOD, spec, taint
from tests.unit.cluster import wires


def read(made: Any, **more: Any) -> RuleSeen:
    body = {"kind": "NodeTaintRule", "metadata": wires.metadata("r", generation=4), "spec": made, **more}
    return decode_rule(msgspec.json.encode(body))


def rule_of(made: Any) -> Rule:
    found = read(made)
    assert found.fault == ""
    assert found.rule is not None
    return found.rule


def test_a_rule_is_read_with_its_defaults() -> None:
    assert read(GOOD["the least"]) == RuleSeen(
        name="r",
        uid="r-uid",
        resource_version="17",
        generation=4,
        rule=Rule("r", "KernelDeadlock", "True", "example.com/kernel-deadlock", NO_SCHEDULE),
    )


def test_everything_that_a_rule_says_is_read() -> None:
    requirements = (Requirement("a", "In", frozenset({"b", ""})), Requirement("c", "DoesNotExist"))
    assert rule_of(GOOD["everything"]) == Rule(
        name="r",
        condition_type="KernelDeadlock",
        condition_status="True",
        key="example.com/kernel-deadlock",
        effect=NO_EXECUTE,
        value="yes",
        selector=Selector((("empty", ""), ("example.com/pool", "gpu")), requirements),
        for_seconds=60.0,
        clear_seconds=86400.0,
        limit=Limit(30, percent=True),
        rate_limited=False,
        dry_run=True,
    )


@pytest.mark.parametrize("made", GOOD.values(), ids=GOOD)
def test_what_the_api_server_takes_is_taken(made: Any) -> None:
    rule_of(made)


@pytest.mark.parametrize(("made", "field"), BAD)
def test_what_the_api_server_refuses_is_a_fault_that_names_the_field(made: Any, field: str) -> None:
    found = read(made)
    assert found.rule is None
    assert found.fault.startswith(field)


@pytest.mark.parametrize(
    ("effect", "limited"), [("NoExecute", True), ("NoSchedule", False), ("PreferNoSchedule", False)]
)
def test_only_what_evicts_is_rate_limited_unless_the_rule_says_so(effect: str, limited: bool) -> None:
    assert rule_of(taint(effect=effect)).rate_limited is limited


def test_what_is_null_counts_as_not_given() -> None:
    nothing = dict.fromkeys(
        ("nodeSelector", "forSeconds", "clearSeconds", "maxUnhealthy", "rateLimited", "dryRun"), None
    )
    assert rule_of(spec(**nothing)) == rule_of(spec())
    assert rule_of(taint(value=None)) == rule_of(spec())


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (None, "spec: null is wrong, expected `object`, got `null`"),
        ([], "spec: [] is wrong, expected `object`, got `array`"),
        ({}, "spec.condition: is missing"),
        (spec(condition={"type": "A"}), "spec.condition.status: is missing"),
        (spec(forSeconds="60"), 'spec.forSeconds: "60" is wrong, expected `int | null`, got `str`'),
        (
            spec(maxUnhealthy="5"),
            "spec.maxUnhealthy: '5' is neither a number of nodes nor a percentage from 0% to 100%",
        ),
        (taint(effect="Evict"), "spec.taint.effect: 'Evict' is none of NoSchedule, PreferNoSchedule, NoExecute"),
    ],
)
def test_a_fault_says_what_is_wrong_with_which_field(made: Any, fault: str) -> None:
    assert read(made).fault == fault


def test_an_object_of_which_only_the_name_is_known_can_be_read() -> None:
    found = decode_rule(b'{"metadata": {"name": "r", "uid": "u"}}')
    assert (found.name, found.uid, found.rule) == ("r", "u", None)
    assert found.fault.startswith("spec: ")


def test_what_is_no_object_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_rule(b'{"kind": "Status"}')


# Status

STATUS = RuleStatus(4, 10, 1, 2, 3, (RuleCondition("Accepted", "True", "Valid", "It makes sense.", 1767225600.0),))


def test_a_status_that_is_written_is_read_back() -> None:
    assert read(spec(), status=encode_rule_status(STATUS)).status == STATUS


def test_a_status_is_written_as_the_api_spells_it() -> None:
    fraction = replace(STATUS, conditions=(replace(STATUS.conditions[0], since=1767225600.9),))
    assert encode_rule_status(fraction) == {
        "observedGeneration": 4,
        "matched": 10,
        "waiting": 1,
        "tainted": 2,
        "heldBack": 3,
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "observedGeneration": 4,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "Valid",
                "message": "It makes sense.",
            }
        ],
    }


@pytest.mark.parametrize("status", [None, [], {"matched": "many"}, {"conditions": [{}]}])
def test_a_status_that_makes_no_sense_is_none_and_the_rule_is_read(status: Any) -> None:
    found = read(spec(), status=status)
    assert found.status is None
    assert found.rule is not None


@pytest.mark.parametrize("time", wires.BAD_TIMES)
def test_a_time_that_makes_no_sense_leaves_the_rest_of_the_status(time: Any) -> None:
    condition = {"type": "Active", "status": "True", "lastTransitionTime": time}
    found = read(spec(), status={"conditions": [condition]}).status
    assert found is not None
    assert found.conditions[0].since == 0.0
