"""When a taint counts as contested, and for how long it is left alone then."""

import math
from random import Random

import pytest

from taintkeeper.core.contention import (
    CALM_SECONDS,
    CONTEST_BACKOFF,
    CONTESTED_AFTER,
    WINDOW_SECONDS,
    Contention,
)

TAINT = ("node.kubernetes.io/disk-pressure", "NoSchedule")
OTHER = ("node.kubernetes.io/pid-pressure", "NoSchedule")


def contention(*times: float) -> tuple[Contention, list[bool]]:
    """Return what has come of a taint of n1 that was undone at these times."""
    found = Contention(Random(7))
    return found, [found.undone("n1", TAINT, at) for at in times]


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([0.0], id="once"),
        pytest.param([0.0, 1.0], id="twice"),
        pytest.param([0.0, 150.0, 301.0], id="three times in more than five minutes"),
    ],
)
def test_what_is_undone_now_and_then_is_not_contested(times: list[float]) -> None:
    found, told = contention(*times)
    assert told == [False] * len(times)
    assert found.paused_until("n1", TAINT) == -math.inf


def test_what_is_undone_three_times_within_five_minutes_is_contested_and_told_once() -> None:
    found, told = contention(0.0, 100.0, 300.0, 310.0, 330.0)
    assert told == [False, False, True, False, False]
    assert (CONTESTED_AFTER, WINDOW_SECONDS) == (3, 300.0)
    assert found.paused_until("n1", TAINT) > 330.0


def test_the_pauses_double_up_to_five_minutes() -> None:
    found, _ = contention(0.0, 0.0)
    at, pauses = 0.0, []
    for _ in range(8):
        found.undone("n1", TAINT, at)
        pauses.append(found.paused_until("n1", TAINT) - at)
        at = found.paused_until("n1", TAINT)
    for pause, least in zip(pauses, [10, 20, 40, 80, 160, 300, 300, 300], strict=True):
        assert least <= pause <= 1.25 * least


def test_a_taint_that_was_left_alone_for_long_is_contested_no_longer() -> None:
    found, told = contention(0.0, 0.0, 0.0, CALM_SECONDS, 2 * CALM_SECONDS + 1.0)
    assert told == [False, False, True, False, False]
    assert found.paused_until("n1", TAINT) == -math.inf
    assert CONTEST_BACKOFF.cap * (1.0 + CONTEST_BACKOFF.jitter) < CALM_SECONDS


def test_each_taint_of_each_node_counts_for_itself() -> None:
    found, _ = contention(0.0, 0.0, 0.0)
    assert found.paused_until("n1", OTHER) == found.paused_until("n2", TAINT) == -math.inf
    assert not found.undone("n1", OTHER, 1.0)
    assert not found.undone("n2", TAINT, 1.0)
    assert found.paused_until("n1", TAINT) > 1.0


def test_a_node_that_is_gone_is_forgotten() -> None:
    found, _ = contention(0.0, 0.0, 0.0)
    found.forget("n1")
    found.forget("unheard")
    assert found.paused_until("n1", TAINT) == -math.inf
    assert not found.undone("n1", TAINT, 1.0)
