"""The shell around an engine: one timer, effects in order, and an end after a fault of ours."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.controllers.shell import Shell
from taintkeeper.core.messages import Woke

pytestmark = pytest.mark.looptime


@dataclass
class Engine:
    """Notes what it is given and when; wakes at the times that a test sets; its effects are the events themselves."""

    clock: SteadyClock
    wakes: list[float] = field(default_factory=list)
    given: list[tuple[float, object]] = field(default_factory=list)
    fault: Exception | None = None

    def handle(self, event: object, now: float) -> list[object]:
        self.given.append((self.clock.loop_time(now), event))
        self.wakes = [wake for wake in self.wakes if wake > self.clock.loop_time(now) + 1e-3]
        if self.fault is not None:
            raise self.fault
        return [event] if not isinstance(event, list) else event

    def wake_at(self, now: float) -> float | None:
        del now
        return min((wake - self.clock.loop_time(0.0) for wake in self.wakes), default=None)

    def woken(self) -> list[float]:
        return [round(at, 3) for at, event in self.given if isinstance(event, Woke)]


@dataclass
class Bench:
    """A shell around the engine, and all that it did."""

    engine: Engine = field(init=False)
    shell: Shell[object, object] = field(init=False)
    performed: list[object] = field(default_factory=list)
    crashes: list[BaseException] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    perform: Callable[[object], None] = lambda _: None

    def __post_init__(self) -> None:
        clock = SteadyClock()
        self.engine = Engine(clock)
        self.shell = Shell(self.engine, clock, self._perform, crashed=self.crashes.append, stalled=self._stand_still)

    def _stand_still(self, seconds: float) -> None:
        self.stalls.append(seconds)
        self.shell.feed("stale")

    def _perform(self, effect: object) -> None:
        self.performed.append(effect)
        self.perform(effect)


async def test_effects_are_carried_out_at_once_and_in_their_order() -> None:
    bench = Bench()
    bench.shell.feed([1, 2, 3])
    bench.shell.feed(4)
    assert bench.performed == [1, 2, 3, 4]


async def test_the_engine_is_woken_at_the_time_it_names() -> None:
    bench = Bench()
    bench.engine.wakes = [10.0, 20.0]
    bench.shell.feed("begin")
    await asyncio.sleep(100.0)
    assert bench.engine.woken() == [10.0, 20.0]


@pytest.mark.parametrize(
    ("first", "then", "woken"),
    [
        pytest.param([10.0], [5.0], [5.0], id="earlier"),
        pytest.param([10.0], [30.0], [30.0], id="later"),
        pytest.param([10.0], [10.0], [10.0], id="the same"),
        pytest.param([10.0], [], [], id="never"),
        pytest.param([], [10.0], [10.0], id="after all"),
    ],
)
async def test_there_is_one_timer_and_it_follows_the_engine(
    first: list[float], then: list[float], woken: list[float]
) -> None:
    bench = Bench()
    bench.engine.wakes = first
    bench.shell.feed("begin")
    await asyncio.sleep(1.0)
    bench.engine.wakes = then
    bench.shell.feed("change")
    await asyncio.sleep(100.0)
    assert bench.engine.woken() == woken


async def test_a_time_that_has_passed_wakes_at_once_but_lets_others_have_their_turn() -> None:
    bench = Bench()
    await asyncio.sleep(50.0)
    bench.engine.wakes = [50.0]
    bench.engine.given.clear()
    bench.shell._set_timer()
    assert bench.engine.woken() == []
    await asyncio.sleep(0.001)
    assert bench.engine.woken() == [pytest.approx(50.0, abs=0.002)]


@pytest.mark.parametrize("by", ["timer", "event"])
async def test_after_standing_still_the_engine_hears_of_that_before_anything_else(by: str) -> None:
    bench = Bench()
    bench.engine.wakes = [10.0]
    bench.shell.feed("begin")
    timer = bench.shell._timer
    assert timer is not None
    timer.cancel()
    # The loop's clock is virtual: so time passes here without the timer, as it does for a stopped process.
    await asyncio.sleep(310.0)
    if by == "timer":
        bench.shell._wake()
    else:
        bench.shell.feed("news")
    assert bench.stalls == [pytest.approx(300.0)]
    assert bench.engine.given[1][1] == "stale"


async def test_a_timer_that_is_a_little_late_is_no_standstill() -> None:
    bench = Bench()
    bench.engine.wakes = [10.0]
    bench.shell.feed("begin")
    assert bench.shell._timer is not None
    bench.shell._timer.cancel()
    await asyncio.sleep(10.9)
    bench.shell._wake()
    assert bench.stalls == []
    assert bench.engine.woken() == [10.9]


@pytest.mark.parametrize("where", ["engine", "perform", "work"])
async def test_a_fault_of_ours_is_told_once_and_nothing_is_decided_any_more(where: str) -> None:
    bench = Bench()
    fault = RuntimeError("a fault")

    async def work() -> None:
        raise fault

    def perform(_: object) -> None:
        if where == "perform":
            raise fault
        if where == "work":
            bench.shell.spawn(work())

    bench.engine.wakes = [10.0]
    bench.shell.feed("begin")
    if where == "engine":
        bench.engine.fault = fault
    bench.perform = perform
    bench.shell.feed("broken")
    await asyncio.sleep(1.0)
    given = len(bench.engine.given)
    bench.shell.feed("more")
    await asyncio.sleep(100.0)
    assert bench.crashes == [fault]
    assert len(bench.engine.given) == given


async def test_several_faults_at_once_are_told_once() -> None:
    bench = Bench()

    async def work() -> None:
        raise RuntimeError

    for _ in range(3):
        bench.shell.spawn(work())
    await asyncio.sleep(1.0)
    assert len(bench.crashes) == 1


async def test_stopping_ends_the_timer_and_what_is_under_way() -> None:
    bench = Bench()
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1000.0)
        finally:
            ended.append("cancelled")

    bench.perform = lambda _: bench.shell.spawn(work())
    bench.engine.wakes = [10.0]
    bench.shell.feed("begin")
    await asyncio.sleep(9.0)
    await bench.shell.stop()
    assert ended == ["cancelled"]
    assert asyncio.get_running_loop().time() == 11.0, "it is not waited for any longer"
    bench.shell.feed("more")
    await asyncio.sleep(100.0)
    assert [event for _, event in bench.engine.given] == ["begin"]
    assert bench.crashes == []


async def test_what_is_under_way_when_we_stop_may_come_to_its_end_and_is_told_of() -> None:
    bench = Bench()

    async def work(seconds: float) -> None:
        await asyncio.sleep(seconds)
        bench.shell.feed(f"answer after {seconds:g}")

    def perform(effect: object) -> None:
        if isinstance(effect, float):
            bench.shell.spawn(work(effect))

    bench.perform = perform
    bench.shell.feed([1.0, 1.5, 5.0])
    await asyncio.sleep(0.5)
    await bench.shell.stop()
    assert asyncio.get_running_loop().time() == 2.5
    assert bench.performed[3:] == ["answer after 1", "answer after 1.5"]
    assert bench.crashes == []


async def test_stopping_takes_no_longer_than_what_is_under_way() -> None:
    bench = Bench()
    await bench.shell.stop()
    assert asyncio.get_running_loop().time() == 0.0
    bench = Bench()
    bench.shell.spawn(asyncio.sleep(1.0))
    await bench.shell.stop()
    assert asyncio.get_running_loop().time() == 1.0


async def test_while_stopping_nothing_new_is_begun_or_taken_in() -> None:
    bench = Bench()
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")
        await asyncio.sleep(1.0)
        bench.shell.feed("answer")

    bench.perform = lambda _: bench.shell.spawn(work())
    bench.engine.wakes = [1.0]
    bench.shell.feed("begin")
    await asyncio.sleep(0.5)
    stopping = asyncio.create_task(bench.shell.stop())
    await asyncio.sleep(0.1)
    bench.shell.feed("news")
    await stopping
    assert [event for _, event in bench.engine.given] == ["begin", "answer"]
    assert begun == ["work"]


async def test_after_a_fault_nobody_is_waited_for() -> None:
    bench = Bench()
    bench.shell.spawn(asyncio.sleep(1.0))
    bench.engine.fault = RuntimeError("a fault")
    bench.shell.feed("broken")
    await bench.shell.stop()
    assert asyncio.get_running_loop().time() == 0.0


async def test_a_fault_while_stopping_is_told() -> None:
    bench = Bench()
    fault = RuntimeError("a fault")

    async def work() -> None:
        await asyncio.sleep(1.0)
        raise fault

    bench.shell.spawn(work())
    await bench.shell.stop()
    assert bench.crashes == [fault]
