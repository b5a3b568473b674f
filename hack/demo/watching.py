"""Watches the API and hands what it shows to a record."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from demo.manifests import NAMESPACE
from demo.record import Record
from testbed.client import ApiError, Kube, path_to

WATCHED = {
    "nodes": path_to("nodes"),
    "pods": path_to("pods", NAMESPACE),
    "poddisruptionbudgets": path_to("poddisruptionbudgets", NAMESPACE),
    "events": path_to("events"),
}


class WatchEndedError(Exception):
    """The API server ended a watch, so that the story can no longer be told."""


@asynccontextmanager
async def watching(kube: Kube, record: Record) -> AsyncIterator[None]:
    """Keep the record up to date; begins when everything is listed once.

    Raises:
        ApiError: the API refused a list.
        ExceptionGroup: a watch ended or was refused, or the body failed.
    """
    versions = {resource: await _list(kube, resource, record) for resource in WATCHED}
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_follow(kube, resource, version, record)) for resource, version in versions.items()
        ]
        yield
        for task in running:
            task.cancel()


async def _list(kube: Kube, resource: str, record: Record) -> str:
    answer = await kube.request("GET", WATCHED[resource])
    if answer.status >= 300:
        raise ApiError(answer.status, answer.body)
    # Events of the past belong to other stories.
    for value in [] if resource == "events" else answer.body["items"]:
        record.take(resource, value)
    return str(answer.body["metadata"]["resourceVersion"])


async def _follow(kube: Kube, resource: str, version: str, record: Record) -> None:
    async with kube.watch(WATCHED[resource], resourceVersion=version) as changes:
        async for change in changes:
            if change["type"] == "ERROR":
                break
            record.take(resource, change["object"], deleted=change["type"] == "DELETED")
    raise WatchEndedError(f"the API server ended the watch of {resource}")
