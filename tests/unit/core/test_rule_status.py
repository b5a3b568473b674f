"""What a rule's status says, and how often it is written."""

from dataclasses import replace
from itertools import pairwise
from math import inf
from random import Random
from typing import Any

import pytest

from taintkeeper.core.rule_desk import RuleDesk
from taintkeeper.core.rules import Limit, Rule, RuleGone, RuleSeen, RuleStatus, RuleWritten, WriteRuleStatus
from taintkeeper.core.selectors import Selector
from tests.unit.core.rule_bench import RuleBench, rule, seen

SICK = {"KernelDeadlock": "True"}
WELL = {"KernelDeadlock": "False"}


class StatusBench(RuleBench):
    """A bench whose rules have their status written; every write is answered at once, well unless told otherwise."""

    def __init__(self, *rules: Rule) -> None:
        super().__init__()
        self.desk = RuleDesk(Random(0))
        self.desk.trust(fresh=True)
        self.book = self.desk._book
        self.written: list[tuple[float, WriteRuleStatus]] = []
        self.on_objects: dict[str, RuleStatus] = {}
        self.works: bool | None = True
        for each in rules:
            self.put(each)
        self.work()

    def put(self, made: Rule | None, **more: Any) -> None:
        """Create or change a rule; it has the status that was written last."""
        told = seen(made, **more)
        self.tell(replace(told, status=self.on_objects.get(told.uid)))

    def tell(self, told: RuleSeen) -> None:
        """Take in a rule as it was seen."""
        self.desk.take(told, self.now)
        self.settle()

    def remove(self, name: str = "deadlock") -> None:
        """Delete a rule."""
        self.desk.take(RuleGone(name), self.now)
        self.settle()

    def work(self) -> list[WriteRuleStatus]:
        """Write what is due now, and answer."""
        due = self.desk.statuses(self.now)
        for write in due:
            self.written.append((self.now, write))
            self.on_objects[self.entry(write.name).seen.uid] = write.status
            if self.works is not None:
                self.desk.take(RuleWritten(write.name, self.works), self.now)
        if due:
            assert self.desk.statuses(self.now) == []
        return due

    def wait(self, seconds: float) -> None:
        """Let time pass and wake the reporter when it asks for it."""
        end = self.now + seconds
        while (at := self.desk.next_at(reporting=True)) <= end:
            self.now = max(self.now, at)
            self.settle()
            self.work()
        self.now = end
        self.work()

    def last(self) -> RuleStatus:
        """Return the status that was written last."""
        return self.written[-1][1].status

    def condition(self, type_: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition as written last."""
        found = self.last().condition(type_)
        assert found is not None
        return found.status, found.reason, found.message


def test_a_rule_says_how_many_nodes_it_is_about_and_that_it_works() -> None:
    bench = StatusBench()
    for index in range(4):
        bench.add(f"n{index}", conditions=SICK if index < 2 else WELL)
    bench.put(rule(for_seconds=60.0, limit=Limit(2)), version=3)
    bench.add("n9", conditions=SICK, since=0.0)
    bench.work()
    status = bench.last()
    assert (status.generation, status.matched, status.waiting, status.tainted, status.held_back) == (3, 5, 2, 0, 1)
    assert bench.condition("Accepted")[:2] == ("True", "Valid")
    assert bench.written[-1][1].name == "deadlock"


def test_a_status_that_is_right_is_not_written_again_not_even_after_a_restart() -> None:
    bench = StatusBench(rule())
    bench.add(conditions=SICK)
    bench.wait(60.0)
    before = len(bench.written)
    bench.report(**SICK)
    bench.wait(3600.0)
    assert len(bench.written) == before
    again = StatusBench()
    again.add(conditions=SICK)
    again.tell(seen(rule(), status=bench.last()))
    again.wait(60.0)
    assert again.written == []


def test_what_somebody_else_wrote_into_the_status_is_put_right() -> None:
    bench = StatusBench(rule())
    right = bench.last()
    bench.wait(60.0)
    bench.tell(seen(rule(), version=2, status=None))
    bench.wait(60.0)
    assert bench.last().condition("Accepted") is not None
    assert len(bench.written) == 2
    assert bench.last().matched == right.matched


def test_in_a_storm_a_status_is_written_every_few_seconds_and_ends_up_right() -> None:
    bench = StatusBench(rule())
    for index in range(100):
        bench.add(f"n{index}", conditions=SICK)
        bench.wait(0.2)
    bench.wait(5.0)
    times = [at for at, _ in bench.written]
    assert len(times) <= 6
    assert all(after - before >= 5.0 for before, after in pairwise(times))
    assert bench.last().tainted == 100


def test_one_write_at_a_time_and_its_answer_brings_the_next() -> None:
    bench = StatusBench(rule())
    bench.works = None
    bench.wait(60.0)
    bench.add(conditions=SICK)
    assert len(bench.work()) == 1
    bench.report(**WELL)
    bench.wait(60.0)
    assert bench.work() == []
    bench.desk.take(RuleWritten("deadlock", True), bench.now)
    assert [write.status.tainted for write in bench.work()] == [0]


def test_a_write_that_fails_is_tried_again_ever_more_seldom() -> None:
    bench = StatusBench()
    bench.works = False
    bench.put(rule())
    bench.work()
    bench.wait(3600.0)
    times = [at for at, _ in bench.written]
    pauses = [after - before for before, after in pairwise(times)]
    assert 5.0 <= pauses[0] < 7.0
    assert pauses[:5] == sorted(pauses[:5])
    assert 300.0 <= pauses[-1] <= 375.0
    bench.works = True
    bench.wait(400.0)
    count = len(bench.written)
    bench.wait(3600.0)
    assert len(bench.written) == count


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    bench = StatusBench(rule())
    bench.desk.take(RuleWritten("deadlock", False), bench.now)
    bench.desk.take(RuleWritten("unknown", True), bench.now)
    assert bench.work() == []
    assert bench.desk.next_at(reporting=True) == inf


def test_a_node_that_is_gone_or_no_longer_selected_is_not_counted_any_more() -> None:
    bench = StatusBench(rule(selector=Selector((("pool", "gpu"),))))
    for name in ("a", "b", "c"):
        bench.add(name, conditions=SICK, labels={"pool": "gpu"})
    bench.wait(60.0)
    assert (bench.last().matched, bench.last().tainted) == (3, 3)
    bench.drop("a")
    bench.wait(60.0)
    assert (bench.last().matched, bench.last().tainted) == (2, 2)
    bench.label("b", pool="cpu")
    bench.wait(60.0)
    assert (bench.last().matched, bench.last().tainted) == (1, 1)


def test_a_rule_that_is_gone_has_no_status_and_one_that_comes_back_has_its_own() -> None:
    bench = StatusBench(rule())
    bench.add(conditions=SICK)
    bench.remove()
    bench.wait(60.0)
    assert len(bench.written) == 1
    bench.put(rule(), uid="another")
    bench.work()
    assert bench.on_objects.keys() == {"deadlock-uid", "another"}


def test_a_rule_that_comes_back_between_two_writes_is_not_taken_for_the_old_one() -> None:
    bench = StatusBench(rule())
    bench.put(rule(), uid="another")
    assert len(bench.work()) == 1


def test_an_older_state_of_the_rule_says_nothing_about_its_status() -> None:
    bench = StatusBench()
    bench.put(rule(), version=5)
    bench.work()
    bench.tell(seen(rule(), version=4, status=None))
    bench.wait(60.0)
    assert len(bench.written) == 1


# Conditions


def test_nonsense_is_not_accepted_and_the_message_says_what_is_in_force() -> None:
    bench = StatusBench()
    bench.put(None, fault="spec.taint.key: 'a b' is no qualified name")
    bench.work()
    fault = "spec.taint.key: 'a b' is no qualified name"
    assert bench.condition("Accepted") == ("False", "Invalid", f"{fault}; the rule has no effect")
    assert bench.condition("Active")[:2] == ("False", "Invalid")


def test_an_edit_that_makes_no_sense_is_told_while_the_last_good_version_goes_on() -> None:
    bench = StatusBench(rule())
    bench.add(conditions=SICK)
    bench.put(None, version=2, fault="spec.forSeconds: -1 is bad")
    bench.wait(60.0)
    assert bench.last().generation == 2
    assert bench.last().tainted == 1
    message = "spec.forSeconds: -1 is bad; the last version that made sense stays in force"
    assert bench.condition("Accepted") == ("False", "Invalid", message)
    assert bench.condition("Active")[:2] == ("True", "InForce")


def test_a_rule_above_its_limit_is_not_active_and_says_the_numbers() -> None:
    bench = StatusBench(rule(limit=Limit(30, percent=True)))
    for index in range(5):
        bench.add(f"n{index}", conditions=SICK)
    bench.wait(60.0)
    status, reason, message = bench.condition("Active")
    assert (status, reason) == ("False", "MaxUnhealthy")
    assert message.startswith("5 of 5 selected nodes suffer, more than maxUnhealthy (30%) allows")


def test_a_dry_run_is_not_active() -> None:
    bench = StatusBench(rule(dry_run=True))
    assert bench.condition("Active")[:2] == ("False", "DryRun")


def test_the_rule_whose_value_does_not_count_says_which_one_comes_first() -> None:
    bench = StatusBench(rule("a", value="a"), rule("b", value="b"))
    bench.add(conditions=SICK)
    bench.wait(60.0)
    ends = {write.name: write.status for _, write in bench.written}
    first, second = ends["a"].condition("Active"), ends["b"].condition("Active")
    assert first is not None
    assert first.reason == "InForce"
    assert second is not None
    assert (second.status, second.reason) == ("False", "Superseded")
    assert "On 1 nodes" in second.message
    assert "the rule a," in second.message


@pytest.mark.parametrize("back", [False, True])
def test_the_time_of_a_condition_changes_with_its_status_only(back: bool) -> None:
    bench = StatusBench(rule())
    begun = bench.now
    bench.wait(60.0)
    bench.put(rule(dry_run=True), version=2)
    bench.work()
    changed = bench.now
    active, accepted = bench.last().condition("Active"), bench.last().condition("Accepted")
    assert active is not None
    assert active.since == changed
    assert accepted is not None
    assert accepted.since == begun
    bench.wait(60.0)
    bench.put(rule(), version=3) if back else bench.put(None, version=3, fault="bad")
    bench.work()
    active = bench.last().condition("Active")
    assert active is not None
    assert active.since == (bench.now if back else changed)
