"""The operator put together, as one of several that take part in an election."""

import asyncio
import gc
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from taintkeeper import runtime
from taintkeeper.controllers import shell
from taintkeeper.runtime import Taintkeeper
from testbed.client import Kube, Object
from testbed.embedded import EmbeddedCluster
from testbed.embedded.access import Denial
from testbed.embedded.faults import Fault
from testbed.embedded.samples import sample_nodes, sample_pods
from tests.unit.runtime_bench import free_port, get, make, taint, until

HOME = "default"
SHORT = {
    "leader_elect": "true",
    "leader_elect_lease_duration": "2s",
    "leader_elect_renew_deadline": "1500ms",
    "leader_elect_retry_period": "200ms",
    "leader_elect_resource_namespace": HOME,
}


@pytest.fixture(autouse=True)
def collector_as_it_was() -> Iterator[None]:
    """The operator switches the garbage collector off for its first lists."""
    yield
    gc.enable()
    gc.unfreeze()


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    """A cluster of two nodes with six pods, and an operator that does not wait long for answers at its end."""
    monkeypatch.setattr(runtime, "ACCESS_SECONDS", 0.05)
    monkeypatch.setattr(runtime, "FAREWELL_SECONDS", 0.2)
    monkeypatch.setattr(shell, "ANSWER_SECONDS", 0.2)
    with EmbeddedCluster(bookmark_seconds=0.2, heartbeat_seconds=0.1, termination_seconds=0.05) as cluster:
        cluster.seed([*sample_nodes(2), *sample_pods(6, 2)])
        yield cluster


async def run(operator: Taintkeeper) -> None:
    """Do what Kopf's start does."""
    await operator.start()
    await operator.wait_for_access()
    await operator.wait_for_leadership()
    operator.serve()


@asynccontextmanager
async def electing(cluster: EmbeddedCluster, **flags: str) -> AsyncIterator[Taintkeeper]:
    """Run an operator, whether it is elected or not; it is stopped when the block ends."""
    operator = make(cluster, **(SHORT | flags))
    task = asyncio.create_task(run(operator))
    try:
        yield operator
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await operator.stop()


def leads(operator: Taintkeeper) -> bool:
    return operator.readiness().get("leader", "no") is None and not any(operator.readiness().values())


def stands_by(operator: Taintkeeper) -> bool:
    return operator.readiness() == {"engine": None, "access": None, "leader: standby": None}


def holder(cluster: EmbeddedCluster) -> str:
    (lease,) = cluster.objects("leases", HOME)
    return str(lease["spec"]["holderIdentity"])


async def test_a_standby_is_ready_but_watches_nothing(embedded: EmbeddedCluster) -> None:
    async with electing(embedded) as first:
        await until(lambda: leads(first))
        embedded.clear_journal()
        async with electing(embedded) as second:
            await until(lambda: stands_by(second))
            await asyncio.sleep(0.5)
            assert stands_by(second)
        asked = {(kind.method, kind.resource) for kind in embedded.requests}
    listed = {resource for method, resource in asked if method in ("GET", "WATCH")} - {"leases"}
    assert not {"pods", "poddisruptionbudgets", "namespaces", "persistentvolumes", "evictionpolicies"} & listed


async def test_what_is_to_be_done_is_done_by_the_leader_and_by_the_next_one_at_once(embedded: EmbeddedCluster) -> None:
    async with electing(embedded) as second, electing(embedded) as first:
        await until(lambda: leads(first) or leads(second))
        leader, other = (first, second) if leads(first) else (second, first)
        await until(lambda: stands_by(other))
        await taint(embedded, leader)
        await until(lambda: len(embedded.evictions) == 3)
        await leader.stop()
        await until(lambda: leads(other))
        await taint(embedded, other, "node-2")
        await until(lambda: len(embedded.evictions) == 6)


async def test_the_leader_is_told_by_metrics_probes_and_an_event(embedded: EmbeddedCluster) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    async with electing(embedded, metrics_bind_address=address, health_probe_bind_address=address) as operator:
        await until(lambda: leads(operator))
        ready, metrics = await get(port, "/readyz"), await get(port, "/metrics")
        await until(lambda: bool(embedded.objects("events", HOME)))
    assert "[+]leader ok\n" in ready[1]
    assert "taintkeeper_leader 1.0\n" in metrics[1]
    assert 'leader_election_master_status{name="taintkeeper"} 1.0\n' in metrics[1]
    told = [event for event in embedded.objects("events", HOME) if event["reason"] == "LeaderElection"]
    assert {event["message"].partition(" ")[2] for event in told} == {"became leader", "stopped leading"}
    involved = told[0]["involvedObject"]
    assert (involved["apiVersion"], involved["kind"], involved["name"], involved["namespace"]) == (
        *("coordination.k8s.io/v1", "Lease", "taintkeeper", HOME),
    )
    assert involved["uid"] == embedded.objects("leases", HOME)[0]["metadata"]["uid"]


async def test_a_standby_is_told_by_metrics_and_probes(embedded: EmbeddedCluster) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    async with electing(embedded) as first:
        await until(lambda: leads(first))
        async with electing(embedded, metrics_bind_address=address, health_probe_bind_address=address) as second:
            await until(lambda: stands_by(second))
            answers = [await get(port, path) for path in ("/healthz", "/readyz", "/metrics")]
    assert [status for status, _ in answers] == [200, 200, 200]
    assert answers[1][1] == "[+]engine ok\n[+]access ok\n[+]leader: standby ok\n"
    assert "taintkeeper_leader 0.0\n" in answers[2][1]


