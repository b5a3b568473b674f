"""What upstream's integration tests ask of evictions, asked of the operator and of both control planes.

The cases are those of ``test/integration/evictions`` and ``test/integration/node`` in kubernetes/kubernetes.
"""

import asyncio
from typing import Any

import pytest

from testbed.client import Kube, until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World, taint
from tests.unit.core.builders import case


async def disruption(world: World, name: str) -> dict[str, Any] | None:
    """Return the condition by which a pod tells that it is disrupted, or None."""
    pod = await world.kube.get("pods", world.namespace, name)
    return next((each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget"), None)


@pytest.mark.upstream("NoExecuteTaintManager Single Pod pods evicted from tainted nodes have pod disruption condition")
@pytest.mark.parametrize(
    ("controllers", "leaves"),
    [
        case("TestEvictionForNoExecuteTaintAddedByUser: separate controller disabled", "*,-node-health", True),
        case("TestEvictionForNoExecuteTaintAddedByUser: enabled but not started", "node-taint", False),
        case("TestEvictionForNoExecuteTaintAddedByUser: enabled and started", "taint-eviction", True),
    ],
)
async def test_a_taint_added_by_a_user_evicts_only_where_the_controller_runs(
    world: World, start: Start, controllers: str, leaves: bool
) -> None:
    node = await world.node()
    await world.pod(node, "p", grace=60)
    await (await start(*QUICK, f"--controllers={controllers}")).until_ready()
    await world.add_taint(node, taint("by-user"))
    if not leaves:
        await asyncio.sleep(3.0)
        assert await world.pods() == {"p"}
        assert await disruption(world, "p") is None
        return
    await until(lambda: _disrupted(world, "p"))
    # The API server marks the pod in one write and deletes it in another.
    await world.gone("p")


async def _disrupted(world: World, name: str) -> bool:
    condition = await disruption(world, name)
    return condition is not None and (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")


@pytest.mark.upstream("TestConcurrentEvictionRequests")
async def test_many_pods_of_one_budget_all_leave_and_no_conflict_is_seen(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    for number in range(10):
        await world.pod(node, f"p{number}", labels={"app": "many"})
    await world.budget("many", "many", minAvailable=0)
    await world.add_taint(node, taint("maintenance"))
    for number in range(10):
        await world.gone(f"p{number}")
    assert await operator.metric("taintkeeper_eviction_requests_total", code="409") == 0


@pytest.mark.upstream("TestEvictionWithFinalizers")
async def test_a_pod_with_a_finalizer_is_asked_once_and_told_why(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "held", finalizers=["example.com/held"])
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _disrupted(world, "held"))
    await asyncio.sleep(2.0)
    assert await operator.metric("taintkeeper_eviction_requests_total") == 1
    assert await operator.metric("taintkeeper_terminating_pods") == 1
    assert await operator.metric("taintkeeper_pending_evictions") == 0
    await world.kube.patch("pods", world.namespace, "held", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        case("TestEvictionWithFinalizers: running pod", {}, True),
        case(
            "TestEvictionWithFinalizers: running pod should not update conditions in dry-run mode",
            {"dryRun": ["All"]}, False,
        ),
    ],
)  # fmt: skip
async def test_a_pod_is_told_of_its_disruption_unless_that_is_only_rehearsed(
    world: World, kube: Kube, options: dict[str, Any], told: bool
) -> None:
    await world.pod(await world.node(), "p", grace=60)
    assert (await kube.evict(world.namespace, "p", **options)).status == 201
    assert (await disruption(world, "p") is not None) is told


@pytest.mark.parametrize(
    ("policy", "ready"),
    [
        case("TestEvictionWithUnhealthyPodEvictionPolicy: nil, ready", None, True),
        case("TestEvictionWithUnhealthyPodEvictionPolicy: IfHealthyBudget, ready", "IfHealthyBudget", True),
        case("TestEvictionWithUnhealthyPodEvictionPolicy: AlwaysAllow, ready", "AlwaysAllow", True),
        case("TestEvictionWithUnhealthyPodEvictionPolicy: AlwaysAllow, not ready", "AlwaysAllow", False),
    ],
)
async def test_a_single_request_is_enough_where_the_budget_lets_the_pod_go(
    world: World, operator: OperatorProcess, policy: str | None, ready: bool
) -> None:
    node, other = await world.node(), await world.node()
    await world.pod(node, "goes", labels={"app": "web"})
    if ready:
        await world.pod(other, "stays", labels={"app": "web"})
    else:
        unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
        await world.kube.patch_status("pods", world.namespace, "goes", unready)
    unhealthy = {} if policy is None else {"unhealthyPodEvictionPolicy": policy}
    await world.budget("web", "web", minAvailable=1, **unhealthy)
    await world.add_taint(node, taint("maintenance"))
    await world.gone("goes")
    # A pod may be gone before the answer to its eviction has come.
    await until(lambda: _asked(operator))
    assert await operator.metric("taintkeeper_eviction_requests_total") == 1


async def _asked(operator: OperatorProcess) -> bool:
    return await operator.metric("taintkeeper_eviction_requests_total") > 0


@pytest.mark.upstream("TestTerminalPodEviction")
async def test_a_pod_that_has_ended_is_evicted_past_its_budget_by_the_api_and_left_alone_by_us(
    world: World, operator: OperatorProcess, kube: Kube
) -> None:
    node = await world.node()
    ended = await world.pod(node, "ended", labels={"app": "job"})
    await world.phase("ended", "Succeeded")
    await world.budget("job", "job", minAvailable=1)
    await world.pod(node, "witness")
    await world.add_taint(node, taint("maintenance"))
    await world.gone("witness")
    assert await world.pods() == {"ended"}
    assert (await kube.evict(world.namespace, "ended", ended["metadata"]["uid"])).status == 201


@pytest.mark.parametrize(
    ("preconditions", "status"),
    [
        case("TestEvictionWithPrecondition: resourceVersion", {"resourceVersion": "version"}, 201),
        case("TestEvictionWithPrecondition: UID", {"uid": "uid"}, 201),
        case("TestEvictionWithPrecondition: both", {"uid": "uid", "resourceVersion": "version"}, 201),
        case("TestEvictionWithPrecondition: wrong resourceVersion", {"resourceVersion": "1"}, 409),
        case("TestEvictionWithPrecondition: wrong UID", {"uid": "another"}, 409),
    ],
)
async def test_preconditions_of_an_eviction_are_kept_by_the_api(
    world: World, kube: Kube, preconditions: dict[str, str], status: int
) -> None:
    node = await world.node()
    await world.pod(node, "p")
    found = (await kube.get("pods", world.namespace, "p"))["metadata"]
    known = {"uid": found["uid"], "version": found["resourceVersion"]}
    asked = {key: known.get(value, value) for key, value in preconditions.items()}
    assert (await _evict(kube, world.namespace, {"preconditions": asked})).status == status


@pytest.mark.parametrize(
    ("version", "status"),
    [
        case("TestEvictionVersions: v1", "policy/v1", 201),
        case("TestEvictionVersions: v1beta1", "policy/v1beta1", 201),
        case("TestEvictionVersions: v2", "policy/v2", 400),
    ],
)
async def test_versions_of_an_eviction_are_told_apart_by_the_api(
    world: World, kube: Kube, version: str, status: int
) -> None:
    node = await world.node()
    await world.pod(node, "p")
    assert (await _evict(kube, world.namespace, {}, version)).status == status


async def _evict(kube: Kube, namespace: str, options: dict[str, Any], version: str = "policy/v1") -> Any:
    body = {
        "apiVersion": version,
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": namespace},
        "deleteOptions": options,
    }
    return await kube.request("POST", f"/api/v1/namespaces/{namespace}/pods/p/eviction", body)


@pytest.mark.reported("kubernetes/enhancements#3463")
async def test_a_pod_that_its_budget_holds_is_not_told_that_it_is_disrupted(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "kept", labels={"app": "web"})
    await world.budget("web", "web", minAvailable=1)
    await world.add_taint(node, taint("maintenance"))
    await world.told("kept", "EvictionBlocked", "is blocked by disruption budget")
    await asyncio.sleep(8.0)
    assert await operator.metric("taintkeeper_eviction_requests_total", code="429") >= 2
    assert await disruption(world, "kept") is None
