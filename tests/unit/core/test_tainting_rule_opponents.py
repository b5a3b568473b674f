"""Somebody else is of another opinion about the taints of rules, and as persistent as we are."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from taintkeeper.core.messages import NodeSeen, NodeWritten, WriteResult
from taintkeeper.core.objects import NO_SCHEDULE, Node, Taint
from taintkeeper.core.taint_messages import PatchTaints, TaintContested, TaintsChanged
from tests.unit.core.builders import FOREIGN, node
from tests.unit.core.rule_bench import DEADLOCK, rule
from tests.unit.core.tainting_bench import TaintBench

ID = (DEADLOCK, NO_SCHEDULE)
OURS = Taint(DEADLOCK, NO_SCHEDULE)
SICK = {"Ready": "True", "KernelDeadlock": "True"}
WELL = {"Ready": "True", "KernelDeadlock": "False"}
TEN_MINUTES = 600.0

Opinion = Callable[[Node], Node]


def stripped(found: Node) -> Node:
    """Remove the taint and leave what the node remembers."""
    return replace(found, taints=(FOREIGN,))


def wiped(found: Node) -> Node:
    """Remove the taint and what the node remembers."""
    return replace(found, taints=(FOREIGN,), rule_taints={})


def revalued(found: Node) -> Node:
    """Give our taint another value."""
    others = tuple(taint for taint in found.taints if taint.key != DEADLOCK)
    return replace(found, taints=(*others, replace(OURS, value="theirs")), rule_taints={ID: "deadlock"})


def restored(found: Node) -> Node:
    """Put back the taint of a rule that is gone, and what the node remembered of it."""
    return replace(found, taints=(FOREIGN, OURS), rule_taints={ID: "gone"})


def remembering(memory: Mapping[tuple[str, str], str]) -> Opinion:
    """Put back what the node remembers, and no taint."""
    return lambda found: replace(found, rule_taints=memory)


def quarrel(bench: TaintBench, opinion: Opinion, *, every: float = 0.5) -> int:
    """Let an opponent have its way with n1 again and again; return how often we wrote to the node."""
    while bench.now < TEN_MINUTES:
        found = bench.server["n1"]
        if opinion(found) != found:
            bench.change("n1", taints=opinion(found).taints, rule_taints=opinion(found).rule_taints)
        bench.run_until(bench.now + every)
    return len(bench.writes())


def sick(conditions: dict[str, str] = SICK) -> list[Node]:
    return [node(name, FOREIGN, conditions=conditions) for name in ("n1", "n2", "n3")]


@pytest.mark.parametrize("every", [0.01, 0.5, 25.0, 140.0])
@pytest.mark.parametrize("opinion", [stripped, wiped, revalued])
def test_a_taint_of_a_rule_that_somebody_spoils_each_time_costs_few_writes(opinion: Opinion, every: float) -> None:
    bench = TaintBench(*sick(), rules=[rule()])
    assert quarrel(bench, opinion, every=every) <= 10
    ((_, contest),) = bench.of(TaintContested)
    assert (contest.node.name, contest.taint) == ("n1", ID)
    assert contest.reason == "condition KernelDeadlock is True, by rule deadlock"


@pytest.mark.parametrize(
    "opinion",
    [
        pytest.param(restored, id="a taint of a rule that is gone"),
        pytest.param(remembering({ID: "gone"}), id="the memory of a taint that is not there"),
        pytest.param(remembering({("node.kubernetes.io/disk-pressure", NO_SCHEDULE): "x"}), id="a built-in taint"),
    ],
)
@pytest.mark.parametrize("every", [0.01, 0.5, 25.0, 140.0])
def test_what_somebody_makes_a_node_remember_each_time_costs_few_writes(opinion: Opinion, every: float) -> None:
    bench = TaintBench(*sick(WELL), rules=[rule()])
    assert quarrel(bench, opinion, every=every) <= 10
    assert [contest.reason for _, contest in bench.of(TaintContested)] == [None]


def test_what_somebody_makes_a_node_remember_of_a_taint_that_may_stay_costs_few_writes_too() -> None:
    pressure = ("node.kubernetes.io/disk-pressure", NO_SCHEDULE)
    for made in (
        rule(clear_seconds=36000.0),
        rule(condition_type="DiskPressure", key=pressure[0], condition_status="True"),
    ):
        bench = TaintBench(*sick({**WELL, "DiskPressure": "True"}), rules=[made])
        assert quarrel(bench, remembering({made.taint_id: "deadlock"})) <= 10


def test_a_taint_of_a_rule_that_somebody_removes_comes_back_at_once_and_says_why() -> None:
    bench = TaintBench(*sick(), rules=[rule()])
    bench.run_until(60.0)
    bench.change("n1", taints=(FOREIGN,))
    assert {taint.key for taint in bench.server["n1"].taints} == {FOREIGN.key, DEADLOCK}
    last = bench.of(TaintsChanged)[-1][1]
    assert (last.node.name, set(last.again)) == ("n1", {ID})
    assert last.reasons == {ID: "condition KernelDeadlock is True, by rule deadlock"}


def test_a_contest_about_a_rule_holds_up_no_other_taint_and_ends_when_the_opponent_gives_up() -> None:
    bench = TaintBench(*sick(), rules=[rule()])
    quarrel(bench, wiped)
    bench.condition("n1", "DiskPressure", "True")
    assert bench.keys() >= {"disk-pressure"}
    bench.change("n1", taints=())
    bench.run_until(TEN_MINUTES + 375.0)
    assert bench.keys() == {"disk-pressure", DEADLOCK}


@pytest.mark.parametrize("latency", [0.0, 2.0])
def test_what_we_do_ourselves_is_no_contest(latency: float) -> None:
    bench = TaintBench(*sick(WELL), latency=latency, rules=[rule()])
    for number in range(30):
        bench.condition("n1", "KernelDeadlock", "False" if number % 2 else "True")
        bench.run_until(bench.now + 3.0)
        if number % 3 == 0:
            bench.put_rule(rule(value=f"v{number % 4}"))
        if number % 5 == 0:
            bench.delete_rule("deadlock")
            bench.run_until(bench.now + 1.0)
            bench.put_rule(rule())
    bench.run_until(1000.0)
    assert bench.of(TaintContested) == []
    assert all(not effect.again for _, effect in bench.of(TaintsChanged))


def test_a_rule_that_is_deleted_while_its_taint_is_on_the_way_is_nobodys_fault() -> None:
    bench = TaintBench(*sick(WELL), latency=1.0)
    for _ in range(6):
        bench.put_rule(rule())
        bench.condition("n1", "KernelDeadlock", "True")
        bench.delete_rule("deadlock")
        bench.run_until(bench.now + 10.0)
        bench.condition("n1", "KernelDeadlock", "False")
    assert len(bench.of(PatchTaints)) == 12
    assert bench.of(TaintContested) == []
    assert bench.server["n1"].taints == (FOREIGN,)


def test_a_taint_that_others_set_may_come_and_go() -> None:
    theirs = Taint(DEADLOCK, NO_SCHEDULE, "theirs")
    bench = TaintBench(*sick(WELL), rules=[rule()])
    for number in range(20):
        bench.change("n1", taints=(FOREIGN,) if number % 2 else (FOREIGN, theirs))
        bench.run_until(bench.now + 1.0)
    assert (bench.of(PatchTaints), bench.of(TaintContested)) == ([], [])


def test_a_removal_that_the_watch_shows_before_our_write_is_answered_is_noticed() -> None:
    bench = TaintBench(*sick(), rules=[rule()], latency=1e9)
    for _ in range(3):
        patch = bench.writes()[-1][1]
        memory = patch.node.rule_taints if patch.rule_taints is None else patch.rule_taints
        version, taints = f"{patch.node.resource_version}0", patch.change.taints
        written = replace(patch.node, taints=taints, rule_taints=memory, resource_version=version)
        removed = replace(written, taints=(FOREIGN,), resource_version=f"{version}0")
        bench.tell(NodeSeen(written), NodeSeen(removed), NodeWritten("n1", WriteResult.DONE, written))
    assert len(bench.of(TaintContested)) == 1
