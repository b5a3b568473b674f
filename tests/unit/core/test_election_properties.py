"""What holds among several candidates, whatever becomes of their clocks, requests and answers."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core.election import Terms
from tests.unit.core.election_bench import Candidate, Store

LEASE_SECONDS, RENEW_SECONDS = 15, 10.0
RATES = (0.85, 1.0, 1.15)
"""How fast clocks go. The lease may be half as long again as the deadline: 0.81 and 1.21 would be too much."""

Step = tuple[str, int, float]

steps = st.tuples(
    st.sampled_from(["send", "arrive", "hear", "give up", "pause", "cut", "crash", "go on", "go on", "go on", "go on"]),
    st.integers(0, 2),
    st.one_of(st.floats(0.01, 2.0), st.floats(2.0, 20.0), st.sampled_from([1.0, 9.0, 11.0, 17.0])),
)
stories = st.lists(steps, min_size=20, max_size=60)
clocks = st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from(RATES)), min_size=2, max_size=3)
often = settings(max_examples=300, derandomize=True, deadline=None)
TICK = 0.25


class Race:
    """Some candidates, one Lease, and the true time, which none of them knows.

    ``see`` is called whenever anything may have changed.
    """

    def __init__(self, clocks: list[tuple[float, float]], see: Callable[["Race"], None] = lambda _: None) -> None:
        self.store = Store()
        self.true = 0.0
        self.candidates = [
            Candidate(Terms(f"c{number}_1", LEASE_SECONDS, RENEW_SECONDS, 2.0), self.store, offset, rate)
            for number, (offset, rate) in enumerate(clocks)
        ]
        self.paused = [0.0] * len(clocks)
        """Until when each does not run at all."""
        self.cut = [0.0] * len(clocks)
        """Until when none of its requests comes through, or no answer to it."""
        self._see = see

    def leaders(self) -> list[str]:
        """Return who believes that it may act; who is paused believes it too, and would act when it goes on."""
        return [each.terms.identity for each in self.candidates if each.leads(self.true)]

    def do(self, step: Step) -> None:
        """Do one step of a story."""
        what, who, seconds = step
        number = who % len(self.candidates)
        candidate = self.candidates[number]
        match what:
            case "pause":
                self.paused[number] = self.true + seconds
            case "cut":
                self.cut[number] = self.true + seconds
            case "crash":
                candidate.crash()
            case "arrive":
                candidate.arrive()
            case "go on":
                self.go_on(seconds)
            case _ if self.paused[number] <= self.true:
                {"send": candidate.send, "hear": candidate.hear, "give up": candidate.give_up}[what](self.true)
        self._see(self)

    def go_on(self, seconds: float) -> None:
        """Let time pass, in which everybody who can does its work."""
        until = self.true + seconds
        while self.true < until:
            self.true = min(until, self.true + TICK)
            for number, candidate in enumerate(self.candidates):
                if self.paused[number] <= self.true:
                    self.turn(candidate, cut=self.true < self.cut[number])
                self._see(self)

    def turn(self, candidate: Candidate, *, cut: bool = False) -> None:
        """Have a request sent and answered without delay; where that is cut, it or its answer is lost."""
        candidate.hear(self.true)
        candidate.send(self.true)
        if not cut or self.store.version % 2:
            candidate.arrive()
        if cut:
            candidate.give_up(self.true)
        candidate.hear(self.true)

    def settle(self) -> None:
        """Let all be well for a minute; who has lost the Lease begins anew."""
        self.paused = [0.0] * len(self.candidates)
        self.cut = [0.0] * len(self.candidates)
        for _ in range(120):
            for candidate in self.candidates:
                if candidate.election.ended is not None:
                    candidate.crash()
            self.go_on(0.5)


def at_most_one(race: Race) -> None:
    assert len(race.leaders()) <= 1


def in_the_lease(race: Race) -> None:
    if leaders := race.leaders():
        assert race.store.record is not None
        assert leaders == [race.store.record.holder]


@often
@given(story=stories, clocks=clocks)
@pytest.mark.reported("kopf peering")
def test_no_two_candidates_ever_believe_that_they_lead(story: list[Step], clocks: list[tuple[float, float]]) -> None:
    race = Race(clocks, at_most_one)
    for step in story:
        race.do(step)


@often
@given(story=stories, clocks=clocks)
def test_whoever_leads_is_in_the_lease(story: list[Step], clocks: list[tuple[float, float]]) -> None:
    race = Race(clocks, in_the_lease)
    for step in story:
        race.do(step)


@settings(often, max_examples=100)
@given(story=stories, clocks=clocks)
def test_once_all_is_well_exactly_one_leads(story: list[Step], clocks: list[tuple[float, float]]) -> None:
    race = Race(clocks)
    for step in story:
        race.do(step)
    race.settle()
    assert len(race.leaders()) == 1
    assert all(candidate.election.ended is None for candidate in race.candidates)
