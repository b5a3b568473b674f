"""The command and its twins: flags, permissions, dry runs, Kopf's own command."""

import sys
from pathlib import Path

import pytest

from testbed import Cluster
from testbed.client import Kube, until
from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import RUN, OperatorProcess
from tests.cluster.world import NOT_READY, World, taint, toleration

HANDLERS = Path(__file__).parents[2] / "operator" / "taintkeeper" / "handlers.py"
KOPF = (sys.executable, "-m", "kopf", "run", "--all-namespaces", "--quiet")
COMMANDS = {
    "taintkeeper run": RUN,
    "kopf run FILE": (*KOPF, str(HANDLERS)),
    "kopf run -m MODULE": (*KOPF, "-m", "taintkeeper.handlers"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
async def test_every_way_to_run_it_does_the_same(world: World, start: Start, command: tuple[str, ...]) -> None:
    process = await (await start(command=command)).until_ready()
    node = await world.node()
    await world.pod(node, "leaving")
    await world.add_taint(node, taint("maintenance"))
    await world.gone("leaving")
    await world.report(node, DiskPressure="True")
    await world.told(node, "TaintAdded", "condition DiskPressure is True")
    assert await process.stop() == 0


@pytest.mark.reported("nolar/kopf#833")
async def test_nothing_is_ever_written_to_pods_or_left_on_nodes(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "counting", toleration("maintenance", 3600))
    await world.pod(node, "leaving")
    await world.add_taint(node, taint("maintenance"))
    await world.gone("leaving")
    pod = await world.kube.get("pods", world.namespace, "counting")
    assert "annotations" not in pod["metadata"]
    assert "finalizers" not in pod["metadata"]
    await world.set_taints(node)
    await world.told("counting", "TaintManagerEviction", "Cancelling")
    await until(lambda: _bare(world, node))
    assert "finalizers" not in (await world.kube.get("nodes", "", node))["metadata"]


async def _bare(world: World, node: str) -> bool:
    annotations = (await world.kube.get("nodes", "", node))["metadata"].get("annotations", {})
    return not any("kopf" in name or "taintkeeper" in name for name in annotations)


async def test_a_dry_run_decides_and_reports_but_writes_nothing(world: World, start: Start) -> None:
    process = await (await start("--dry-run", *QUICK)).until_ready()
    node, *_ = await world.nodes(4)
    await world.pod(node, "staying", {**toleration(NOT_READY), "tolerationSeconds": 0})
    before = await world.kube.get("nodes", "", node)
    await world.report(node, Ready="False")
    await until(lambda: f"pod {world.namespace}/staying on node {node} evicted" in process.output())
    assert f"{NOT_READY}:NoExecute added" in process.output()
    assert await world.pods() == {"staying"}
    assert (await world.kube.get("nodes", "", node))["spec"] == before["spec"]
    assert await world.events(node) == []
    assert await world.events("staying") == []


async def test_one_controller_can_be_left_out(world: World, start: Start) -> None:
    await (await start("--controllers=*,-node-taint")).until_ready()
    node = await world.node()
    await world.report(node, DiskPressure="True")
    await world.pod(node, "leaving")
    await world.add_taint(node, taint("maintenance"))
    await world.gone("leaving")
    assert "node.kubernetes.io/disk-pressure:NoSchedule" not in await world.taint_ids(node)


@pytest.mark.reported("planetlabs/draino#104")
@pytest.mark.only_on("real")
async def test_a_missing_permission_is_named_and_keeps_it_from_being_ready(
    world: World, start: Start, cluster: Cluster, kube: Kube
) -> None:
    await kube.create("serviceaccounts", {"metadata": {"name": "powerless", "namespace": world.namespace}})
    process = await start(kubeconfig=cluster.kubeconfig_for(world.namespace, "powerless"))
    await until(lambda: "create pods/eviction" in process.output())
    assert await process.probe("readyz") == 503
    assert "create pods/eviction" in await process.probe_text("readyz")
    assert await process.probe("healthz") == 200


async def test_a_server_that_cannot_be_reached_is_named_and_waited_for(start: Start, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "nowhere"
    kubeconfig.write_text(
        """
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {token: none}}]
"""
    )
    process = await start(kubeconfig=kubeconfig)
    await until(lambda: "the API server at http://127.0.0.1:9 cannot be used" in process.output())
    assert await process.probe("healthz") == 200
    assert await process.probe("readyz") == 503
