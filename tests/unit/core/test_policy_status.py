"""What a policy's status says: how many pods it is about, and whether it does what it says."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintkeeper.core.policies import Mode, Policy, TaintPattern
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.policy_messages import PolicySeen, PolicyStatus, PolicyWritten
from taintkeeper.core.policy_status import PolicyReporter
from taintkeeper.core.policy_tally import Numbers, PolicyTally, Standing
from tests.unit.core.policy_bench import policy, seen


class Bench:
    """A book with its reporter; what is written comes back as the status that the policy has."""

    def __init__(self, *policies: Policy) -> None:
        self.now = 1000.0
        self.book = PolicyBook()
        self.tally = PolicyTally()
        self.reporter = PolicyReporter(self.book, self.tally, Random(0))
        self.has: dict[str, PolicyStatus] = {}
        for each in policies:
            self.put(seen(each))
        self.wait()

    def put(self, told: PolicySeen) -> None:
        """Take in a policy as it was seen."""
        self.book.put(told)
        self.reporter.put(told)

    def drop(self, name: str) -> None:
        """Delete a policy."""
        self.book.drop(name)
        self.reporter.drop(name)

    def wait(self, seconds: float = 60.0) -> int:
        """Let time pass, write what is due and answer; return how many writes that were."""
        self.now += seconds
        writes = self.reporter.due(self.now)
        for write in writes:
            self.has[write.name] = write.status
            self.reporter.written(PolicyWritten(write.name, done=True), self.now)
        return len(writes)

    def condition(self, type_: str, name: str = "p") -> tuple[str, str, str]:
        """Return status, reason and message of a condition as written last."""
        found = self.has[name].condition(type_)
        assert found is not None
        return found.status, found.reason, found.message


def test_a_policy_says_how_many_pods_it_is_about() -> None:
    bench = Bench(policy())
    for uid, standing in (("a", Standing.PENDING), ("b", Standing.BLOCKED), ("c", Standing.EXEMPT)):
        bench.tally.note(uid, "p", standing)
    bench.tally.note("d", "another", Standing.PENDING)
    bench.tally.evicted("p")
    bench.wait()
    status = bench.has["p"]
    assert (status.pending, status.blocked, status.exempt, status.evicted) == (2, 1, 1, 1)
    bench.tally.note("b", "another", Standing.PENDING)
    bench.tally.forget("c")
    bench.wait()
    status = bench.has["p"]
    assert (status.pending, status.blocked, status.exempt, status.evicted) == (1, 0, 0, 1)


def test_a_status_that_is_right_is_not_written_again() -> None:
    bench = Bench(policy())
    assert bench.wait() == 0
    bench.put(seen(policy(), version=2, status=bench.has["p"]))
    assert bench.wait() == 1
    assert bench.has["p"].generation == 2
    assert bench.wait() == 0


def test_what_was_evicted_outlives_a_restart_and_a_change_of_leader() -> None:
    waiting = Bench(policy())
    waiting.put(seen(policy(), version=2, status=PolicyStatus(1, evicted=40)))
    waiting.put(seen(policy(), version=3, status=PolicyStatus(1, evicted=41)))
    waiting.tally.evicted("p")
    waiting.wait()
    assert waiting.has["p"].evicted == 42
    waiting.put(seen(policy(), version=4, status=waiting.has["p"]))
    waiting.tally.evicted("p")
    waiting.wait()
    assert waiting.has["p"].evicted == 43


def test_a_status_that_somebody_took_away_comes_back_as_it_was() -> None:
    bench = Bench(policy())
    bench.tally.evicted("p")
    bench.wait()
    bench.put(seen(policy(), version=2, status=None))
    bench.wait()
    assert bench.has["p"].evicted == 1


def test_a_policy_that_comes_back_as_another_begins_at_zero() -> None:
    bench = Bench(policy())
    bench.tally.evicted("p")
    bench.put(seen(policy(), uid="another"))
    bench.wait()
    assert bench.has["p"].evicted == 0
    bench.tally.evicted("p")
    bench.drop("p")
    assert bench.wait() == 0
    bench.put(seen(policy()))
    bench.wait()
    assert bench.has["p"].evicted == 0


def test_an_older_state_of_a_policy_says_nothing_about_its_status() -> None:
    bench = Bench()
    bench.put(seen(policy(), version=5))
    bench.wait()
    bench.put(seen(policy(), version=4, status=PolicyStatus(1, evicted=7)))
    assert bench.wait() == 0


# Conditions


@pytest.mark.parametrize(
    ("facts", "active"),
    [
        ({}, ("True", "InForce", "Pods are evicted as soon as their disruption budgets allow it.")),
        (
            {"mode": Mode.EVICT_THEN_DELETE, "blocked_seconds": 60.0},
            ("True", "InForce", "Pods are evicted, and deleted after being blocked for 60 s."),
        ),
        ({"mode": Mode.DELETE}, ("True", "InForce", "Pods are deleted, whatever their disruption budgets say.")),
        ({"mode": Mode.IGNORE}, ("True", "InForce", "Pods stay where they are.")),
        ({"dry_run": True}, ("False", "DryRun", "dryRun is true: the numbers tell what would be, no pod leaves.")),
    ],
)
def test_a_policy_says_what_it_does(facts: dict[str, Any], active: tuple[str, str, str]) -> None:
    bench = Bench(policy(**facts))
    assert bench.condition("Accepted") == ("True", "Valid", "The policy makes sense.")
    assert bench.condition("Active") == active


def test_a_policy_that_others_leave_nothing_says_so_until_they_are_gone() -> None:
    bench = Bench(policy())
    bench.put(seen(policy("first", precedence=1, taints=(TaintPattern(),))))
    bench.wait()
    status, reason, message = bench.condition("Active")
    assert (status, reason) == ("False", "Superseded")
    assert "first" in message
    assert bench.condition("Active", "first")[0] == "True"
    bench.drop("first")
    bench.wait()
    assert bench.condition("Active")[:2] == ("True", "InForce")


def test_nonsense_is_not_accepted_and_the_message_says_what_is_in_force() -> None:
    bench = Bench()
    bench.put(seen(None, fault="spec.mode: 'Force' is none of these"))
    bench.wait()
    message = "spec.mode: 'Force' is none of these; the policy has no effect"
    assert bench.condition("Accepted") == ("False", "Invalid", message)
    assert bench.condition("Active")[:2] == ("False", "Invalid")
    bench.put(seen(policy(), version=2))
    bench.put(seen(None, version=3, fault="spec.mode: 'Force' is none of these"))
    bench.wait()
    message = "spec.mode: 'Force' is none of these; the last version that made sense stays in force"
    assert bench.condition("Accepted") == ("False", "Invalid", message)
    assert bench.condition("Active")[:2] == ("True", "InForce")
    assert bench.has["p"].generation == 3


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    bench = Bench(policy())
    first = bench.has["p"].conditions
    bench.put(seen(policy(dry_run=True), version=2, status=bench.has["p"]))
    bench.wait()
    accepted, active = bench.has["p"].conditions
    assert accepted == first[0]
    assert active.since == bench.now
    bench.put(seen(policy(mode=Mode.DELETE, dry_run=True), version=3, status=bench.has["p"]))
    bench.wait()
    assert bench.has["p"].conditions == (accepted, active)


# The tally

UIDS = st.sampled_from(["a", "b", "c"])
POLICIES = st.sampled_from(["p", "q"])
notes = st.one_of(st.tuples(UIDS, POLICIES, st.sampled_from(Standing)), st.tuples(UIDS, st.none(), st.none()))


@given(st.lists(notes))
def test_the_numbers_are_those_of_a_count_at_every_moment(story: list[tuple[str, str | None, Standing | None]]) -> None:
    tally = PolicyTally()
    stands: dict[str, tuple[str, Standing]] = {}
    for uid, name, standing in story:
        before = {each: tally.numbers(each) for each in ("p", "q")}
        if name is None or standing is None:
            stands.pop(uid, None)
            tally.forget(uid)
        else:
            stands[uid] = name, standing
            tally.note(uid, name, standing)
        touched = tally.take_touched()
        for each in ("p", "q"):
            mine = [standing for policy_name, standing in stands.values() if policy_name == each]
            blocked, exempt = mine.count(Standing.BLOCKED), mine.count(Standing.EXEMPT)
            assert tally.numbers(each) == replace(Numbers(), pending=len(mine) - exempt, blocked=blocked, exempt=exempt)
            assert each in touched or tally.numbers(each) == before[each]
