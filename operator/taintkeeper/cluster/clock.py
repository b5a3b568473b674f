"""The time that the engines are given: seconds since the epoch that never jump."""

import asyncio
import time


class SteadyClock:
    """Wall time as it was when we started, carried on by the event loop's monotonic clock.

    Somebody who sets the machine's clock must not make countdowns end early, and in tests the loop's clock is virtual.
    """

    def __init__(self) -> None:
        self._offset = time.time() - asyncio.get_running_loop().time()

    def __call__(self) -> float:
        """Return the time now, in seconds since the epoch."""
        return asyncio.get_running_loop().time() + self._offset

    def loop_time(self, at: float) -> float:
        """Return the same moment on the event loop's clock."""
        return at - self._offset
