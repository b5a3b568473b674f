"""Runs an engine: gives it events and the time, carries its effects out, wakes it when it asks to be woken."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.core.messages import Woke

Input = TypeVar("Input", contravariant=True)
Effect = TypeVar("Effect")
AnyEffect = TypeVar("AnyEffect")
AnyInput = TypeVar("AnyInput")

STALL_SECONDS = 1.0
"""A timer that is later than this was not late by itself: the process, or the machine, stood still."""

ANSWER_SECONDS = 2.0
"""How long what is under way may take to come to its end when we stop."""


class Engine(Protocol[Input, Effect]):
    """What the engines of the core have in common."""

    def handle(self, event: Input | Woke, now: float) -> list[Effect]:
        """Take in one event; return what is to be done."""
        ...

    def wake_at(self, now: float) -> float | None:
        """Return when to send the next Woke, in seconds since the epoch."""
        ...


class Shell(Generic[AnyInput, AnyEffect]):
    """One engine at work on the event loop: one timer for everything it waits for, however many pods or nodes.

    ``perform`` must not block; what takes time it gives to :meth:`spawn`. An error in the engine, in ``perform`` or in
    what was spawned is a fault of ours: it goes to ``crashed``, since an engine in an unknown state must not go on.

    A process that was stopped and goes on (SIGSTOP, a frozen container) comes upon its timers before it comes upon what
    the watches have to tell of the meantime. So before the engine is given anything, ``stalled`` is told for how long
    we were away; it sees to it that nothing is decided until everything has been looked at again.
    """

    def __init__(
        self,
        engine: Engine[AnyInput, AnyEffect],
        clock: SteadyClock,
        perform: Callable[[AnyEffect], None],
        *,
        crashed: Callable[[BaseException], None],
        stalled: Callable[[float], None],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._perform = perform
        self._crashed = crashed
        self._stalled = stalled
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._stopped = False
        self._failed = False

    def feed(self, event: AnyInput | Woke) -> None:
        """Give the engine an event and do at once what it asks for."""
        if self._stopped or (self._stopping and asyncio.current_task() not in self._tasks):
            return
        self._notice_stall()
        try:
            for effect in self._engine.handle(event, self._clock()):
                self._perform(effect)
            self._set_timer()
        except Exception as error:
            self._fail(error)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that takes time; the engine sees to it that it does not become too much."""
        if self._stopping:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def stop(self) -> None:
        """Begin nothing any more, and end what is under way.

        It has :data:`ANSWER_SECONDS` to come to its end by itself: an eviction that is cancelled after the server has
        accepted it would be told to nobody. Only such answers are taken in meanwhile.
        """
        self._stopping = True
        if self._tasks and not self._stopped:
            await asyncio.wait(self._tasks, timeout=ANSWER_SECONDS)
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _set_timer(self) -> None:
        at = self._engine.wake_at(self._clock())
        when = None if at is None else max(self._clock.loop_time(at), asyncio.get_running_loop().time())
        if self._timer is not None:
            if self._timer.when() == when:
                return
            self._timer.cancel()
        self._timer = None if when is None else asyncio.get_running_loop().call_at(when, self._wake)

    def _notice_stall(self) -> None:
        late = 0.0 if self._timer is None else asyncio.get_running_loop().time() - self._timer.when()
        if self._timer is not None and late > STALL_SECONDS:
            self._timer.cancel()
            self._timer = None
            self._stalled(late)

    def _wake(self) -> None:
        self._notice_stall()
        self._timer = None
        self.feed(Woke())

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._stopped = True
        if not self._failed:
            self._failed = True
            self._crashed(error)
