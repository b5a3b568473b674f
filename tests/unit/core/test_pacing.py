"""How fast to go: pauses that grow, and a concurrency that follows what the API server can take."""

from random import Random

import pytest

from taintkeeper.core.pacing import Backoff, Throttle

NO_JITTER = Backoff(base=1.0, cap=60.0, jitter=0.0)


class Most(Random):
    """Draws the greatest number every time."""

    def random(self) -> float:
        """Return the limit that a draw comes near to."""
        return 1.0


@pytest.mark.parametrize(
    ("attempt", "delay"),
    [(0, 1.0), (1, 2.0), (2, 4.0), (5, 32.0), (6, 60.0), (7, 60.0), (33, 60.0), (10_000, 60.0)],
)
def test_pauses_double_up_to_the_cap(attempt: int, delay: float) -> None:
    assert NO_JITTER.delay(attempt, Random(1)) == delay


def test_a_pause_is_lengthened_by_up_to_a_quarter_never_shortened() -> None:
    backoff, random = Backoff(base=8.0, cap=8.0), Random(1)
    delays = [backoff.delay(0, random) for _ in range(200)]
    assert 8.0 <= min(delays) < 8.2
    assert 9.8 < max(delays) <= 10.0
    assert Backoff(base=8.0, cap=8.0).delay(0, Most()) == 10.0


def throttle(maximum: int = 8) -> Throttle:
    return Throttle(maximum, NO_JITTER)


def test_each_refusal_halves_the_limit_down_to_one() -> None:
    found = throttle()
    limits = []
    for number in range(5):
        found.refused(0.0, number * 1000.0, Random(1))
        limits.append(found.limit)
    assert limits == [4, 2, 1, 1, 1]


def test_successes_raise_the_limit_one_by_one_up_to_the_maximum() -> None:
    found = throttle(4)
    found.refused(0.0, 0.0, Random(1))
    limits = []
    for _ in range(12):
        found.succeeded()
        limits.append(found.limit)
    assert limits[:3] == [2, 2, 3]
    assert limits[-1] == 4
    assert limits == sorted(limits)


@pytest.mark.parametrize(
    ("retry_after", "pauses"),
    [
        pytest.param(0.0, [1.0, 2.0, 4.0], id="no time named: a growing pause of our own"),
        pytest.param(3.0, [3.0, 3.0, 4.0], id="the server's time where it is longer"),
        pytest.param(300.0, [300.0, 300.0, 300.0], id="however long it is"),
        pytest.param(86400.0, [300.0, 300.0, 300.0], id="within reason"),
    ],
)
def test_the_pause_is_the_servers_or_our_own_if_that_is_longer(retry_after: float, pauses: list[float]) -> None:
    found = throttle()
    for number, pause in enumerate(pauses):
        now = number * 1000.0
        found.refused(retry_after, now, Random(1))
        assert found.paused_until == now + pause


def test_a_success_makes_the_next_pause_short_again() -> None:
    found = throttle()
    for now in (0.0, 1000.0, 2000.0):
        found.refused(0.0, now, Random(1))
    found.succeeded()
    found.refused(0.0, 3000.0, Random(1))
    assert found.paused_until == 3001.0


def test_refusals_of_requests_sent_before_the_pause_count_once() -> None:
    found = throttle()
    for _ in range(8):
        found.refused(1.0, 0.0, Random(1))
    assert (found.limit, found.paused_until) == (4, 1.0)
    found.refused(30.0, 0.5, Random(1))
    assert (found.limit, found.paused_until) == (4, 30.5)
    found.refused(1.0, 1.0, Random(1))
    assert (found.limit, found.paused_until) == (4, 30.5)
    found.refused(0.0, 30.5, Random(1))
    assert (found.limit, found.paused_until) == (2, 32.5)
