"""What a candidate makes of the Lease: when it may take it, must renew it, must stop."""

import pytest

from taintkeeper.core.election import NEVER, Claim, Election, Look
from tests.unit.core.election_bench import TERMS, held

CREATE = Claim(None, begins=True, transitions=0)


def standby(*, at: float = 100.0) -> Election:
    """Return a candidate that has just seen somebody else's Lease."""
    election = Election(TERMS)
    election.request(at)
    election.found(held("them_1"), at)
    return election


def leader(*, at: float = 100.0) -> Election:
    """Return a candidate that has just been granted the Lease at version 1."""
    election = Election(TERMS)
    election.request(at)
    election.found(None, at)
    election.request(at)
    election.claimed(held("us_1", transitions=0), at)
    return election


def test_it_looks_first_and_at_once() -> None:
    election = Election(TERMS)
    assert election.due == NEVER
    assert election.request(5.0) == Look()


def test_who_finds_no_lease_creates_it_and_leads_once_that_is_granted() -> None:
    election = Election(TERMS)
    election.request(5.0)
    election.found(None, 5.1)
    assert election.due == 5.1
    assert election.request(5.2) == CREATE
    assert not election.leads(5.3)
    election.claimed(held("us_1"), 5.3)
    assert election.leads(5.3)


def test_a_term_counts_from_when_the_claim_was_sent() -> None:
    election = Election(TERMS)
    election.request(5.0)
    election.found(None, 5.0)
    election.request(6.0)
    election.claimed(held("us_1"), 9.0)
    assert election.leads(15.9)
    assert not election.leads(16.0)


@pytest.mark.parametrize(
    ("record", "claim"),
    [
        (held("", "7", seconds=1, transitions=4), Claim("7", begins=True, transitions=5)),
        (held("", "7", seconds=None), Claim("7", begins=True, transitions=4)),
        (held("us_1", "7"), Claim("7", begins=False, transitions=3)),
    ],
    ids=["it was given back", "somebody made it by hand", "our own claim, whose answer was lost"],
)
def test_a_lease_that_nobody_else_holds_is_taken_at_once(record: object, claim: Claim) -> None:
    election = Election(TERMS)
    election.request(100.0)
    election.found(record, 100.1)  # type: ignore[arg-type]
    assert election.due == 100.1
    assert election.request(100.1) == claim


def test_somebody_elses_lease_is_looked_at_twice_in_a_retry_period() -> None:
    election = standby(at=100.0)
    assert election.due == 101.0
    assert election.request(101.0) == Look()


def test_after_an_answer_that_was_slow_it_looks_again_at_once_and_not_in_the_past() -> None:
    election = Election(TERMS)
    election.request(100.0)
    election.found(held("them_1"), 104.0)
    assert election.due == 104.0


@pytest.mark.parametrize(("seconds", "waits"), [(15, 15.0), (40, 40.0), (3.0, 3.0), (None, 15.0)], ids=str)
def test_somebody_elses_lease_is_over_when_it_was_seen_unchanged_for_as_long_as_it_says(
    seconds: float | None, waits: float
) -> None:
    election = Election(TERMS)
    for at in (100.0, 101.0, 99.99 + waits):
        assert election.request(at) == Look()
        election.found(held("them_1", seconds=seconds), at)
    assert election.request(100.0 + waits) == Look()
    election.found(held("them_1", seconds=seconds), 100.0 + waits)
    assert election.request(100.0 + waits) == Claim("1", begins=True, transitions=4)


def test_somebody_elses_lease_lasts_longer_with_every_renewal_that_is_seen() -> None:
    election = standby(at=100.0)
    election.request(114.0)
    election.found(held("them_1", "2"), 114.0)
    election.request(128.9)
    election.found(held("them_1", "2"), 128.9)
    assert election.request(130.0) == Look()


def test_a_lease_that_was_deleted_still_binds_who_has_seen_it() -> None:
    election = standby(at=100.0)
    election.request(101.0)
    election.found(None, 101.0)
    assert election.request(102.0) == Look()
    election.found(None, 115.0)
    assert election.request(115.0) == Claim(None, begins=True, transitions=4)


