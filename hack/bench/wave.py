"""All pods of many nodes have to leave at once: how long does it take, and what does it cost?

    make real-cluster-build
    PYTHONPATH=hack .venv/bin/python -m bench.wave --pods 600 --nodes 60

One evictor after another does the same work on a fresh control plane of its own: Taintkeeper, kube-controller-manager
with its defaults, and kube-controller-manager without its limit of 20 requests a second.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from testbed.client import Kube, Object
from testbed.real import RealCluster

NAMESPACE = "wave"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
TAINT = {"key": "wave", "value": "true", "effect": "NoExecute"}
CREATORS = 16
PATIENCE_SECONDS = 1800.0
DEFAULTS = {"kube-controller-manager": ["--kube-api-qps=20", "--kube-api-burst=30"]}
UNTHROTTLED = {"kube-controller-manager": ["--kube-api-qps=20000", "--kube-api-burst=20000"]}


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured. Times in seconds since the first taint, memory in MB, CPU in seconds."""

    name: str
    half: float
    last: float
    memory: float
    cpu: float

    def __str__(self) -> str:
        times = f"half gone after {self.half:7.1f} s, last after {self.last:7.1f} s"
        return f"{self.name:16} {times}, {self.memory:5.0f} MB at most, {self.cpu:5.1f} s CPU"


def main() -> None:
    """Measure every evictor in turn and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=600)
    parser.add_argument("--nodes", type=int, default=60)
    choice = parser.parse_args()
    for measure in (_taintkeeper, _kcm, _kcm_unthrottled):
        print(asyncio.run(measure(choice.pods, choice.nodes)), flush=True)


async def _taintkeeper(pods: int, nodes: int) -> Result:
    with RealCluster(scheduler=False, kubelets=False) as cluster, _operator(cluster) as operator:
        return await _measure("Taintkeeper", cluster, pods, nodes, lambda: operator.pid)


async def _kcm(pods: int, nodes: int) -> Result:
    return await _kcm_with(DEFAULTS, "kcm", pods, nodes)


async def _kcm_unthrottled(pods: int, nodes: int) -> Result:
    return await _kcm_with(UNTHROTTLED, "kcm, no limits", pods, nodes)


async def _kcm_with(flags: dict[str, list[str]], name: str, pods: int, nodes: int) -> Result:
    off = ("node-lifecycle-controller",)
    with RealCluster(controllers_off=off, scheduler=False, kubelets=False, flags=flags) as cluster:
        return await _measure(name, cluster, pods, nodes, lambda: cluster.pids["kube-controller-manager"])


@contextmanager
def _operator(cluster: RealCluster) -> Iterator["subprocess.Popen[bytes]"]:
    flags = ["--controllers=taint-eviction", "--metrics-bind-address=0", "--health-probe-bind-address=0"]
    command = [sys.executable, "-m", "taintkeeper", "run", f"--kubeconfig={cluster.kubeconfig}", *flags]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


async def _measure(name: str, cluster: RealCluster, pods: int, nodes: int, pid: Callable[[], int]) -> Result:
    async with Kube(cluster.kubeconfig) as kube:
        await _fill(kube, pods, nodes)
        # Whoever evicts has to have seen everything before the clock starts.
        await asyncio.sleep(5.0)
        cpu_before = _cpu_seconds(pid())
        begun = time.monotonic()
        gone = asyncio.create_task(_watch_them_go(kube, pods))
        await _in_parallel([partial(_taint, kube, number) for number in range(nodes)])
        times = [at - begun for at in await gone]
        return Result(name, median(times), max(times), _peak_megabytes(pid()), _cpu_seconds(pid()) - cpu_before)


async def _fill(kube: Kube, pods: int, nodes: int) -> None:
    await kube.create("namespaces", {"metadata": {"name": NAMESPACE}})
    names = [f"node-{number}" for number in range(nodes)]
    await _in_parallel([partial(kube.create, "nodes", {"metadata": {"name": name}}) for name in names])
    await _in_parallel([partial(kube.create, "pods", _pod(n, names[n % nodes])) for n in range(pods)])


def _pod(number: int, node: str) -> Object:
    container = {"name": "main", "image": "none"}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"metadata": {"name": f"pod-{number}", "namespace": NAMESPACE}, "spec": spec}


async def _taint(kube: Kube, number: int) -> Object:
    return await kube.patch("nodes", "", f"node-{number}", {"spec": {"taints": [TAINT]}})


async def _in_parallel(work: list[Callable[[], Awaitable[object]]]) -> None:
    places = asyncio.Semaphore(CREATORS)

    async def one(call: Callable[[], Awaitable[object]]) -> None:
        async with places:
            await call()

    await asyncio.gather(*(one(call) for call in work))


async def _watch_them_go(kube: Kube, count: int) -> list[float]:
    times: list[float] = []
    answer = await kube.request("GET", PODS, params={"limit": "1"})
    version = answer.body["metadata"]["resourceVersion"]
    async with asyncio.timeout(PATIENCE_SECONDS):
        # The server may end a watch at any time: it goes on from where it was.
        while len(times) < count:
            async with kube.watch(PODS, resourceVersion=version) as events:
                async for event in events:
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] == "DELETED":
                        times.append(time.monotonic())
                    if len(times) == count:
                        break
    return times


def _peak_megabytes(pid: int) -> float:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1024


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    main()
