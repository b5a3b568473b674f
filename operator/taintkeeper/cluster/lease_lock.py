"""The Lease that decides who leads: how a candidate reads and writes it (``LeaseLock`` of client-go)."""

import time
from typing import Any

import msgspec

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.client import MERGE_PATCH, ApiClient, Call, Reply, StatusError
from taintkeeper.cluster.wire import timestamp
from taintkeeper.cluster.wire.common import Meta, Wire
from taintkeeper.cluster.writer import parse_answer
from taintkeeper.core.election import Claim, Record, Terms

API_VERSION = "coordination.k8s.io/v1"
GROUP = "coordination.k8s.io"
RELEASED_SECONDS = 1
"""What a Lease that was given back says; the API takes no 0."""


class _Spec(Wire, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: float | None = None
    lease_transitions: int | None = None


class _LeaseWire(Wire, frozen=True):
    metadata: Meta
    spec: _Spec = _Spec()


_decoder = msgspec.json.Decoder(_LeaseWire)


def decode_record(raw: bytes) -> Record:
    """Read a Lease; raises msgspec.DecodeError for what is none."""
    wire = _decoder.decode(raw)
    spec = wire.spec
    return Record(
        uid=wire.metadata.uid,
        version=wire.metadata.resource_version,
        holder=spec.holder_identity or "",
        seconds=spec.lease_duration_seconds,
        transitions=spec.lease_transitions or 0,
    )


def lock_permissions(namespace: str, name: str) -> tuple[Permission, ...]:
    """Return what a candidate must be allowed to do. Who may create cannot be limited to a name (RBAC)."""
    create = Permission("create", "leases", GROUP, namespace=namespace)
    return create, *(Permission(verb, "leases", GROUP, namespace=namespace, name=name) for verb in ("get", "patch"))


class LeaseLock:
    """One Lease, as one candidate uses it.

    Every method raises :class:`~taintkeeper.cluster.client.UnreachableError` where no answer came,
    :class:`~taintkeeper.cluster.client.StatusError` where the server refused (code 409: somebody was faster), and
    msgspec.DecodeError where the answer is no Lease.
    """

    def __init__(self, client: ApiClient, namespace: str, name: str, terms: Terms) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._terms = terms
        self._collection = f"/apis/{API_VERSION}/namespaces/{namespace}/leases"

    async def look(self) -> Record | None:
        """Read the Lease as it is in the store; None: there is none."""
        reply = await self._client.send(Call("GET", f"{self._collection}/{self._name}", "get", "leases"))
        # A proxy on the way answers 404 as well, and knows nothing of Leases.
        if reply.status == 404 and parse_answer(reply).reason == "NotFound":
            return None
        return _record_of(reply)

    async def claim(self, claim: Claim) -> Record:
        """Write us into the Lease; return it as it is then."""
        spec: dict[str, Any] = {
            "holderIdentity": self._terms.identity,
            "leaseDurationSeconds": self._terms.lease_seconds,
            "leaseTransitions": claim.transitions,
        }
        if claim.begins:
            spec["acquireTime"] = _now()
        return await self._write(claim.version, spec)

    async def release(self) -> None:
        """Write into the Lease that nobody holds it, if it is ours."""
        record = await self.look()
        if record is not None and record.holder == self._terms.identity:
            spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED_SECONDS, "acquireTime": _now()}
            await self._write(record.version, spec)

    async def _write(self, version: str | None, spec: dict[str, Any]) -> Record:
        spec["renewTime"] = _now()
        if version is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            body = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}
            return _record_of(await self._client.send(Call("POST", self._collection, "create", "leases", body=body)))
        # A patch, so that what others keep in the Lease stays; with a version it is refused when that is outdated.
        body = {"metadata": {"resourceVersion": version}, "spec": spec}
        path = f"{self._collection}/{self._name}"
        return _record_of(
            await self._client.send(Call("PATCH", path, "patch", "leases", body=body, content_type=MERGE_PATCH))
        )


def _record_of(reply: Reply) -> Record:
    if reply.status >= 300:
        raise StatusError(reply.status, parse_answer(reply).message)
    return decode_record(reply.body)


def _now() -> str:
    return timestamp(time.time(), digits=6)
