"""Reads a node and its pods from the API server, past every watch."""

import asyncio

import msgspec

from taintkeeper.cluster.client import ApiClient, Call, StatusError, UnreachableError
from taintkeeper.cluster.wire import decode_node, decode_pod
from taintkeeper.core.messages import NodeRead, NodeUnread
from taintkeeper.core.objects import Node, Pod


class _PodList(msgspec.Struct):
    items: list[msgspec.Raw]


async def read_node(client: ApiClient, name: str) -> NodeRead | NodeUnread:
    """Read this node and the pods bound to it, as they are in the store; what went wrong is part of the answer."""
    try:
        node, pods = await asyncio.gather(_get_node(client, name), _list_pods(client, name))
    except (UnreachableError, StatusError, msgspec.DecodeError) as error:
        return NodeUnread(name, str(error))
    return NodeRead(name, node, pods)


async def _get_node(client: ApiClient, name: str) -> Node | None:
    reply = await client.send(Call("GET", f"/api/v1/nodes/{name}", "get", "nodes"))
    if reply.status == 404:
        return None
    reply.raise_for_status()
    return decode_node(reply.body)


async def _list_pods(client: ApiClient, node: str) -> tuple[Pod, ...]:
    # Without a resourceVersion the list is as fresh as the store; the API server has an index over spec.nodeName.
    params = {"fieldSelector": f"spec.nodeName={node}"}
    reply = await client.send(Call("GET", "/api/v1/pods", "list", "pods", params))
    reply.raise_for_status()
    return tuple(decode_pod(raw) for raw in msgspec.json.decode(reply.body, type=_PodList).items)
