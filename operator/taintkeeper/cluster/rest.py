"""A pause that others can end: whoever reaches the API server again tells those who still wait before they try."""

import asyncio
from contextlib import suppress


class Rest:
    """Rests for a while, or until it is woken."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Rest for so many seconds at most."""
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    def wake(self) -> None:
        """End the rest that is being had, if one is."""
        self._woken.set()
