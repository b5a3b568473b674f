"""The time of the story, in seconds since it began."""

import asyncio
import datetime as dt
import time


class Clock:
    """Counts from its creation on."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Let the story begin now."""
        self._began, self._began_at = time.monotonic(), time.time()

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._began

    def at(self, timestamp: str) -> float:
        """Return when a time that the API tells was, in seconds since the beginning; it may be negative."""
        return dt.datetime.fromisoformat(timestamp).timestamp() - self._began_at


async def next_full_second() -> None:
    """Wait for the next second to begin: ``timeAdded`` has whole seconds, so that countdowns from it look exact."""
    await asyncio.sleep(1.0 - time.time() % 1.0)


def timestamp() -> str:
    """Return the time now as the API spells it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
