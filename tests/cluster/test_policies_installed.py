"""EvictionPolicies as they are installed: the definition may be missing, and permissions are those of the manifests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from testbed import Cluster
from testbed.client import Kube, Object, until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.policy_world import Policies
from tests.cluster.world import MAINTENANCE, World, taint

NAME = "taintkeeper-with-policies"
MANIFEST = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"
UNDEFINED = "evictionpolicies.taintkeeper.io is not defined on the API server: there are none until it is"
SWEEP_SECONDS = 60.0
"""How long it takes at most to notice a definition: there is a list every half minute."""


async def evicts_by_default(world: World, operator: OperatorProcess) -> None:
    """Wait until a pod has left without any policy."""
    node = await world.node()
    name = f"leaving-from-{node}"
    await world.pod(node, name)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone(name)
    await until(lambda: _left_by_default(operator, f"pod {world.namespace}/{name} on node {node} evicted"))


def _left_by_default(operator: OperatorProcess, words: str) -> bool:
    lines = [line for line in operator.output().splitlines() if words in line]
    return any("policy system:default, mode Evict" in line for line in lines)


async def test_without_the_definition_there_are_no_policies_until_it_is_installed(
    world: World, policies: Policies, start: Start
) -> None:
    await policies.undefine()
    operator = await (await start(*QUICK)).until_ready()
    assert UNDEFINED in operator.output()
    await evicts_by_default(world, operator)
    await policies.define()
    name = await policies.make(mode="Ignore")
    await policies.obeyed(name, seconds=SWEEP_SECONDS)
    node = await world.node()
    await world.pod(node, "kept")
    await world.add_taint(node, taint(MAINTENANCE))
    await policies.counts(name, exempt=1)
    assert "kept" in await world.pods()


async def test_when_the_definition_is_deleted_the_work_goes_on_without_policies(
    world: World, policies: Policies, start: Start
) -> None:
    operator = await (await start(*QUICK)).until_ready()
    name = await policies.make(mode="Ignore")
    await policies.obeyed(name)
    node = await world.node()
    await world.pod(node, "kept")
    await world.add_taint(node, taint(MAINTENANCE))
    await policies.counts(name, exempt=1)
    await policies.undefine()
    await world.gone("kept", 2.0 * SWEEP_SECONDS)
    await until(lambda: UNDEFINED in operator.output(), SWEEP_SECONDS)
    await operator.until_ready()
    await evicts_by_default(world, operator)


@pytest.fixture
async def installed(cluster: Cluster, kube: Kube, world: World) -> AsyncIterator[Path]:
    """A kubeconfig of an account with the permissions of the manifests, and no others."""
    (role,) = (each for each in yaml.safe_load_all(MANIFEST.read_text()) if each["kind"] == "ClusterRole")
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    subjects: list[Object] = [{"kind": "ServiceAccount", "name": NAME, "namespace": world.namespace}]
    await kube.create("serviceaccounts", {"metadata": {"name": NAME, "namespace": world.namespace}})
    await kube.create("clusterroles", {"metadata": {"name": NAME}, "rules": role["rules"]})
    await kube.create("clusterrolebindings", {"metadata": {"name": NAME}, "roleRef": reference, "subjects": subjects})
    yield cluster.kubeconfig_for(world.namespace, NAME)
    await kube.delete("clusterrolebindings", "", NAME)
    await kube.delete("clusterroles", "", NAME)


@pytest.mark.only_on("real")
async def test_the_permissions_of_the_manifests_are_enough_for_every_mode(
    world: World, policies: Policies, start: Start, installed: Path
) -> None:
    process = await (await start("--controllers=taint-eviction", kubeconfig=installed)).until_ready()
    node = await world.node()
    names = []
    for mode in ("Evict", "EvictThenDelete", "Delete", "Ignore"):
        selector = {"matchLabels": {"app": mode.lower()}}
        waits: Object = {"blockedSeconds": 1} if mode == "EvictThenDelete" else {}
        names.append(await policies.make(mode=mode, podSelector=selector, **waits))
        await world.pod(node, mode.lower())
    await world.budget("held", "evictthendelete", minAvailable=1)
    await policies.obeyed(*names)
    await world.add_taint(node, taint(MAINTENANCE))
    for name in names[:3]:
        await policies.counts(name, evicted=1)
    await policies.counts(names[3], exempt=1)
    assert await world.pods() == {"ignore"}
    await world.told("evictthendelete", "EvictionEscalated", names[1])
    assert await process.metric("taintkeeper_permission_missing") == 0
    assert " 403" not in process.output()
