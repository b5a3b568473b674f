"""What node-health asks of the API server: writes that do nothing to what has changed, and Leases read live."""

from collections.abc import AsyncIterator
from random import Random

import pytest

from taintkeeper.cluster.client import ApiClient, Call
from taintkeeper.cluster.credentials import load_credentials
from taintkeeper.cluster.leases import NAMESPACE, read_lease
from taintkeeper.cluster.status_writer import ApiStatusWriter
from taintkeeper.cluster.wire import decode_node, decode_pod
from taintkeeper.core.health import declaration
from taintkeeper.core.health_messages import PodResult, ReadResult
from taintkeeper.core.messages import WriteResult
from testbed import Cluster
from tests.cluster.world import World


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiClient]:
    """The operator's own client."""
    made = ApiClient(load_credentials(str(cluster.kubeconfig), None), observe=lambda *_: None)
    yield made
    await made.close()


def _get(path: str) -> Call:
    return Call("GET", path, "get", "things")


async def test_a_write_about_a_node_that_has_changed_or_is_another_does_nothing(
    world: World, client: ApiClient
) -> None:
    name = await world.node()
    raw = (await client.send(_get(f"/api/v1/nodes/{name}"))).body
    seen = decode_node(raw)
    writer = ApiStatusWriter(client)
    await world.report(name, DiskPressure="True")
    stale = await writer.write_unknown(seen, declaration(seen, 1.8e9))
    assert (stale.result, stale.node) == (WriteResult.CONFLICT, None)
    now = decode_node((await client.send(_get(f"/api/v1/nodes/{name}"))).body)
    stranger = decode_node(raw.replace(seen.uid.encode(), b"another"))
    assert (await writer.write_unknown(stranger, declaration(now, 1.8e9))).result is not WriteResult.DONE
    assert (await writer.write_labels(stranger, {"a": "b"})).result is not WriteResult.DONE
    written = await writer.write_unknown(now, declaration(now, 1.8e9))
    assert written.node is not None
    assert {each.type: each.status for each in written.node.conditions} == dict.fromkeys(
        ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"), "Unknown"
    )
    await world.kube.delete("nodes", "", name)
    assert (await writer.write_unknown(now, declaration(now, 1.8e9))).result is WriteResult.GONE


@pytest.mark.reported("kubernetes/kubernetes#120256")
async def test_a_late_mark_of_a_pod_that_has_changed_or_is_another_does_nothing(
    world: World, client: ApiClient
) -> None:
    await world.pod(await world.node(), "p1")
    path = f"/api/v1/namespaces/{world.namespace}/pods/p1"
    raw = (await client.send(_get(path))).body
    seen = decode_pod(raw)
    writer = ApiStatusWriter(client)
    await world.kube.patch("pods", world.namespace, "p1", {"metadata": {"labels": {"changed": "yes"}}})
    assert (await writer.mark_pod(seen, 1.8e9)).result is PodResult.CONFLICT
    now = decode_pod((await client.send(_get(path))).body)
    stranger = decode_pod(raw.replace(seen.ref.uid.encode(), b"another"))
    assert (await writer.mark_pod(stranger, 1.8e9)).result is not PodResult.DONE
    assert (await writer.mark_pod(now, 1.8e9)).result is PodResult.DONE
    conditions = (await world.kube.get("pods", world.namespace, "p1"))["status"]["conditions"]
    (ready,) = [each for each in conditions if each["type"] == "Ready"]
    assert (ready["status"], ready["lastTransitionTime"]) == ("False", "2027-01-15T08:00:00Z")


async def test_a_lease_is_found_or_missing(world: World, client: ApiClient) -> None:
    name, renewed = f"{world.namespace}-{Random().getrandbits(32):x}", "2026-01-01T00:00:00.123456Z"
    assert (await read_lease(client, name)).result is ReadResult.MISSING
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed}
    await world.kube.create("leases", {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
    read = await read_lease(client, name)
    await world.kube.delete("leases", NAMESPACE, name)
    assert (read.result, read.renewed) == (ReadResult.FOUND, renewed)
