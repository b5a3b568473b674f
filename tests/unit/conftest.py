"""What every unit test needs."""

import asyncio

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_stray_event_loop() -> None:
    """Have nobody make an event loop by asking for one, as looptime does in tests that are not asynchronous.

    Nobody would close it, and the warning of that would hit any later test.
    """
    asyncio.set_event_loop(None)
