"""The operator put together, beside others who do its work, and when it may no longer do it."""

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.client import Kube
from testbed.embedded import EmbeddedCluster
from testbed.embedded.access import Denial
from testbed.embedded.samples import sample_nodes, sample_pods
from tests.unit.runtime_bench import free_port, get, running, taint, until

COMPONENTS = {"node-lifecycle-controller": "node-controller", "taint-eviction-controller": "taint-eviction-controller"}


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    """A cluster of two nodes with six pods."""
    with EmbeddedCluster(bookmark_seconds=0.2, heartbeat_seconds=0.1, termination_seconds=0.05) as cluster:
        cluster.seed([*sample_nodes(2), *sample_pods(6, 2)])
        yield cluster
    gc.enable()
    gc.unfreeze()


def event(component: str, name: str) -> dict[str, Any]:
    """Return an event as client-go's recorders send them."""
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "node-1", "apiVersion": "v1"},
        "reason": "Something",
        "message": "something happened",
        "source": {"component": component},
        "reportingComponent": component,
        "type": "Normal",
        "count": 1,
    }


async def act(embedded: EmbeddedCluster, name: str) -> None:
    """Have both of kube-controller-manager's controllers send an event, and somebody else too."""
    async with Kube(embedded.kubeconfig) as kube:
        for component in ("kubelet", *COMPONENTS.values()):
            await kube.create("events", event(component, f"{name}.{component}"))


def told(embedded: EmbeddedCluster) -> set[str]:
    """Return the rivals that people were told of."""
    events = [each for each in embedded.objects("events") if each["reason"] == "RivalController"]
    return {name for name in COMPONENTS for each in events if f"{name} is running too" in each["message"]}


@pytest.mark.parametrize(
    ("controllers", "rivals"),
    [
        ("*", set(COMPONENTS)),
        ("taint-eviction", {"taint-eviction-controller"}),
        ("node-taint", {"node-lifecycle-controller"}),
        ("node-health", {"node-lifecycle-controller"}),
    ],
)
async def test_those_who_do_what_is_done_here_are_told_of(
    controllers: str, rivals: set[str], embedded: EmbeddedCluster
) -> None:
    async with running(embedded, controllers=controllers):
        await until(lambda: watches(embedded) == len(rivals))
        await act(embedded, "new")
        await until(lambda: told(embedded) == rivals)
    assert told(embedded) == rivals


def watches(embedded: EmbeddedCluster) -> int:
    """Return how many watches of events there were."""
    return sum(
        count for kind, count in embedded.requests.items() if (kind.method, kind.resource) == ("WATCH", "events")
    )


async def test_what_they_did_before_we_came_is_no_sign(embedded: EmbeddedCluster) -> None:
    await act(embedded, "old")
    async with running(embedded):
        await until(lambda: watches(embedded) == 2)
        await asyncio.sleep(0.1)
    assert told(embedded) == set()


async def test_beside_a_dry_run_somebody_else_should_do_the_work(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(embedded, dry_run="true"):
        await act(embedded, "new")
        await asyncio.sleep(0.2)
    assert watches(embedded) == 0
    assert not any("is running too" in line for line in caplog.messages)


async def test_people_are_told_on_our_own_pod_where_it_is_known(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAME", "taintkeeper-1")
    monkeypatch.setenv("POD_NAMESPACE", "default")
    async with running(embedded, controllers="taint-eviction"):
        await until(lambda: watches(embedded) == 1)
        await act(embedded, "new")
        await until(lambda: bool(told(embedded)))
    (notice,) = (each for each in embedded.objects("events") if each["reason"] == "RivalController")
    assert (notice["involvedObject"]["kind"], notice["involvedObject"]["name"]) == ("Pod", "taintkeeper-1")
    assert notice["metadata"]["namespace"] == "default"


async def test_a_permission_that_vanishes_makes_it_unready_until_it_is_back(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taintkeeper.controllers.permissions.MISSING_SECONDS", 0.05)
    denial = Denial(verb="create", resource="pods", subresource="eviction")
    port = free_port()
    async with running(embedded, metrics_bind_address=f"127.0.0.1:{port}") as operator:
        embedded.access.deny(denial)
        await taint(embedded, operator)
        await until(lambda: operator.readiness()["access"] == "permission is missing to create pods/eviction")
        assert operator.health() == {"engine": None}
        _, metrics = await get(port, "/metrics")
        assert 'taintkeeper_permission_missing{resource="pods/eviction",verb="create"} 1.0' in metrics
        embedded.access.allow(denial)
        await until(lambda: not any(operator.readiness().values()))


async def test_taints_that_kube_controller_manager_writes_are_noticed(embedded: EmbeddedCluster) -> None:
    async with running(embedded) as operator, Kube(embedded.kubeconfig) as kube:
        node = await kube.get("nodes", "", "node-1")
        operator.node_event({"type": "MODIFIED", "object": node})
        managed = [{"manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:taints": {}}}}]
        metadata = node["metadata"] | {"managedFields": managed}
        spec = node["spec"] | {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}
        operator.node_event({"type": "MODIFIED", "object": node | {"metadata": metadata, "spec": spec}})
        await until(lambda: told(embedded) == {"node-lifecycle-controller"})
