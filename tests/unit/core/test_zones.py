"""What part of a zone has failed, and how fast its nodes may then be tainted."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core.zones import EXCLUDE_LABEL, Rates, TokenBucket, ZoneState, zone_key, zone_state
from tests.unit.core.builders import reported

BETA, STABLE = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ""),
        ({"zone": "z1"}, ""),
        ({STABLE + "zone": "z1"}, "/z1"),
        ({STABLE + "region": "r1"}, "r1/"),
        ({STABLE + "region": "r1", STABLE + "zone": "z1"}, "r1/z1"),
        ({BETA + "region": "r1", BETA + "zone": "z1"}, "r1/z1"),
        ({BETA + "zone": "old", STABLE + "zone": "new", STABLE + "region": "r1"}, "r1/old"),
        ({BETA + "region": "old", STABLE + "region": "new", STABLE + "zone": "z1"}, "old/z1"),
        ({BETA + "zone": "", STABLE + "zone": "z1"}, "/z1"),
    ],
)
def test_region_and_zone_make_the_key_and_the_beta_labels_win(labels: dict[str, str], key: str) -> None:
    assert zone_key(labels) == key


@pytest.mark.upstream("Test_isNodeExcludedFromDisruptionChecks")
def test_one_label_alone_excludes_a_node_from_the_count() -> None:
    assert EXCLUDE_LABEL == "node.kubernetes.io/exclude-disruption"


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (0, 0, NORMAL),
        (1, 0, NORMAL),
        (0, 1, FULL),
        (0, 10, FULL),
        (1, 2, NORMAL),
        (3, 2, NORMAL),
        (2, 3, PARTIAL),
        (3, 3, NORMAL),
        (1, 3, PARTIAL),
        (9, 11, PARTIAL),
        (46, 54, NORMAL),
        (45, 55, PARTIAL),
        (1000, 2, NORMAL),
    ],
)
def test_more_than_two_and_the_threshold_make_a_partial_none_ready_a_full_disruption(
    ready: int, not_ready: int, state: ZoneState
) -> None:
    assert zone_state(ready=ready, not_ready=not_ready, unhealthy_threshold=0.55) is state


def test_the_threshold_may_be_chosen() -> None:
    assert zone_state(ready=7, not_ready=3, unhealthy_threshold=0.3) is PARTIAL
    assert zone_state(ready=7, not_ready=3, unhealthy_threshold=0.31) is NORMAL


@pytest.mark.parametrize(
    ("state", "size", "rate"),
    [
        (NORMAL, 3, 0.1),
        (NORMAL, 300, 0.1),
        (PARTIAL, 51, 0.01),
        (PARTIAL, 50, 0.0),
        reported("kubernetes/kubernetes#102908", "a zone of 20 is small in a cluster of 60", PARTIAL, 20, 0.0),
        (FULL, 3, 0.2),
        (FULL, 300, 0.2),
    ],
)
def test_the_rate_follows_from_state_and_size_of_the_zone(state: ZoneState, size: int, rate: float) -> None:
    assert Rates(full=0.2).of(state, size) == rate


def test_the_rates_are_those_of_upstream_unless_chosen_otherwise() -> None:
    assert Rates() == Rates(normal=0.1, secondary=0.01, full=0.1, unhealthy_threshold=0.55, large_cluster_size=50)


def drain(bucket: TokenBucket, *times: float) -> list[float]:
    return [time for time in times if bucket.take(time)]


def test_a_bucket_lets_one_through_at_once_and_then_at_its_rate() -> None:
    bucket = TokenBucket(0.1, 0.0)
    assert drain(bucket, 0.0, 0.0, 9.9, 10.0, 10.0, 19.9, 20.0) == [0.0, 10.0, 20.0]


def test_the_time_of_the_next_token_does_not_depend_on_when_one_asks() -> None:
    bucket = TokenBucket(0.1, 0.0)
    assert bucket.next_at(0.0) == 0.0
    assert bucket.take(0.0)
    assert [bucket.next_at(now) for now in (0.0, 5.0, 9.0, 12.0)] == pytest.approx([10.0, 10.0, 10.0, 12.0])


def test_no_more_than_one_token_is_saved_up() -> None:
    bucket = TokenBucket(0.1, 0.0)
    assert drain(bucket, 1000.0, 1000.0, 1009.9, 1010.0) == [1000.0, 1010.0]


def test_a_bucket_without_rate_lets_nothing_through() -> None:
    bucket = TokenBucket(0.0, 0.0)
    assert drain(bucket, 0.0, 1e9) == []
    assert bucket.next_at(1e9) == math.inf


def test_another_rate_holds_from_then_on_and_what_was_earned_stays() -> None:
    bucket = TokenBucket(0.1, 0.0)
    assert bucket.take(0.0)
    bucket.set_rate(0.01, 5.0)
    assert bucket.next_at(5.0) == pytest.approx(55.0)
    bucket.set_rate(0.0, 55.0)
    assert bucket.next_at(60.0) == math.inf
    assert not bucket.take(1e6)
    bucket.set_rate(0.1, 1e6)
    assert bucket.take(1e6)


def test_a_clock_that_goes_back_earns_nothing() -> None:
    bucket = TokenBucket(1.0, 100.0)
    assert bucket.take(100.0)
    assert not bucket.take(50.0)
    assert not bucket.take(100.5)
    assert bucket.take(101.0)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    rate=st.floats(0.001, 10.0),
    start=st.floats(1.7e9, 1.9e9),
    looks=st.lists(st.floats(0.0, 1.0), max_size=5),
)
def test_the_token_is_there_when_the_bucket_says_so(rate: float, start: float, looks: list[float]) -> None:
    """A caller that wakes then must not be sent back to sleep for the last digit of a floating point number."""
    bucket = TokenBucket(rate, start)
    assert bucket.take(start)
    now = start
    for look in sorted(looks):
        now = start + look / rate
        bucket.next_at(now)
    assert bucket.take(bucket.next_at(now))
