"""Lists of objects, page by page: the API server's own way to hand out what is too much for one answer."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from taintkeeper.cluster.client import ApiClient, Call


class ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    """``metadata`` of a list, of one page of it, and of a bookmark."""

    resource_version: str = ""
    continue_: str = ""
    annotations: dict[str, str] | None = None


class Page(msgspec.Struct):
    """A page of a list. The version of the last one is the place in the history from where to watch."""

    metadata: ListMeta
    items: list[msgspec.Raw]


_decoder = msgspec.json.Decoder(Page)


async def pages(client: ApiClient, resource: str, path: str, *, size: int) -> AsyncIterator[Page]:
    """List everything at ``path``, ``size`` objects at a time; others have their turn between the pages.

    Raises :class:`~taintkeeper.cluster.client.StatusError`, :class:`~taintkeeper.cluster.client.UnreachableError` and
    msgspec.DecodeError; HTTP 410 means that the server has forgotten what the next page was, and to begin anew.
    """
    params = {"limit": str(size)}
    while True:
        reply = await client.send(Call("GET", path, "list", resource, params))
        reply.raise_for_status()
        page = _decoder.decode(reply.body)
        yield page
        if not page.metadata.continue_:
            return
        params["continue"] = page.metadata.continue_
        await asyncio.sleep(0)
