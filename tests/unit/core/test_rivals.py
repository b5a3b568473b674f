"""What counts as a rival, and how often people hear of it."""

import pytest

from taintkeeper.core.messages import Woke
from taintkeeper.core.rivals import (
    NODE_LIFECYCLE,
    TAINT_EVICTION,
    Rival,
    RivalActive,
    RivalEngine,
    RivalQuiet,
    RivalSigned,
    rivals_of,
)

NOW = 1_800_000_000.0
MINUTE, HOUR = 60.0, 3600.0


def signed(engine: RivalEngine, rival: Rival, at: float, sign: str = "a sign") -> list[object]:
    return list(engine.handle(RivalSigned(rival, sign), NOW + at))


@pytest.mark.parametrize(
    ("nodes", "evictions", "rivals"),
    [
        (True, True, {NODE_LIFECYCLE, TAINT_EVICTION}),
        (True, False, {NODE_LIFECYCLE}),
        (False, True, {TAINT_EVICTION}),
        (False, False, set()),
    ],
)
def test_a_controller_whose_work_is_not_done_here_is_no_rival(nodes: bool, evictions: bool, rivals: set[Rival]) -> None:
    assert set(rivals_of(nodes=nodes, evictions=evictions)) == rivals


def test_the_first_sign_of_a_rival_is_told_at_once() -> None:
    assert signed(RivalEngine(), TAINT_EVICTION, 0.0, "it evicts") == [RivalActive(TAINT_EVICTION, "it evicts")]


def test_a_rival_that_goes_on_is_told_of_again_every_ten_minutes() -> None:
    engine = RivalEngine()
    told = [second for second in range(0, 3600, 30) if signed(engine, TAINT_EVICTION, float(second))]
    assert told == [0, 600, 1200, 1800, 2400, 3000]


def test_a_rival_that_gives_no_sign_is_not_told_of_again() -> None:
    engine = RivalEngine()
    signed(engine, TAINT_EVICTION, 0.0)
    assert engine.handle(Woke(), NOW + 30 * MINUTE) == []


def test_each_rival_is_told_of_by_itself() -> None:
    engine = RivalEngine()
    assert signed(engine, TAINT_EVICTION, 0.0)
    assert signed(engine, NODE_LIFECYCLE, 1.0)
    assert not signed(engine, TAINT_EVICTION, 2.0)
    assert not signed(engine, NODE_LIFECYCLE, 3.0)


def test_a_rival_without_a_sign_for_an_hour_counts_as_gone_and_that_is_said_once() -> None:
    engine = RivalEngine()
    signed(engine, TAINT_EVICTION, 0.0)
    signed(engine, TAINT_EVICTION, 5 * MINUTE)
    wake = engine.wake_at(NOW + 5 * MINUTE)
    assert wake == NOW + 5 * MINUTE + HOUR
    assert engine.handle(Woke(), wake - 0.001) == []
    assert engine.handle(Woke(), wake) == [RivalQuiet(TAINT_EVICTION)]
    assert engine.handle(Woke(), wake + HOUR) == []
    assert engine.wake_at(wake) is None


def test_a_rival_that_comes_back_is_told_of_as_if_for_the_first_time() -> None:
    engine = RivalEngine()
    signed(engine, TAINT_EVICTION, 0.0)
    engine.handle(Woke(), NOW + HOUR)
    assert signed(engine, TAINT_EVICTION, HOUR + 1.0) == [RivalActive(TAINT_EVICTION, "a sign")]


def test_a_sign_that_comes_before_the_alarm_does_not_hide_that_there_was_none_for_an_hour() -> None:
    engine = RivalEngine()
    signed(engine, TAINT_EVICTION, 0.0)
    assert signed(engine, TAINT_EVICTION, HOUR) == [RivalQuiet(TAINT_EVICTION), RivalActive(TAINT_EVICTION, "a sign")]


def test_the_rival_that_falls_quiet_first_is_waited_for() -> None:
    engine = RivalEngine()
    signed(engine, TAINT_EVICTION, 0.0)
    signed(engine, NODE_LIFECYCLE, 10.0)
    assert engine.wake_at(NOW + 10.0) == NOW + HOUR
    assert engine.handle(Woke(), NOW + HOUR) == [RivalQuiet(TAINT_EVICTION)]
    assert engine.wake_at(NOW + HOUR) == NOW + 10.0 + HOUR
