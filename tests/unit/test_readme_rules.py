"""What the README says of rules is what they do."""

import re
from pathlib import Path

import msgspec

from taintkeeper.cluster.rule_wire import decode_rule
from taintkeeper.core import rule_status
from taintkeeper.core.objects import NO_EXECUTE, Node
from taintkeeper.core.rules import Rule
from tests.rule_specs import README, readme_rules
from tests.unit.core.builders import node
from tests.unit.core.tainting_bench import TaintBench

KEY = "example.com/kernel-deadlock"
WELL = {"Ready": "True", "KernelDeadlock": "False"}


def shown() -> Rule:
    """Return the rule that the README shows."""
    (made,) = readme_rules().values()
    made["metadata"] |= {"uid": "uid", "resourceVersion": "1", "generation": 1}
    seen = decode_rule(msgspec.json.encode(made))
    assert seen.rule is not None
    return seen.rule


def workers(count: int) -> list[Node]:
    return [node(f"n{number}", conditions=WELL, labels={"pool": "a"}) for number in range(1, count + 1)]


def deadlock(bench: TaintBench, *names: str, status: str = "True") -> None:
    for name in names:
        bench.condition(name, "KernelDeadlock", status)


def test_the_example_taints_after_a_minute_and_the_taint_goes_after_five() -> None:
    bench = TaintBench(*workers(10), rules=[shown()])
    deadlock(bench, "n1")
    bench.run_until(100.0)
    deadlock(bench, "n1", status="False")
    bench.run_until(1000.0)
    assert [(at, [str(each) for each in patch.change.taints]) for at, patch in bench.writes()] == [
        (60.0, [f"{KEY}:NoExecute"]),
        (400.0, []),
    ]


def test_a_node_that_flaps_costs_two_writes_with_the_example() -> None:
    bench = TaintBench(*workers(10), rules=[shown()])
    for _ in range(10):
        deadlock(bench, "n1")
        bench.run_until(bench.now + 100.0)
        deadlock(bench, "n1", status="False")
        bench.run_until(bench.now + 100.0)
    bench.run_until(bench.now + 1000.0)
    assert len(bench.writes()) == 2


def test_while_more_than_a_tenth_is_deadlocked_no_further_node_is_tainted_by_the_example() -> None:
    bench = TaintBench(*workers(20), rules=[shown()])
    deadlock(bench, "n1", "n2")
    bench.run_until(100.0)
    deadlock(bench, "n3")
    bench.run_until(1000.0)
    assert {name for _, name in bench.executed()} == {"n1", "n2"}
    assert bench.executed()[1][0] - bench.executed()[0][0] == 10.0, "one after another"


def test_the_example_is_for_workers() -> None:
    master = node("m", conditions=WELL, labels={"node-role.kubernetes.io/control-plane": ""})
    bench = TaintBench(*workers(10), master, rules=[shown()])
    deadlock(bench, "m")
    bench.run_until(1000.0)
    assert (shown().effect, bench.writes("m")) == (NO_EXECUTE, [])


def test_every_reason_in_a_status_is_explained() -> None:
    text = README.read_text()
    source = Path(rule_status.__file__).read_text()
    reasons = set(re.findall(r'RuleCondition\(ACTIVE, "\w+", "(\w+)"', source))
    assert len(reasons) == 5
    assert all(f"`{reason}`" in text for reason in reasons)
