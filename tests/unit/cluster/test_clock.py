"""The clock that the engines go by."""

import asyncio
import time

import pytest

from taintkeeper.cluster.clock import SteadyClock

pytestmark = pytest.mark.looptime


async def test_it_tells_the_wall_time_as_it_was_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1767225600.0)
    await asyncio.sleep(100.0)
    clock = SteadyClock()
    assert clock() == 1767225600.0
    await asyncio.sleep(3600.0)
    assert clock() == 1767229200.0


@pytest.mark.parametrize("step", [-86400.0, 86400.0])
async def test_setting_the_machines_clock_ends_no_countdown_early(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    clock = SteadyClock()
    before, now = clock(), time.time()
    monkeypatch.setattr(time, "time", lambda: now + step)
    await asyncio.sleep(10.0)
    assert clock() == pytest.approx(before + 10.0)


async def test_the_time_that_the_machine_slept_is_made_up_for() -> None:
    asleep = 1000.0
    clock = SteadyClock(lambda: asleep)
    before = clock()
    asleep = 1000.05
    assert clock.wake_up() == 0.0
    asleep = 1300.0
    assert clock.wake_up() == pytest.approx(300.0)
    assert clock() == pytest.approx(before + 300.0)
    assert clock.loop_time(before + 300.0) == pytest.approx(asyncio.get_running_loop().time())
    assert clock.wake_up() == 0.0


@pytest.mark.parametrize("wrong", [-86400.0, 86400.0])
async def test_a_machine_with_a_wrong_clock_goes_by_the_servers(wrong: float) -> None:
    clock = SteadyClock()
    server = clock() - wrong
    assert clock.set_by(server) == pytest.approx(wrong)
    await asyncio.sleep(10.0)
    assert clock() == pytest.approx(server + 10.0)


@pytest.mark.parametrize("wrong", [-4.0, 4.0])
async def test_a_clock_that_is_about_right_is_left_alone(wrong: float) -> None:
    clock = SteadyClock()
    before = clock()
    assert clock.set_by(before + wrong) == 0.0
    assert clock() == before


async def test_moments_can_be_told_on_the_loops_clock() -> None:
    await asyncio.sleep(5.0)
    clock = SteadyClock()
    assert clock.loop_time(clock() + 60.0) == pytest.approx(65.0)
