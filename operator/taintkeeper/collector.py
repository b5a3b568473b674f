"""When the garbage collector runs: not during the first lists, and afterwards only over what is new."""

import asyncio
import gc
from collections.abc import Callable, Collection, Coroutine
from typing import Any

COLLECTOR_SECONDS = 120.0
"""How long the first lists may keep it from running."""


def collect_later(listing: Callable[[], Collection[str]]) -> Coroutine[Any, Any, None]:
    """Stop the collector now; return what starts it again once nothing is being listed any more.

    The first lists make nothing but garbage that lives: collecting it would double their time.
    """
    gc.disable()
    return _collect(listing)


async def _collect(listing: Callable[[], Collection[str]]) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + COLLECTOR_SECONDS
    while listing() and loop.time() < until:  # noqa: ASYNC110 - once, at the start
        await asyncio.sleep(0.5)
    gc.collect()
    gc.freeze()
    gc.enable()