def test_a_leader_renews_each_retry_period() -> None:
    election = leader(at=100.0)
    assert election.due == 102.0
    assert election.request(102.0) == Claim("1", begins=False, transitions=0)
    election.claimed(held("us_1", "2", transitions=0), 102.1)
    assert election.due == 104.0
    assert election.request(104.0) == Claim("2", begins=False, transitions=0)
    assert election.until == 112.0


def test_a_leader_that_cannot_renew_stops_at_the_deadline() -> None:
    election = leader(at=100.0)
    election.request(102.0)
    for at in (103.0, 104.0, 109.9):
        election.failed(at)
        assert election.request(at) == Look()
    assert not election.leads(110.0)
    assert election.request(110.0) is None
    assert election.ended == "it could not be renewed for 10 s"


@pytest.mark.parametrize("answer", ["claimed", "found", "failed"])
def test_an_answer_after_the_deadline_does_not_make_it_a_leader_again(answer: str) -> None:
    election = leader(at=100.0)
    election.request(109.0)
    match answer:
        case "claimed":
            election.claimed(held("us_1", "2"), 110.0)
        case "found":
            election.found(held("us_1", "2"), 110.0)
        case _:
            election.failed(110.0)
    assert election.ended is not None
    assert not election.leads(110.0)
    assert election.request(110.0) is None


def test_a_leader_in_doubt_looks_and_goes_on_from_what_it_finds() -> None:
    election = leader(at=100.0)
    election.request(102.0)
    election.failed(102.0)
    assert election.due == 103.0
    assert election.request(103.0) == Look()
    election.found(held("us_1", "2"), 103.1)
    assert election.until == 110.0, "to find oneself in the Lease renews nothing"
    assert election.due == 103.1
    assert election.request(103.1) == Claim("2", begins=False, transitions=3)


@pytest.mark.parametrize(
    ("holder", "why"), [("them_1", "it is held by them_1"), ("", "it was taken away")], ids=["another", "nobody"]
)
def test_a_leader_that_finds_another_holder_stops_at_once(holder: str, why: str) -> None:
    election = leader(at=100.0)
    election.request(102.0)
    election.failed(102.0)
    election.request(103.0)
    election.found(held(holder, "2"), 103.0)
    assert not election.leads(103.0)
    assert election.ended == why
    assert election.request(104.0) is None


def test_a_leader_whose_lease_was_deleted_creates_it_again() -> None:
    election = leader(at=100.0)
    election.request(102.0)
    election.failed(102.0)
    election.request(103.0)
    election.found(None, 103.0)
    assert election.leads(103.0)
    assert election.request(103.0) == CREATE
    election.claimed(held("us_1", "9"), 103.1)
    assert election.until == 113.0


def test_a_claim_that_is_granted_too_late_makes_nobody_a_leader_and_is_made_again() -> None:
    election = Election(TERMS)
    election.request(100.0)
    election.found(None, 100.0)
    election.request(100.0)
    election.claimed(held("us_1"), 160.0)
    assert not election.leads(160.0)
    assert election.ended is None
    assert election.request(160.0) == Look()
    election.found(held("us_1"), 160.0)
    assert election.request(160.0) == Claim("1", begins=False, transitions=3)
    election.claimed(held("us_1", "2"), 160.1)
    assert election.leads(160.1)


def test_who_was_beaten_to_it_waits_like_before() -> None:
    election = standby(at=100.0)
    election.request(115.0)
    election.found(held("them_1"), 115.0)
    election.request(115.0)
    election.failed(115.0)
    assert election.due == 116.0
    election.request(116.0)
    election.found(held("others_1", "2"), 116.0)
    assert not election.leads(116.0)
    assert election.request(117.0) == Look()


def test_who_steps_down_leads_no_longer() -> None:
    election = leader(at=100.0)
    election.step_down()
    assert not election.leads(100.0)
    assert election.request(101.0) is None


def test_it_remembers_the_lease_as_it_was_last_seen() -> None:
    assert Election(TERMS).record is None
    assert standby().record == held("them_1")
    assert leader().record == held("us_1", transitions=0)
