"""What node-health writes: conditions of nodes and pods, and labels; and its twin for dry runs that writes nothing."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from taintkeeper.cluster.client import MERGE_PATCH, STRATEGIC_PATCH, ApiClient, Call, UnreachableError
from taintkeeper.cluster.wire import decode_node, timestamp
from taintkeeper.cluster.writer import parse_answer
from taintkeeper.core.health import UNKNOWN, UnknownCondition, spoke
from taintkeeper.core.health_messages import PodResult, PodWritten
from taintkeeper.core.messages import Knowledge, NodeGone, NodeSeen, NodeWritten, WriteResult
from taintkeeper.core.objects import Condition, Node, Pod

"""Merges conditions by their type, so that those that are not named stay as they are."""

Conditions = tuple[UnknownCondition, ...]


class StatusWriter(Protocol):
    """Writes what node-health decides. Nothing here raises: what went wrong is part of the answer."""

    async def write_unknown(self, node: Node, conditions: Conditions) -> NodeWritten:
        """Set these conditions to Unknown, provided that the node has not changed since it was seen as ``node``."""
        ...

    async def write_labels(self, node: Node, labels: Mapping[str, str]) -> NodeWritten:
        """Set these labels, whatever has become of the node since."""
        ...

    async def mark_pod(self, pod: Pod, at: float) -> PodWritten:
        """Set Ready to False as of ``at``, seconds since the epoch, provided that the pod has not changed since."""
        ...

    def as_seen(self, node: Node) -> Node:
        """Return the node as it is to be looked at, after all that was written."""
        ...


class ApiStatusWriter:
    """Writes through the API."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def write_unknown(self, node: Node, conditions: Conditions) -> NodeWritten:
        """See :class:`StatusWriter`."""
        body = {
            "metadata": {"uid": node.uid, "resourceVersion": node.resource_version},
            "status": {"conditions": [_encode(condition) for condition in conditions]},
        }
        path = f"/api/v1/nodes/{node.name}/status"
        call = Call("PATCH", path, "patch", "nodes/status", body=body, content_type=STRATEGIC_PATCH)
        return await self._patch_node(node.name, call)

    async def write_labels(self, node: Node, labels: Mapping[str, str]) -> NodeWritten:
        """See :class:`StatusWriter`."""
        body = {"metadata": {"uid": node.uid, "labels": dict(labels)}}
        call = Call("PATCH", f"/api/v1/nodes/{node.name}", "patch", "nodes", body=body, content_type=MERGE_PATCH)
        return await self._patch_node(node.name, call)

    async def mark_pod(self, pod: Pod, at: float) -> PodWritten:
        """See :class:`StatusWriter`."""
        ref = pod.ref
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": timestamp(at)}
        body = {
            "metadata": {"uid": ref.uid, "resourceVersion": str(pod.version)},
            "status": {"conditions": [ready]},
        }
        path = f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}/status"
        call = Call("PATCH", path, "patch", "pods/status", body=body, content_type=STRATEGIC_PATCH)
        try:
            reply = await self._client.send(call)
        except UnreachableError as error:
            return PodWritten(ref.uid, PodResult.FAILED, str(error))
        if reply.status < 300:
            return PodWritten(ref.uid, PodResult.DONE)
        answer = parse_answer(reply)
        results = {404: PodResult.GONE, 409: PodResult.CONFLICT, 429: PodResult.THROTTLED}
        result = results.get(reply.status, PodResult.FAILED)
        return PodWritten(ref.uid, result, f"{reply.status}: {answer.message}", answer.retry_after)

    def as_seen(self, node: Node) -> Node:
        """See :class:`StatusWriter`."""
        return node

    async def _patch_node(self, name: str, call: Call) -> NodeWritten:
        try:
            reply = await self._client.send(call)
            if reply.status < 300:
                return NodeWritten(name, WriteResult.DONE, decode_node(reply.body))
        except (UnreachableError, msgspec.DecodeError) as error:
            return NodeWritten(name, WriteResult.FAILED, detail=str(error))
        results = {404: WriteResult.GONE, 409: WriteResult.CONFLICT}
        detail = f"{reply.status}: {parse_answer(reply).message}"
        return NodeWritten(name, results.get(reply.status, WriteResult.FAILED), detail=detail)


@dataclass(slots=True)
class _Imagined:
    """What a node would have that it has not; ``before`` is the node as it was when it was first declared Unknown."""

    before: Node
    conditions: Conditions = ()
    labels: dict[str, str] = field(default_factory=dict)


class DryStatusWriter:
    """Writes nothing, answers as if all had gone well, and shows nodes as they would be then.

    Feed it with what is seen of nodes. ``echo`` is told of every node that would have changed, as a watch would tell.
    What a kubelet reports later ends what was declared before, as it would in truth.
    """

    resources = frozenset({"nodes"})

    def __init__(self, echo: Callable[[Node], None]) -> None:
        self._echo = echo
        self._imagined: dict[str, _Imagined] = {}

    def feed(self, event: NodeSeen | NodeGone | Knowledge) -> None:
        """Take in what was seen; what was imagined of a node that is gone is forgotten."""
        if isinstance(event, NodeGone):
            self._imagined.pop(event.name, None)

    async def write_unknown(self, node: Node, conditions: Conditions) -> NodeWritten:
        """See :class:`StatusWriter`."""
        imagined = self._imagine(node)
        if not imagined.conditions:
            imagined.before = node
        imagined.conditions += conditions
        return self._written(node)

    async def write_labels(self, node: Node, labels: Mapping[str, str]) -> NodeWritten:
        """See :class:`StatusWriter`."""
        self._imagine(node).labels.update(labels)
        return self._written(node)

    async def mark_pod(self, pod: Pod, at: float) -> PodWritten:  # noqa: ARG002 - the shape of StatusWriter
        """See :class:`StatusWriter`."""
        return PodWritten(pod.ref.uid, PodResult.DONE)

    def as_seen(self, node: Node) -> Node:
        """Return the node as it would be if everything had been written."""
        imagined = self._imagined.get(node.name)
        if imagined is None or imagined.before.uid != node.uid:
            return node
        if spoke(imagined.before, node):
            imagined.conditions = ()
        labels = {**node.labels, **imagined.labels}
        return replace(node, labels=labels, conditions=_with(node, imagined.conditions))

    def _imagine(self, node: Node) -> _Imagined:
        imagined = self._imagined.get(node.name)
        if imagined is None or imagined.before.uid != node.uid:
            imagined = self._imagined[node.name] = _Imagined(node)
        return imagined

    def _written(self, node: Node) -> NodeWritten:
        would_be = self.as_seen(node)
        asyncio.get_running_loop().call_soon(self._echo, would_be)
        return NodeWritten(node.name, WriteResult.DONE, would_be)


def _encode(condition: UnknownCondition) -> dict[str, Any]:
    wire = {
        "type": condition.type,
        "status": UNKNOWN,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": timestamp(condition.transition),
    }
    if condition.heartbeat is not None:
        wire["lastHeartbeatTime"] = timestamp(condition.heartbeat)
    return wire


def _with(node: Node, conditions: Conditions) -> tuple[Condition, ...]:
    there = {condition.type: condition for condition in node.conditions}
    for new in conditions:
        known = there.get(new.type)
        heartbeat = new.heartbeat if known is None else known.heartbeat
        there[new.type] = Condition(new.type, UNKNOWN, new.reason, heartbeat, new.transition)
    return tuple(there.values())
