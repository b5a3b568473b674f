"""What holds among several candidates, whatever becomes of their clocks, requests and answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core.election import Terms
from tests.unit.core.election_bench import Candidate, Store

RATES = (0.85, 1.0, 1.15)
"""How fast clocks go. The lease may be half as long again as the deadline: 0.81 and 1.21 would be too much."""

Step = tuple[str, int, float]

steps = st.tuples(
    st.sampled_from(["send", "arrive", "hear", "give up", "go on", "go on", "go on", "pause", "crash"]),
    st.integers(0, 2),
    st.one_of(st.floats(0.01, 2.0), st.floats(2.0, 20.0)),
)
stories = st.lists(steps, min_size=20, max_size=120)
clocks = st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from(RATES)), min_size=2, max_size=3)
often = settings(max_examples=200, derandomize=True, deadline=None)


class Race:
    """Some candidates, one Lease, and the true time, which none of them knows."""

    def __init__(self, clocks: list[tuple[float, float]]) -> None:
        self.store = Store()
        self.true = 0.0
        self.paused = dict.fromkeys(range(len(clocks)), 0.0)
        self.candidates = [
            Candidate(Terms(f"c{number}_1", 15, 10.0, 2.0), self.store, offset, rate)
            for number, (offset, rate) in enumerate(clocks)
        ]

    def leaders(self) -> list[str]:
        """Return who believes that it may act; who is paused believes it too, and would act when it goes on."""
        return [each.terms.identity for each in self.candidates if each.leads(self.true)]

    def do(self, step: Step) -> None:
        """Do one step of a story."""
        what, who, seconds = step
        number = who % len(self.candidates)
        candidate = self.candidates[number]
        if what == "arrive":
            candidate.arrive()
        elif what == "pause":
            self.paused[number] = self.true + seconds * 3.0
        elif what == "crash":
            candidate.crash()
        elif what == "go on":
            self.go_on(seconds)
        elif self.paused[number] <= self.true:
            {"send": candidate.send, "hear": candidate.hear, "give up": candidate.give_up}[what](self.true)

    def go_on(self, seconds: float) -> None:
        """Let time pass. Whoever runs and is not in trouble does its work meanwhile, half of the time."""
        self.true += seconds
        for number, candidate in enumerate(self.candidates):
            if self.paused[number] <= self.true and (number + int(self.true)) % 2:
                self.turn(candidate)

    def turn(self, candidate: Candidate) -> None:
        """Have a request sent and answered without delay."""
        candidate.hear(self.true)
        candidate.send(self.true)
        candidate.arrive()
        candidate.hear(self.true)

    def settle(self) -> None:
        """Let all be well for a minute; who has lost the Lease begins anew."""
        self.paused = dict.fromkeys(self.paused, 0.0)
        for _ in range(120):
            self.true += 0.5
            for candidate in self.candidates:
                if candidate.election.ended is not None:
                    candidate.crash()
                self.turn(candidate)


@often
@given(story=stories, clocks=clocks)
@pytest.mark.reported("kopf peering")
def test_no_two_candidates_ever_believe_that_they_lead(story: list[Step], clocks: list[tuple[float, float]]) -> None:
    race = Race(clocks)
    for step in story:
        race.do(step)
        assert len(race.leaders()) <= 1


@often
@given(story=stories, clocks=clocks)
def test_whoever_leads_is_in_the_lease(story: list[Step], clocks: list[tuple[float, float]]) -> None:
    race = Race(clocks)
    for step in story:
        race.do(step)
        if leaders := race.leaders():
            assert race.store.record is not None
            assert leaders == [race.store.record.holder]


@settings(often, max_examples=100)
@given(story=stories, clocks=clocks)
def test_once_all_is_well_exactly_one_leads(story: list[Step], clocks: list[tuple[float, float]]) -> None:
    race = Race(clocks)
    for step in story:
        race.do(step)
    race.settle()
    assert len(race.leaders()) == 1
    assert all(candidate.election.ended is None for candidate in race.candidates)
