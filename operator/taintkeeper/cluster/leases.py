"""The Leases by which kubelets say that they live: as they are watched, and as they are read past every watch.

One for each node, of the node's name, renewed every ten seconds (KEP-589).
"""

import msgspec

from taintkeeper.cluster.client import ApiClient, Call, Reply, UnreachableError
from taintkeeper.cluster.reflector import Kind
from taintkeeper.cluster.wire.common import Wire
from taintkeeper.cluster.wire.times import Time
from taintkeeper.cluster.writer import parse_answer
from taintkeeper.core.health import Lease
from taintkeeper.core.health_messages import LeaseRead, ReadResult

NAMESPACE = "kube-node-lease"
PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class _Meta(Wire, frozen=True):
    name: str


class _Spec(Wire, frozen=True):
    renew_time: Time = None


class _LeaseWire(Wire, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


_decoder = msgspec.json.Decoder(_LeaseWire)


def decode_lease(raw: bytes | msgspec.Raw) -> Lease:
    """Read a Lease; raises msgspec.DecodeError for what is none. Its time is kept as it is spelt."""
    wire = _decoder.decode(raw)
    return Lease(wire.metadata.name, str(wire.spec.renew_time or ""))


LEASES: Kind[str, Lease] = Kind("leases", PATH, decode_lease, lambda lease: lease.node)


async def read_lease(client: ApiClient, node: str) -> LeaseRead:
    """Read the Lease of this node as it is in the store; what went wrong is part of the answer."""
    try:
        reply = await client.send(Call("GET", f"{PATH}/{node}", "get", "leases"))
        if reply.status < 300:
            return LeaseRead(node, ReadResult.FOUND, decode_lease(reply.body).renewed)
    except (UnreachableError, msgspec.DecodeError) as error:
        return LeaseRead(node, ReadResult.FAILED, detail=str(error))
    result = ReadResult.MISSING if _says_not_found(reply) else ReadResult.FAILED
    return LeaseRead(node, result, detail=f"{reply.status}: {parse_answer(reply).message}")


def _says_not_found(reply: Reply) -> bool:
    # A proxy on the way answers 404 as well, and knows nothing of Leases.
    return reply.status == 404 and parse_answer(reply).reason == "NotFound"