async def test_without_an_election_nothing_is_said_of_one(embedded: EmbeddedCluster) -> None:
    port = free_port()
    async with electing(embedded, leader_elect="false", metrics_bind_address=f"127.0.0.1:{port}") as operator:
        await until(lambda: not any(operator.readiness().values()))
        assert "leader" not in operator.readiness()
        assert "leader" not in (await get(port, "/metrics"))[1]
        assert embedded.objects("leases", HOME) == []


async def test_the_lease_is_given_back_last_of_all(embedded: EmbeddedCluster) -> None:
    async with electing(embedded) as operator:
        await until(lambda: leads(operator))
    assert holder(embedded) == ""
    assert not any(thread.name == "elector" for thread in threading.enumerate())


async def test_the_lease_is_not_given_back_while_a_write_may_still_be_carried_out(embedded: EmbeddedCluster) -> None:
    async with electing(embedded) as operator:
        await until(lambda: leads(operator))
        hanging = embedded.faults.add(Fault(method="POST", path="/eviction", delay_seconds=60.0))
        await taint(embedded, operator)
        await until(lambda: hanging.hits > 0)
    embedded.faults.clear()
    assert holder(embedded) != ""


@pytest.fixture
def our_own_pod(embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """The operator runs in a pod on node-1, beside others; the end that it asks for is up to the test."""
    name = str(on_node_1(embedded)[0]["metadata"]["name"])
    monkeypatch.setenv("POD_NAME", name)
    monkeypatch.setenv("POD_NAMESPACE", HOME)
    return name


async def test_our_own_pod_is_evicted_last_and_after_the_lease_was_given_back(
    embedded: EmbeddedCluster, our_own_pod: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[int] = []
    monkeypatch.setattr("taintkeeper.runtime.signal.raise_signal", signals.append)
    # The Lease is given back only where everything has been answered by then.
    monkeypatch.setattr(runtime, "FAREWELL_SECONDS", 10.0)
    async with electing(embedded) as operator:
        await until(lambda: leads(operator))
        await taint(embedded, operator)
        await until(lambda: signals == [signal.SIGTERM])
        tried = [call.name for call in embedded.evictions]
        assert (len(tried), tried[-1]) == (3, our_own_pod)
        hanging = embedded.faults.add(Fault(method="POST", path="/eviction$", delay_seconds=0.5))
        ending = asyncio.create_task(operator.stop())
        await until(lambda: hanging.hits > 0)
        assert holder(embedded) == ""
        assert [pod["metadata"]["name"] for pod in on_node_1(embedded)] == [our_own_pod]
        await ending
    await until(lambda: on_node_1(embedded) == [])


def on_node_1(cluster: EmbeddedCluster) -> list[Object]:
    return [pod for pod in cluster.objects("pods") if pod["spec"]["nodeName"] == "node-1"]


async def test_whoever_is_put_out_writes_nothing_more(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr("taintkeeper.leadership.end_process", ended.append)
    async with electing(embedded) as operator:
        await until(lambda: leads(operator))
        async with Kube(embedded.kubeconfig) as kube:
            await kube.patch("leases", HOME, "taintkeeper", {"spec": {"holderIdentity": "somebody"}})
        await until(lambda: bool(ended))
        await taint(embedded, operator)
        await until(lambda: operator._controllers.eviction is not None and operator._controllers.eviction.busy)
        await asyncio.sleep(0.5)
        assert embedded.evictions == []
    assert ended == ["it is held by somebody"]
    assert len(embedded.objects("pods")) == 6


async def test_who_has_waited_long_sets_its_clock_anew(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = make(embedded, **SHORT)
    await operator.wait_for_access()
    done: list[str] = []
    monkeypatch.setattr(operator._clock, "wake_up", lambda: done.append("made up for sleep"))
    monkeypatch.setattr(operator, "_set_clock", lambda _: done.append("set by the server"))
    await operator.wait_for_leadership()
    assert done == ["made up for sleep", "set by the server"]
    await operator.stop()


async def test_what_an_election_needs_is_named_when_it_is_missing(embedded: EmbeddedCluster) -> None:
    denial = Denial(verb="patch", resource="leases", group="coordination.k8s.io")
    embedded.access.deny(denial)
    async with electing(embedded) as operator:
        missing = "permission is missing to patch leases.coordination.k8s.io named taintkeeper in namespace default"
        await until(lambda: operator.readiness()["access"] == missing)
        embedded.access.allow(denial)
        await until(lambda: leads(operator))


async def test_a_standby_that_cannot_see_the_lease_is_not_ready(embedded: EmbeddedCluster) -> None:
    async with electing(embedded) as first:
        await until(lambda: leads(first))
        async with electing(embedded) as second:
            await until(lambda: stands_by(second))
            fault = embedded.faults.add(Fault(method="GET", path="leases/taintkeeper", status=500))
            await until(lambda: "cannot be read: 500" in (second.readiness()["leader: standby"] or ""))
            embedded.faults.remove(fault)
            await until(lambda: stands_by(second))
