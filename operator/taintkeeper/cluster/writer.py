"""Everything that we ever write to nodes and pods, in one place; its twin for dry runs is in ``dry_writer``."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from taintkeeper.cluster.client import MERGE_PATCH, STRATEGIC_PATCH, ApiClient, Call, Reply, UnreachableError
from taintkeeper.cluster.wire import (
    FIRST_SEEN_ANNOTATION,
    RULE_TAINTS_ANNOTATION,
    decode_node,
    encode_first_seen,
    encode_rule_taints,
    encode_taint,
    timestamp,
)
from taintkeeper.core.answers import Answer
from taintkeeper.core.messages import NodeWritten, WriteResult
from taintkeeper.core.objects import Node, PodRef, Taint

DRY_RUN = {"dryRun": ["All"]}
RuleTaints = Mapping[tuple[str, str], str]
"""Key and effect of each taint that a rule brought to a node, to the name of that rule."""

DISRUPTION_REASON = "DeletionByTaintkeeper"


class Writer(Protocol):
    """Writes to nodes and pods. Nothing here raises: what went wrong is part of the answer."""

    async def evict(self, pod: PodRef, grace: int | None = None) -> Answer:
        """Ask the Eviction API to evict the pod, provided that it still has this UID.

        ``grace`` is in seconds, None for the pod's own.
        """
        ...

    async def delete(self, pod: PodRef, grace: int | None, why: str, at: float) -> Answer:
        """Delete the pod, provided that it still has this UID, after it has been told ``why`` in its own status.

        ``grace`` is in seconds, None for the pod's own; ``at`` is the time now, in seconds since the epoch.
        """
        ...

    async def write_taints(
        self, node: Node, taints: tuple[Taint, ...], rule_taints: RuleTaints | None = None
    ) -> NodeWritten:
        """Replace the node's taints, provided that it has not changed since it was seen as ``node``.

        ``rule_taints`` is what it is to remember of rules from then on, None where that stays as it is.
        """
        ...

    async def write_first_seen(self, name: str, uid: str, memory: Mapping[str, float]) -> NodeWritten:
        """Keep on the node when its taints were first seen: taint to seconds since the epoch."""
        ...

    def as_seen(self, node: Node) -> Node:
        """Return the node as it is to be looked at, after all that was written."""
        ...


class ApiWriter:
    """Writes through the API."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def evict(self, pod: PodRef, grace: int | None = None) -> Answer:
        """See :class:`Writer`."""
        return await self._ask(_eviction(pod, _delete_options(pod, grace)))

    async def rehearse_eviction(self, pod: PodRef, grace: int | None) -> Answer:
        """Return what an eviction would be answered; nothing is changed."""
        return await self._ask(_eviction(pod, _delete_options(pod, grace) | DRY_RUN))

    async def delete(self, pod: PodRef, grace: int | None, why: str, at: float) -> Answer:
        """See :class:`Writer`.

        The condition is what Jobs and others tell a disruption by (KEP-3329); the Eviction API sets it by itself.
        """
        told = await self._ask(_tell_of_disruption(pod, why, at))
        if not told.accepted:
            return told
        return await self._ask(_deletion(pod, _delete_options(pod, grace)))

    async def rehearse_deletion(self, pod: PodRef, grace: int | None) -> Answer:
        """Return what a deletion would be answered; nothing is changed."""
        return await self._ask(_deletion(pod, _delete_options(pod, grace) | DRY_RUN))

    async def write_taints(
        self, node: Node, taints: tuple[Taint, ...], rule_taints: RuleTaints | None = None
    ) -> NodeWritten:
        """See :class:`Writer`."""
        metadata: dict[str, Any] = {"uid": node.uid, "resourceVersion": node.resource_version}
        if rule_taints is not None:
            metadata["annotations"] = {RULE_TAINTS_ANNOTATION: encode_rule_taints(rule_taints)}
        spec = {"taints": [encode_taint(taint) for taint in taints]}
        return await self._patch_node(node.name, {"metadata": metadata, "spec": spec})

    async def write_first_seen(self, name: str, uid: str, memory: Mapping[str, float]) -> NodeWritten:
        """See :class:`Writer`."""
        annotations = {FIRST_SEEN_ANNOTATION: encode_first_seen(memory)}
        return await self._patch_node(name, {"metadata": {"uid": uid, "annotations": annotations}})

    def as_seen(self, node: Node) -> Node:
        """See :class:`Writer`."""
        return node

    async def _ask(self, call: Call) -> Answer:
        try:
            return parse_answer(await self._client.send(call))
        except UnreachableError as error:
            return Answer(0, message=str(error))

    async def _patch_node(self, name: str, patch: dict[str, Any]) -> NodeWritten:
        path = f"/api/v1/nodes/{name}"
        try:
            reply = await self._client.send(Call("PATCH", path, "patch", "nodes", body=patch, content_type=MERGE_PATCH))
            if reply.status < 300:
                return NodeWritten(name, WriteResult.DONE, decode_node(reply.body))
        except (UnreachableError, msgspec.DecodeError) as error:
            return NodeWritten(name, WriteResult.FAILED, detail=str(error))
        detail = f"{reply.status}: {parse_answer(reply).message}"
        results = {404: WriteResult.GONE, 409: WriteResult.CONFLICT}
        return NodeWritten(name, results.get(reply.status, WriteResult.FAILED), detail=detail)


def _path(pod: PodRef) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _delete_options(pod: PodRef, grace: int | None) -> dict[str, Any]:
    preconditions = {"preconditions": {"uid": pod.uid}}
    return preconditions if grace is None else {**preconditions, "gracePeriodSeconds": grace}


def _eviction(pod: PodRef, options: dict[str, Any]) -> Call:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    return Call("POST", f"{_path(pod)}/eviction", "create", "pods/eviction", body=body)


def _deletion(pod: PodRef, options: dict[str, Any]) -> Call:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
    return Call("DELETE", _path(pod), "delete", "pods", body=body)


def _tell_of_disruption(pod: PodRef, why: str, at: float) -> Call:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": DISRUPTION_REASON,
        "message": f"Taintkeeper: deleting, since {why}",
        "lastTransitionTime": timestamp(at),
    }
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    return Call("PATCH", f"{_path(pod)}/status", "patch", "pods/status", body=body, content_type=STRATEGIC_PATCH)


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None
    retry_after_seconds: float = msgspec.field(default=0.0, name="retryAfterSeconds")


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_status_decoder = msgspec.json.Decoder(_Status)


def parse_answer(reply: Reply) -> Answer:
    """Read what the API server answered; a body that is no ``Status`` (a proxy's page, say) leaves the code alone."""
    try:
        status = _status_decoder.decode(reply.body)
    except msgspec.DecodeError:
        status = _Status(message=reply.body[:200].decode("utf-8", "replace"))
    details = status.details or _Details()
    causes = frozenset(cause.reason for cause in details.causes or ())
    return Answer(reply.status, status.reason, causes, status.message, _retry_after(reply, details))


def _retry_after(reply: Reply, details: _Details) -> float:
    try:
        return max(0.0, int(reply.headers.get("Retry-After", "")))
    except ValueError:
        # The header may be absent, and it may also hold a date; then the body or our own pause must do.
        return max(0.0, details.retry_after_seconds)
