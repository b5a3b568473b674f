"""Permissions that are taken away while the operator runs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from testbed import Cluster
from testbed.client import Kube, Object, until
from testbed.embedded import EmbeddedCluster
from testbed.embedded.access import Denial
from tests.cluster.conftest import Start
from tests.cluster.world import World, taint

Switch = Callable[[bool], Awaitable[None]]
NAME = "taintkeeper-tried"
MANIFEST = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"
MISSING = "permission is missing to create pods/eviction"


def rules(*, evicting: bool) -> list[Object]:
    """Return the rules of the role that the operator is installed with, with or without the one to evict."""
    (role,) = (each for each in yaml.safe_load_all(MANIFEST.read_text()) if each["kind"] == "ClusterRole")
    return [rule for rule in role["rules"] if evicting or rule["resources"] != ["pods/eviction"]]


async def bind(kube: Kube, world: World) -> None:
    """Give the account the role."""
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": world.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    await kube.create("clusterrolebindings", {"metadata": {"name": NAME}, "roleRef": role, "subjects": [subject]})


@pytest.fixture
async def granted(cluster: Cluster, kube: Kube, world: World) -> AsyncIterator[tuple[Path, Switch]]:
    """A kubeconfig of an account with all permissions, and what gives or takes the one to evict."""
    if isinstance(cluster, EmbeddedCluster):
        embedded = cluster
        denial = Denial(verb="create", resource="pods", subresource="eviction")

        async def deny(allowed: bool) -> None:
            (embedded.access.allow if allowed else embedded.access.deny)(denial)

        yield cluster.kubeconfig_for(world.namespace, NAME), deny
        return

    async def change_role(allowed: bool) -> None:
        await kube.patch("clusterroles", "", NAME, {"rules": rules(evicting=allowed)})

    await kube.create("serviceaccounts", {"metadata": {"name": NAME, "namespace": world.namespace}})
    await kube.create("clusterroles", {"metadata": {"name": NAME}, "rules": rules(evicting=True)})
    await bind(kube, world)
    yield cluster.kubeconfig_for(world.namespace, NAME), change_role
    await kube.delete("clusterrolebindings", "", NAME)
    await kube.delete("clusterroles", "", NAME)


@pytest.mark.reported("planetlabs/draino#104")
async def test_a_permission_that_vanishes_is_named_and_its_work_goes_on_when_it_is_back(
    world: World, start: Start, granted: tuple[Path, Switch]
) -> None:
    kubeconfig, allow = granted
    process = await (await start("--controllers=taint-eviction", kubeconfig=kubeconfig)).until_ready()
    node = await world.node()
    await world.pod(node, "leaving")
    await allow(False)
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: f"{MISSING}; trying again" in process.output())
    assert await process.probe("readyz") == 503
    assert MISSING in await process.probe_text("readyz")
    assert await process.probe("healthz") == 200
    assert await process.metric("taintkeeper_permission_missing", resource="pods/eviction") == 1
    assert await world.pods() == {"leaving"}
    await allow(True)
    await world.gone("leaving", seconds=70.0)
    await process.until_ready()
    assert await process.metric("taintkeeper_permission_missing") == 0
    assert "all permissions are there again" in process.output()


@pytest.mark.only_on("real")
async def test_a_binding_that_is_deleted_is_noticed(
    world: World, start: Start, kube: Kube, granted: tuple[Path, Switch]
) -> None:
    process = await (await start("--controllers=taint-eviction", kubeconfig=granted[0])).until_ready()
    node = await world.node()
    await world.pod(node, "leaving")
    await kube.delete("clusterrolebindings", "", NAME)
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: "permission is missing to create events, create pods/eviction" in process.output(), 30.0)
    assert await process.probe("readyz") == 503
    assert await world.pods() == {"leaving"}
    await bind(kube, world)
    await world.gone("leaving", seconds=70.0)
