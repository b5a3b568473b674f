"""A large cluster: how long until all of it is known, how much memory does that take, what does it cost to keep up?

    make real-cluster-build
    PYTHONPATH=hack .venv/bin/python -m bench.scale --nodes 500 --pods 5000 --seconds 20

One control plane is filled with nodes of 10 KB (50 images, conditions), their Leases, and pods of 4 KB; then one
evictor after the other is started beside it. Ready is Taintkeeper when its probe says so, kube-controller-manager when
its log says of the last of its caches that it is synced. Then pods change and Leases are renewed, so many a second.

Reaction is how long after the API server's answer a new pod is gone that was made on a tainted node: that takes a watch
of pods that is up to date, a decision, and one to three requests. Probe is how long Taintkeeper's /healthz takes to
answer, while it starts and while it keeps up: for so long its event loop was busy with something else, or the machine.

5,000 nodes and 150,000 pods take about 7 minutes and 9 GB of memory, most of it the API server's.
"""

import argparse
import asyncio
import sys
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from bench import command
from bench.command import say
from bench.evictors import Operator, Program, let_settle, take_over
from bench.load import NAMESPACE, NOT_TAINTED, create, large_node, large_pod, lease, make_namespace, small_pod
from bench.probing import probed
from bench.report import Report, Row, quantiles
from bench.traffic import traffic
from bench.usage import megabytes, peak_megabytes, watched
from bench.watching import watched_pods
from testbed.client import Kube, Object, until
from testbed.real import RealCluster

ZONES = 3
APPLICATIONS = 1_000
PATIENT = "--node-monitor-grace-period=3600s"
"""Nobody renews Leases while there is no traffic, and that is not what is measured."""
GONE_SECONDS = 300.0
SETTLE_SECONDS = 20.0
IDLE_SECONDS = 5.0
MARKS = "marks"
MARK_SECONDS = 0.5
EDGE_SECONDS = 2.0
"""The traffic begins and ends a little before and after what is measured."""
TAINT = {"key": "mark", "effect": "NoExecute"}


def main() -> int:
    """Measure both in turn and print a table."""
    parser = command.parser(__doc__ or "")
    add_sizes(parser)
    parser.add_argument("--nodes", type=int, default=5_000, help="(%(default)s)")
    parser.add_argument("--pods", type=int, default=150_000, help="(%(default)s)")
    return command.run(measure, parser.parse_args())


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add what says how much happens."""
    parser.add_argument("--changes", type=int, default=500, help="pods that change in a second (%(default)s)")
    parser.add_argument("--renewals", type=int, default=500, help="Leases that are renewed in a second (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="for so long (%(default)s)")


async def measure(options: argparse.Namespace) -> Report:
    """Return what was measured of both."""
    report = Report(
        f"{options.nodes} nodes and {options.pods} pods; then {options.changes} changes of pods and "
        f"{options.renewals} renewals of Leases a second for {options.seconds} s"
    )
    report.notes.append("memory and CPU of kcm are those of all its controllers")
    with RealCluster(scheduler=False, kubelets=False, controllers_off=(), flags=NOT_TAINTED) as cluster:
        programs = (Operator(cluster.kubeconfig, PATIENT), await take_over(cluster, PATIENT))
        async with Kube(cluster.kubeconfig) as kube:
            idle = [await _idle(program) for program in programs]
            await _fill(kube, options)
            for program, at_first in zip(programs, idle, strict=True):
                say(program.name)
                numbers = await _measure(program, cluster, kube, options)
                grown = 1_000_000.0 * (numbers["settled, MB"] - at_first) / options.pods
                report.rows.append(Row(program.name, {"empty cluster, MB": at_first, **numbers, "a pod, bytes": grown}))
    return report


async def _idle(program: Program) -> float:
    """Return the memory that it takes in MB where there is nothing."""
    program.begin()
    try:
        await program.wait_until_ready()
        await asyncio.sleep(IDLE_SECONDS)
        return megabytes(program.pid)
    finally:
        program.end()


async def _measure(program: Program, cluster: RealCluster, kube: Kube, options: argparse.Namespace) -> dict[str, float]:
    begun = time.monotonic()
    program.begin()
    try:
        async with probes_of(program) as probes:
            await program.wait_until_ready()
        numbers = {"ready after, s": program.ready_at - begun, **quantiles("probe while starting", probes)}
        say(f"  ready after {numbers['ready after, s']:.1f} s")
        await let_settle(SETTLE_SECONDS)
        numbers |= {"peak, MB": peak_megabytes(program.pid), "settled, MB": megabytes(program.pid)}
        return numbers | await _keep_up(program, cluster, kube, options)
    finally:
        program.end()


async def _keep_up(program: Program, cluster: RealCluster, kube: Kube, options: argparse.Namespace) -> dict[str, float]:
    marks = Marks()
    async with (
        traffic(cluster.kubeconfig, options) as done,
        probes_of(program) as probes,
        watched(program.pid) as use,
        watched_pods(kube, marks.gone, MARKS),
    ):
        say(f"  pods change and Leases are renewed for {options.seconds} s")
        await marks.make(kube, program.name, options.seconds - EDGE_SECONDS)
    rates = {"changes a second": done.changes / done.seconds, "renewals a second": done.renewals / done.seconds}
    use_of_it = {"CPU, % of a core": 100.0 * use.cpu, "peak with traffic, MB": use.peak}
    return rates | use_of_it | quantiles("reaction", marks.reactions()) | quantiles("probe", probes)


def probes_of(program: Program) -> AbstractAsyncContextManager[list[float]]:
    """Ask the program's probe while the block runs, if it has one; see :func:`bench.probing.probed`."""
    return probed(program.probe) if program.probe else nullcontext([])


@dataclass(slots=True)
class Marks:
    """New pods on a tainted node: when each was made, and when it was gone; on the monotonic clock, in seconds."""

    node: str = MARKS
    made: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    async def make(self, kube: Kube, name: str, seconds: float) -> None:
        """Make one after another for so many seconds, then wait until all are gone."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pod = f"{name.lower()}-{len(self.made)}"
            await kube.create("pods", small_pod(pod, self.node, MARKS))
            self.made[pod] = time.monotonic()
            await asyncio.sleep(MARK_SECONDS)
        await until(lambda: len(self.ended) == len(self.made), GONE_SECONDS)

    def gone(self, pod: Object, at: float) -> None:
        """Note that one is gone."""
        self.ended[pod["metadata"]["name"]] = at

    def reactions(self) -> list[float]:
        """Return how long each was there."""
        return [self.ended[pod] - at for pod, at in self.made.items()]


async def _fill(kube: Kube, options: argparse.Namespace) -> None:
    for namespace in (NAMESPACE, MARKS):
        await make_namespace(kube, namespace)
    names = [f"node-{number}" for number in range(options.nodes)]
    say("filling the cluster")
    await create(kube, "nodes", (large_node(name, _zone(at)) for at, name in enumerate(names)), "nodes")
    await create(kube, "leases", map(lease, names), "Leases")
    pods = (large_pod(f"pod-{n}", names[n % len(names)], n % APPLICATIONS) for n in range(options.pods))
    rate = await create(kube, "pods", pods, "pods")
    await kube.create("nodes", {**large_node(MARKS), "spec": {"taints": [TAINT]}})
    await kube.create("leases", lease(MARKS))
    say(f"  filled, {rate:.0f} pods a second")


def _zone(number: int) -> str:
    return f"zone-{number % ZONES + 1}"


if __name__ == "__main__":
    sys.exit(main())
