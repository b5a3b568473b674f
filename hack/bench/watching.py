"""What happens to pods and nodes, as a watch tells: the same for everybody who may have done it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bench.load import NAMESPACE
from testbed.client import Kube, Object, path_to


@asynccontextmanager
async def watched_pods(
    kube: Kube, gone: Callable[[Object, float], None], namespace: str = NAMESPACE
) -> AsyncIterator[None]:
    """Tell of each pod that is deleted while the block runs, with the time on the monotonic clock.

    A pod without a grace period is deleted in the moment in which its eviction is accepted.
    """

    def tell(event: Object, at: float) -> None:
        if event["type"] == "DELETED":
            gone(event["object"], at)

    async with watched(kube, path_to("pods", namespace), tell):
        yield


@asynccontextmanager
async def watched(kube: Kube, path: str, tell: Callable[[Object, float], None]) -> AsyncIterator[None]:
    """Tell of each event of a collection while the block runs, with the time on the monotonic clock."""
    answer = await kube.request("GET", path, params={"limit": "1"})
    task = asyncio.create_task(_follow(kube, path, answer.body["metadata"]["resourceVersion"], tell))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _follow(kube: Kube, path: str, version: str, tell: Callable[[Object, float], None]) -> None:
    # The server may end a watch at any time: it goes on from where it was.
    while True:
        async with kube.watch(path, resourceVersion=version, allowWatchBookmarks="true") as events:
            async for event in events:
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    tell(event, time.monotonic())
