"""How the API server's answers set the number of evictions that may be under way."""

from random import Random

import pytest

from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.pace import Pace
from tests.unit.core.builders import THROTTLED

PLENTY = 8


def slowed_down() -> Pace:
    pace = Pace(PLENTY, Random(0))
    pace.note(Outcome.THROTTLED, THROTTLED, 0.0)
    assert pace.limit == PLENTY // 2
    return pace


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.THROTTLED, Outcome.TRANSIENT}))
def test_whatever_the_server_decided_shows_that_it_copes(outcome: Outcome) -> None:
    pace = slowed_down()
    for _ in range(100):
        pace.note(outcome, Answer(201), 10.0)
    assert pace.limit == PLENTY


def test_a_request_that_came_to_nothing_shows_nothing() -> None:
    pace = slowed_down()
    for _ in range(100):
        pace.note(Outcome.TRANSIENT, Answer(0), 10.0)
    assert pace.limit == PLENTY // 2


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.THROTTLED, Outcome.ACCEPTED, Outcome.GONE}))
def test_no_refusal_lets_a_pod_be_tried_again_at_once(outcome: Outcome) -> None:
    pace = Pace(PLENTY, Random(0))
    pauses = [pace.pause(outcome, failures, 0.0) for failures in range(20)]
    assert min(pauses) >= 0.5
    assert max(pauses) <= 60.0 * 1.5
