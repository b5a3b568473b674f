"""Several operators, one Lease: one of them works, and another goes on when it ends, however it ends."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import Cluster
from testbed.client import ApiError, Object, until
from tests.cluster.conftest import QUICK
from tests.cluster.link import Link
from tests.cluster.operator_process import RUN, OperatorProcess
from tests.cluster.world import World, taint, toleration

LEASE_SECONDS = 3
SHORT = (
    *(f"--leader-elect-lease-duration={LEASE_SECONDS}s", "--leader-elect-renew-deadline=2s"),
    "--leader-elect-retry-period=500ms",
)
TAKEOVER_SECONDS = 3.0
"""How soon another goes on after a clean end; with the times that are the default."""
TOLERATED_SECONDS = 8
LEASE = "taintkeeper"
ACCOUNT = "taintkeeper-elected"
RBAC = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"

Begin = Callable[..., Awaitable[OperatorProcess]]


@pytest.fixture
async def begin(cluster: Cluster, world: World, tmp_path: Path) -> AsyncIterator[Begin]:
    """Start an operator that takes part in the election of this world; how it ends is up to the test."""
    running: list[OperatorProcess] = []

    async def start(*flags: str, kubeconfig: Path | None = None) -> OperatorProcess:
        name = f"operator-{len(running)}"
        environment = {
            "TAINTKEEPER_KUBECONFIG": str(kubeconfig or cluster.kubeconfig),
            "TAINTKEEPER_LEADER_ELECT": "true",
            "POD_NAMESPACE": world.namespace,
            "POD_NAME": name,
        }
        process = OperatorProcess([*RUN, *QUICK, *flags], environment, tmp_path / f"{name}.log")
        running.append(await process.start())
        return await process.until_ready()

    yield start
    for process in running:
        await process.stop()
        print(process.output())  # shown by pytest when the test failed


async def leads(operator: OperatorProcess) -> bool:
    return await operator.metric("taintkeeper_leader") == 1.0


async def at_work(operator: OperatorProcess) -> bool:
    return await leads(operator) and await operator.probe("readyz") == 200


async def leader(begin: Begin, *flags: str, kubeconfig: Path | None = None) -> OperatorProcess:
    """Start an operator that is elected, since there is no other."""
    operator = await begin(*flags, kubeconfig=kubeconfig)
    await until(lambda: at_work(operator))
    return operator


async def stands_by(operator: OperatorProcess) -> bool:
    return "[+]leader: standby ok" in await operator.probe_text("readyz")


async def writes(operator: OperatorProcess) -> float:
    """Return how many requests it has sent that change anything."""
    counts = [
        await operator.metric("taintkeeper_api_request_duration_seconds_count", verb=verb, resource=resource)
        for verb in ("create", "patch", "update", "delete")
        for resource in ("nodes", "nodes/status", "pods", "pods/status", "pods/eviction", "events")
    ]
    return sum(counts)


async def lease(world: World) -> Object:
    spec: Object = (await world.kube.get("leases", world.namespace, LEASE))["spec"]
    return spec


async def holder(world: World) -> str:
    """Return the name of the process that is in the Lease."""
    return str((await lease(world))["holderIdentity"]).partition("_")[0]


async def version(world: World, name: str, resource: str = "nodes") -> str:
    namespace = "" if resource == "nodes" else world.namespace
    return str((await world.kube.get(resource, namespace, name))["metadata"]["resourceVersion"])


async def evicts(world: World) -> None:
    """See that somebody works: a pod on a node that is tainted is evicted."""
    node = await world.node()
    await world.pod(node, f"on-{node}")
    await world.add_taint(node, taint("maintenance"))
    await world.gone(f"on-{node}")


@pytest.mark.reported("kopf peering")
async def test_of_two_operators_one_works_and_the_other_stands_by(world: World, begin: Begin) -> None:
    first, second = await leader(begin, *SHORT), await begin(*SHORT)
    assert (await leads(first), await stands_by(first)) == (True, False)
    assert (await leads(second), await stands_by(second)) == (False, True)
    assert await second.probe("healthz") == 200
    assert await holder(world) == "operator-0"
    await evicts(world)
    assert await first.metric("taintkeeper_eviction_requests_total") == 1.0
    assert await writes(first) > 0
    assert await writes(second) == 0
    await until(lambda: _told(world, "became leader"))


async def test_when_a_leader_is_killed_another_goes_on_once_the_lease_is_over(world: World, begin: Begin) -> None:
    first, second = await leader(begin, *SHORT), await begin(*SHORT)
    await first.kill()
    left = await lease(world)
    assert left["holderIdentity"].startswith("operator-0_")
    await until(lambda: at_work(second))
    taken = await lease(world)
    assert taken["leaseTransitions"] == left["leaseTransitions"] + 1
    waited = datetime.fromisoformat(taken["acquireTime"]) - datetime.fromisoformat(left["renewTime"])
    assert waited.total_seconds() >= LEASE_SECONDS
    await evicts(world)
    assert await second.metric("taintkeeper_eviction_requests_total") == 1.0


async def test_when_a_leader_is_told_to_end_another_goes_on_at_once(world: World, begin: Begin) -> None:
    first, second = await leader(begin), await begin()
    first.send(signal.SIGTERM)
    await until(lambda: leads(second), TAKEOVER_SECONDS)
    assert await first.end() == 0
    await until(lambda: at_work(second))
    await evicts(world)
    await until(lambda: _told(world, "became leader", "stopped leading", "became leader"))


async def _told(world: World, *messages: str) -> bool:
    """Return whether these are the events about the Lease, but for the name that each begins with."""
    events = await world.kube.list("events", world.namespace, fieldSelector=f"involvedObject.name={LEASE}")
    assert {event["reason"] for event in events} <= {"LeaderElection"}
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [event["message"].partition(" ")[2] for event in events] == [*messages]


async def test_the_leaders_own_pod_leaves_last_and_after_the_lease_was_given_back(world: World, begin: Begin) -> None:
    node = await world.node()
    for name in ("operator-0", "other"):
        await world.pod(node, name, grace=60)
    first, second = await leader(begin), await begin()
    async with world.kube.watch(f"/apis/coordination.k8s.io/v1/namespaces/{world.namespace}/leases") as leases:
        await world.add_taint(node, taint("maintenance"))
        assert await first.end() == 0
        given_back = await _version_when_given_back(leases)
    other, own = [int(await version(world, name, "pods")) for name in ("other", "operator-0")]
    assert other < given_back < own
    await until(lambda: at_work(second))
    assert await second.metric("taintkeeper_eviction_requests_total") == 0.0


async def _version_when_given_back(leases: AsyncIterator[Object]) -> int:
    async for event in leases:
        if event["object"]["spec"]["holderIdentity"] == "":
            return int(event["object"]["metadata"]["resourceVersion"])
    raise AssertionError("the Lease was never given back")


async def test_a_standby_that_is_told_to_end_ends_and_leaves_the_lease_alone(world: World, begin: Begin) -> None:
    first, second = await leader(begin, *SHORT), await begin(*SHORT)
    assert await second.stop() == 0
    assert await leads(first)
    assert await holder(world) == "operator-0"


@pytest.fixture
async def link(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Link]:
    """A way to the API server that the test may cut."""
    made = await Link(cluster.kubeconfig, tmp_path).open()
    yield made
    await made.cut()


@pytest.mark.reported("kopf peering")
async def test_a_leader_that_cannot_reach_the_api_server_ends_before_another_begins(
    world: World, begin: Begin, link: Link
) -> None:
    first = await leader(begin, *SHORT, kubeconfig=link.kubeconfig)
    second = await begin(*SHORT)
    await link.cut()
    ended = asyncio.create_task(first.end())
    await until(lambda: leads(second))
    assert ended.done()
    assert ended.result() == 1
    assert first.output().count("no longer the leader, ending: it could not be renewed for 2 s") == 1
    await until(lambda: at_work(second))
    await evicts(world)


@pytest.mark.reported("kopf peering")
async def test_a_leader_that_was_stopped_past_the_end_of_its_lease_writes_nothing_when_it_goes_on(
    world: World, begin: Begin
) -> None:
    first, second = await leader(begin, *SHORT), await begin(*SHORT)
    node = await world.node()
    await world.pod(node, "due-meanwhile", toleration("maintenance", TOLERATED_SECONDS))
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _counts(first))
    first.send(signal.SIGSTOP)
    await until(lambda: at_work(second))
    await until(lambda: _counts(second))
    # From here on nobody else is there to write.
    await second.kill()
    await asyncio.sleep(TOLERATED_SECONDS)
    await world.report(node, Ready="True", DiskPressure="True")
    before = await everything(world, node)
    first.send(signal.SIGCONT)
    assert await first.end() == 1
    assert await everything(world, node) == before
    assert await world.pods() == {"due-meanwhile"}
    assert await holder(world) == "operator-1"


async def _counts(operator: OperatorProcess) -> bool:
    return await operator.metric("taintkeeper_pending_evictions", reason="toleration") == 1.0


async def everything(world: World, node: str) -> Any:
    """Return what would be another if anybody had written."""
    pods = [pod["metadata"]["resourceVersion"] for pod in await world.kube.list("pods", world.namespace)]
    events = [event["metadata"]["resourceVersion"] for event in await world.kube.list("events", world.namespace)]
    return await version(world, node), pods, events, await lease(world)


@pytest.fixture
async def installed(cluster: Cluster, world: World) -> AsyncIterator[Path]:
    """A kubeconfig of an account with the roles that every overlay has, and no more."""
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": world.namespace}
    await world.kube.create("serviceaccounts", {"metadata": {"name": ACCOUNT, "namespace": world.namespace}})
    for role in yaml.safe_load_all(RBAC.read_text()):
        kind = role["kind"]
        if not kind.endswith("Role"):
            continue
        metadata = {"name": ACCOUNT} | ({"namespace": world.namespace} if kind == "Role" else {})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ACCOUNT}
        await world.kube.create(f"{kind.lower()}s", {"metadata": metadata, "rules": role["rules"]})
        binding = {"metadata": metadata, "roleRef": reference, "subjects": [subject]}
        await world.kube.create(f"{kind.lower()}bindings", binding)
    yield cluster.kubeconfig_for(world.namespace, ACCOUNT)
    await world.kube.delete("clusterrolebindings", "", ACCOUNT)
    await world.kube.delete("clusterroles", "", ACCOUNT)


@pytest.mark.only_on("real")
async def test_what_the_manifests_grant_is_enough_to_be_elected_and_to_give_the_lease_back(
    world: World, begin: Begin, installed: Path
) -> None:
    operator = await leader(begin, "--controllers=taint-eviction", kubeconfig=installed)
    await evicts(world)
    renewed = (await lease(world))["renewTime"]
    await until(lambda: _renewed_since(world, renewed))
    assert await operator.stop() == 0
    assert await holder(world) == ""


async def _renewed_since(world: World, time: str) -> bool:
    return bool((await lease(world))["renewTime"] > time)


async def test_a_dry_run_needs_no_lease(world: World, begin: Begin) -> None:
    operator = await begin("--dry-run")
    assert "leader" not in await operator.probe_text("readyz")
    with pytest.raises(ApiError, match="404"):
        await lease(world)
