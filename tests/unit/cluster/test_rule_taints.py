"""What a node remembers of the rules that brought its taints."""

import pytest

from taintkeeper.cluster.wire.rule_taints import decode_rule_taints, encode_rule_taints
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE

MEMORY = {("example.com/a", NO_EXECUTE): "rule-a", ("b", NO_SCHEDULE): "rule-b"}


def test_what_a_node_remembers_is_read_back() -> None:
    text = encode_rule_taints(MEMORY)
    assert text == '{"b:NoSchedule":"rule-b","example.com/a:NoExecute":"rule-a"}'
    assert decode_rule_taints(text) == MEMORY


def test_with_nothing_to_remember_the_annotation_goes() -> None:
    assert encode_rule_taints({}) is None
    assert decode_rule_taints(None) == {}


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("", {}),
        ("[]", {}),
        ("{", {}),
        ('{"a": 1}', {}),
        ("[" * 100_000, {}),
        ('{"no effect": "r", ":NoSchedule": "r", "a:": "r", "a:NoSchedule": "r"}', {("a", NO_SCHEDULE): "r"}),
    ],
)
def test_a_memory_that_makes_no_sense_is_none(text: str, memory: dict[tuple[str, str], str]) -> None:
    assert decode_rule_taints(text) == memory
