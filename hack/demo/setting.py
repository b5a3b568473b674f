"""What the story plays in: nodes, workloads and single pods."""

import asyncio
from collections.abc import Callable

from demo import manifests
from demo.reading import app_of, is_ready, name_of, node_of
from demo.stage import Stage
from demo.timeline import Tone
from testbed.client import ApiError, Object

START_SECONDS = 20.0
UNTAINT_SECONDS = 5.0
PULL_SECONDS = 90.0
"""How long pods may take to run on nodes that must fetch their image first."""
ACCOUNT_SECONDS = 10.0


def patience(stage: Stage) -> float:
    """Return how long pods may take to run."""
    return START_SECONDS if stage.bed.is_ours else PULL_SECONDS


async def build_cluster(stage: Stage) -> None:
    """Make the nodes of a cluster of our own and wait until their kubelets report them ready."""
    made = manifests.nodes()
    for node in made:
        await stage.kube.create("nodes", node)
    wanted = len(made)
    nodes = stage.record.nodes
    await stage.comes_true(lambda: sum(map(is_ready, nodes.values())) == wanted, START_SECONDS)
    ready = sum(map(is_ready, nodes.values()))
    stage.require("all nodes are ready", holds=ready == wanted, expected=f"{wanted} nodes", seen=f"{ready} nodes")
    zones: dict[str, list[str]] = {}
    for node in made:
        zones.setdefault(node["metadata"]["labels"]["topology.kubernetes.io/zone"], []).append(name_of(node))
    where = "; ".join(f"{', '.join(names)} in {zone}" for zone, names in zones.items())
    stage.timeline.happened("nodes", f"{where}; all are Ready, none can be used yet", Tone.BY_HAND)


async def nodes_become_usable(stage: Stage) -> None:
    """Wait until the operator has seen that the new nodes are ready."""
    freed = await stage.comes_true(lambda: not any(map(stage.is_tainted, stage.nodes)), UNTAINT_SECONDS)
    tainted = [name for name in stage.nodes if stage.is_tainted(name)]
    stage.require(
        "new nodes lost the API server's not-ready taint once they were Ready",
        holds=freed,
        expected=f"no tainted node within {UNTAINT_SECONDS:g} s",
        seen=f"still tainted: {', '.join(tainted)}" if tainted else "no tainted node",
    )


async def deploy(stage: Stage) -> None:
    """Make the namespace and the workloads in it."""
    await stage.kube.create("namespaces", manifests.namespace())
    for resource, body in manifests.workloads(len(stage.nodes)):
        await stage.kube.create(resource, body)


async def workloads_run(stage: Stage) -> None:
    """Wait until every workload is complete."""
    wanted = {"web": manifests.web_replicas(len(stage.nodes)), "db": manifests.DB_REPLICAS, "agent": len(stage.nodes)}
    await stage.comes_true(
        lambda: all(len(stage.running(app)) == count for app, count in wanted.items()), patience(stage)
    )
    running = {app: len(stage.running(app)) for app in wanted}
    stage.require("the workloads run", holds=running == wanted, expected=_counts(wanted), seen=_counts(running))
    stage.timeline.happened("workloads", f"all pods run: {_counts(wanted)}", Tone.GOOD)


async def add_pods(stage: Stage, *makers: Callable[[str], Object], node: str) -> None:
    """Make single pods on a node and wait until they run and every budget has been counted."""
    made = [await _create_pod(stage, make(node)) for make in makers]
    apps = [app_of(pod) for pod in made]
    await stage.comes_true(
        lambda: all(any(node_of(p) == node for p in stage.running(app)) for app in apps), patience(stage)
    )
    missing = [app for app in apps if not any(node_of(pod) == node for pod in stage.running(app))]
    claim = f"{', '.join(map(name_of, made))} run on {node}"
    stage.require(
        claim, holds=not missing, expected="all run", seen=f"missing: {', '.join(missing)}" if missing else "all run"
    )


async def _create_pod(stage: Stage, body: Object) -> Object:
    deadline = stage.clock.now() + ACCOUNT_SECONDS
    while True:
        try:
            return await stage.kube.create("pods", body)
        except ApiError as error:
            # A new namespace has no service account for a moment, and without it no pod can be made by hand.
            if error.status != 403 or stage.clock.now() > deadline:
                raise
        await asyncio.sleep(0.2)


def _counts(by_app: dict[str, int]) -> str:
    return ", ".join(f"{app} {count}" for app, count in by_app.items())
