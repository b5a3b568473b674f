"""All pods of many nodes have to leave at once: how long does it take, and what does it cost?

    make real-cluster-build
    PYTHONPATH=hack .venv/bin/python -m bench.wave --pods 600 --nodes 60

One evictor after another does the same work on a fresh control plane of its own: Taintkeeper,
kube-controller-manager without its limit of 20 requests a second, and with it (--throttled:
4,000 pods take 10 minutes more). Before them, the evictions alone are sent as fast as the server takes them.
With --budgets a tenth of the pods stand behind budgets that never allow anything. kube-controller-manager asks
no budgets: its time is that of all pods, the others' that of the pods that may go.

4,000 pods on 200 nodes take about 2 minutes.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from statistics import median

from bench import command
from bench.command import say
from bench.evictors import THROTTLED, UNTHROTTLED, Evictor, kcm, let_settle, taintkeeper
from bench.load import NAMESPACE, create, in_parallel, make_namespace, small_node, small_pod
from bench.report import Report, Row
from bench.usage import cpu_seconds, peak_megabytes
from bench.watching import watched_pods
from testbed.client import Kube, Object, until
from testbed.real import RealCluster

TAINT = {"key": "wave", "value": "true", "effect": "NoExecute"}
BARE = "evictions alone"
AT_ONCE = 16
SETTLE_SECONDS = 5.0
PATIENCE_SECONDS = 1800.0
BUDGETS = 10


def main() -> int:
    """Measure everybody in turn and print a table."""
    parser = command.parser(__doc__ or "")
    parser.add_argument("--pods", type=int, default=4_000, help="(%(default)s)")
    parser.add_argument("--nodes", type=int, default=200, help="(%(default)s)")
    parser.add_argument("--budgets", action="store_true", help="a tenth of the pods stand behind closed budgets")
    parser.add_argument("--throttled", action="store_true", help="kube-controller-manager with its own limits as well")
    return command.run(_measure_all, parser.parse_args())


async def _measure_all(options: argparse.Namespace) -> Report:
    held = options.pods // 10 if options.budgets else 0
    title = f"{options.pods} pods on {options.nodes} nodes have to leave at once"
    report = Report(f"{title}, {held} of them held by budgets" if held else title)
    report.rows.append(await _bare(options, held))
    everybody: list[Callable[[], AbstractAsyncContextManager[Evictor]]] = [taintkeeper, partial(kcm, UNTHROTTLED)]
    if options.throttled:
        everybody.append(partial(kcm, THROTTLED))
    for evictor in everybody:
        report.rows.append(await _measure(evictor, options, held))
    report.notes.append("memory and CPU of kcm are those of all its controllers")
    return report


async def _measure(
    evictor: Callable[[], AbstractAsyncContextManager[Evictor]], options: argparse.Namespace, held: int
) -> Row:
    async with evictor() as at_work, Kube(at_work.cluster.kubeconfig) as kube:
        say(at_work.name)
        await _fill(kube, options, held)
        await let_settle(SETTLE_SECONDS)
        leaving = options.pods - held if at_work.name not in (UNTHROTTLED, THROTTLED) else options.pods
        pid, times = at_work.pid, list[float]()
        cpu = cpu_seconds(pid)
        async with watched_pods(kube, lambda _, at: times.append(at)):
            begun = time.monotonic()
            await in_parallel([partial(_taint, kube, number) for number in range(options.nodes)], AT_ONCE)
            await until(lambda: len(times) >= leaving, PATIENCE_SECONDS)
        return Row(
            at_work.name, _numbers(begun, times) | {"CPU, s": cpu_seconds(pid) - cpu, "peak, MB": peak_megabytes(pid)}
        )


async def _bare(options: argparse.Namespace, held: int) -> Row:
    """Send the evictions alone: what the server can do, if it is asked for nothing else."""
    with RealCluster(scheduler=False, kubelets=False) as cluster:
        async with Kube(cluster.kubeconfig) as kube:
            say(BARE)
            await _fill(kube, options, held)
            await let_settle(SETTLE_SECONDS)
            times: list[float] = []
            async with watched_pods(kube, lambda _, at: times.append(at)):
                begun = time.monotonic()
                names = [f"pod-{number}" for number in range(held, options.pods)]
                await in_parallel([partial(kube.evict, NAMESPACE, name) for name in names], AT_ONCE)
                await until(lambda: len(times) >= len(names), PATIENCE_SECONDS)
            return Row(BARE, _numbers(begun, times))


def _numbers(begun: float, times: list[float]) -> dict[str, float]:
    last = max(times) - begun
    return {"half gone after, s": median(times) - begun, "last gone after, s": last, "pods a second": len(times) / last}


async def _fill(kube: Kube, options: argparse.Namespace, held: int) -> None:
    await make_namespace(kube)
    names = [f"node-{number}" for number in range(options.nodes)]
    await create(kube, "nodes", (small_node(name) for name in names), "nodes")
    for number in range(BUDGETS if held else 0):
        await kube.create("poddisruptionbudgets", _budget(number, options.pods))
    rate = await create(kube, "pods", (_pod(n, names, held) for n in range(options.pods)), "pods")
    say(f"  filled, {rate:.0f} pods a second")


def _pod(number: int, nodes: list[str], held: int) -> Object:
    pod = small_pod(f"pod-{number}", nodes[number % len(nodes)])
    if number < held:
        pod["metadata"]["labels"] = {"held": str(number % BUDGETS)}
    return pod


def _budget(number: int, least: int) -> Object:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"held": str(number)}}}
    return {"metadata": {"name": f"budget-{number}", "namespace": NAMESPACE}, "spec": spec}


async def _taint(kube: Kube, number: int) -> Object:
    return await kube.patch("nodes", "", f"node-{number}", {"spec": {"taints": [TAINT]}})


if __name__ == "__main__":
    sys.exit(main())
