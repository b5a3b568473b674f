"""The time that the engines are given: seconds since the epoch that never jump."""

import asyncio
import time
from collections.abc import Callable

AWAKE_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock of the system that goes on while the machine sleeps, where the event loop's stands still: on Linux the
boot-time clock; on macOS the one called monotonic, while Python's own ``time.monotonic`` is another."""

SAME_CLOCK_SECONDS = 5.0
"""How far our wall clock and the API server's may differ before the server's is believed: it tells whole seconds."""

NAP_SECONDS = 0.1
"""What is shorter is the two clocks being read one after the other."""


def seconds_asleep() -> float:
    """Return for how long the machine has been suspended since it was started; this only ever grows."""
    return time.clock_gettime(AWAKE_CLOCK) - time.monotonic()


class SteadyClock:
    """Wall time as it was when we started, carried on by the event loop's monotonic clock.

    Somebody who sets the machine's clock must not make countdowns end early, and in tests the loop's clock is virtual.
    """

    def __init__(self, asleep: Callable[[], float] = seconds_asleep) -> None:
        self._offset = time.time() - asyncio.get_running_loop().time()
        self._asleep = asleep
        self._slept = asleep()

    def __call__(self) -> float:
        """Return the time now, in seconds since the epoch."""
        return asyncio.get_running_loop().time() + self._offset

    def loop_time(self, at: float) -> float:
        """Return the same moment on the event loop's clock."""
        return at - self._offset

    def set_by(self, server: float) -> float:
        """Go by the API server's time, seconds since the epoch, if ours is another; return by how much ours was ahead.

        The times on the cluster's objects are the server's; a machine whose clock was wrong when we began must not
        leave its own beside them. To be called before anything is decided.
        """
        ahead = self() - server
        if abs(ahead) <= SAME_CLOCK_SECONDS:
            return 0.0
        self._offset -= ahead
        return ahead

    def wake_up(self) -> float:
        """Make up for the time that the machine was suspended since this was last called; return it, in seconds."""
        lost = self._asleep() - self._slept
        if lost < NAP_SECONDS:
            return 0.0
        self._slept += lost
        self._offset += lost
        return lost
