"""Everybody who taints and evicts at work in one real cluster, and what they write."""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from demo.operator_process import OperatorProcess
from testbed.client import Kube, Object, until
from testbed.real import RealCluster

GRACE_SECONDS = 4
RENEWAL_SECONDS = 1
FLAGS = {
    "kube-controller-manager": [f"--node-monitor-grace-period={GRACE_SECONDS}s", "--node-monitor-period=1s"],
    "kwok": [f"--node-lease-duration-seconds={4 * RENEWAL_SECONDS}"],
}
OURS = (f"--node-monitor-grace-period={GRACE_SECONDS}s", "--verbose")
NODES = 4
PATCHES = re.compile(
    r'^apiserver_request_total\{(?=[^}]*resource="nodes")(?=[^}]*verb="(?:PATCH|PUT)").*\} (\S+)$', re.MULTILINE
)
"""The API server's own count of writes of nodes and their status, by whomever."""

Say = Callable[[str], None]
Act = Callable[[RealCluster, Kube], Awaitable[None]]


@dataclass(slots=True)
class Findings:
    """What came of it.

    ``changes`` counts how often the taints of each node changed, ``late`` how often in the last scene, in which nothing
    happens that would be a reason. ``writes`` are those of nodes that the API server counted.
    """

    changes: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    evicted_by: Counter[str] = field(default_factory=Counter)
    told: set[str] = field(default_factory=set)
    metrics: str = ""
    log: list[str] = field(default_factory=list)


async def contest(seconds: float, say: Say) -> Findings:
    """Let all of them run for so long; what happens meanwhile is :data:`SCENES`, all equally long.

    Raises:
        BuildError: the real cluster is not built.
        StartError: it does not start.
        TimeoutError: the operator does not become ready.
    """
    with RealCluster(controllers_off=(), flags=FLAGS) as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.add_nodes(NODES)
        async with Kube(cluster.kubeconfig) as kube:
            await _fill(kube)
            log = Path(folder) / "operator.log"
            async with OperatorProcess(cluster.kubeconfig, OURS, log) as operator:
                await until(operator.is_ready, 30.0)
                found = await _watch_them(cluster, kube, seconds, say)
                found.metrics = await operator.metrics()
            found.log = log.read_text().splitlines()
            return found


async def _watch_them(cluster: RealCluster, kube: Kube, seconds: float, say: Say) -> Findings:
    found = Findings()
    before = await _writes(kube)
    async with _counted(kube, found):
        for scene, act in SCENES.items():
            say(scene)
            calm = Counter(found.changes)
            await act(cluster, kube)
            await asyncio.sleep(seconds / len(SCENES))
        found.late = found.changes - calm
    found.writes = await _writes(kube) - before
    for event in await kube.list("events"):
        _sort(event, found)
    return found


def _sort(event: Object, found: Findings) -> None:
    if event["reason"] == "RivalController":
        found.told.add(event["message"])
    if event["reason"] == "TaintManagerEviction" and event["message"].startswith("Marking"):
        found.evicted_by[event["source"]["component"]] += 1


async def _fill(kube: Kube) -> None:
    for number, node in enumerate(_names() * 2):
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        await kube.create("pods", {"metadata": {"name": f"pod-{number}", "namespace": "default"}, "spec": spec})
    # Whoever counts for this one says so in the end, however fast the others evict.
    patient = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    counting = {"nodeName": "node-3", "containers": [{"name": "main", "image": "none"}], "tolerations": [patient]}
    await kube.create("pods", {"metadata": {"name": "counting", "namespace": "default"}, "spec": counting})


async def _some_fail(cluster: RealCluster, kube: Kube) -> None:
    await asyncio.to_thread(cluster.add_nodes, 1, prefix="late")
    cluster.silence("node-1")
    await _report_pressure(kube, "True")
    await kube.patch("nodes", "", "node-3", {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}})


async def _some_recover(cluster: RealCluster, kube: Kube) -> None:
    cluster.wake("node-1")
    await _report_pressure(kube, "False")
    await kube.patch("nodes", "", "node-3", {"spec": {"taints": None}})


async def _all_fail(cluster: RealCluster, _: Kube) -> None:
    for node in (*_names(), "late-1"):
        cluster.silence(node)


async def _all_recover(cluster: RealCluster, _: Kube) -> None:
    for node in (*_names(), "late-1"):
        cluster.wake(node)


async def _nothing(*_: object) -> None:
    """Let everybody come to rest."""


SCENES: dict[str, Act] = {
    "late-1 joins, node-1 falls silent, node-2 is short of disk space, node-3 is tainted by hand": _some_fail,
    "they are well again": _some_recover,
    "all nodes fall silent": _all_fail,
    "all are back": _all_recover,
    "nothing happens any more": _nothing,
}


async def _report_pressure(kube: Kube, status: str) -> None:
    await kube.patch_status("nodes", "", "node-2", {"conditions": [{"type": "DiskPressure", "status": status}]})


def _names() -> list[str]:
    return [f"node-{number + 1}" for number in range(NODES)]


async def _writes(kube: Kube) -> int:
    answer = await kube.request("GET", "/metrics")
    return sum(int(float(value)) for value in PATCHES.findall(answer.body))


@asynccontextmanager
async def _counted(kube: Kube, found: Findings) -> AsyncIterator[None]:
    """Count the changes of taints while the block runs."""
    before = {node["metadata"]["name"]: _taints(node) for node in await kube.list("nodes")}

    async def count() -> None:
        async with kube.watch("/api/v1/nodes") as events:
            async for event in events:
                node = event["object"]
                name, taints = node["metadata"]["name"], _taints(node)
                if before.get(name) != taints:
                    before[name] = taints
                    found.changes[name] += 1

    task = asyncio.create_task(count())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _taints(node: Object) -> frozenset[str]:
    return frozenset(f"{each['key']}:{each['effect']}" for each in node["spec"].get("taints", []))
