"""A whole zone falls silent: when has it the right taints, what does that cost, and what becomes of the rest meanwhile?

    make real-cluster-build
    PYTHONPATH=hack .venv/bin/python -m bench.storm --nodes 300 --pods 900 --grace 20 --seconds 30

Each evictor works on a control plane of its own, which is filled before it starts: nodes of 10 KB with their Leases,
and pods that are ready. For a while all Leases are renewed, as kubelets do it, then no longer those of a third of the
nodes, which are a zone. After the grace period each of them has to be tainted unreachable: NoSchedule at once,
NoExecute under the rates, and its pods are to be marked as not ready. Times count from when the zone falls silent.

Requests are those about nodes, Leases, pods and events that the API server has answered until the end, but for the
bench's own, watches and lists, divided by the silent nodes; what is more than half a percent of them is told apart.
Reaction and probe are those of bench.scale, of a node in another zone: two new pods a second, whose evictions are among
the requests.

5,000 nodes and 15,000 pods take about 8 minutes.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from bench import command
from bench.command import say
from bench.evictors import LIMITS, UNTHROTTLED, Operator, Program, take_over
from bench.load import NAMESPACE, NOT_TAINTED, create, in_parallel, large_node, large_pod, lease, make_namespace
from bench.report import Report, Row, quantiles
from bench.scale import APPLICATIONS, MARKS, TAINT, Marks, probes_of
from bench.traffic import traffic
from bench.usage import cpu_seconds, peak_megabytes
from bench.watching import watched, watched_pods
from testbed.client import Kube, Object, path_to
from testbed.real import RealCluster

UNREACHABLE = "node.kubernetes.io/unreachable"
SILENT_ZONE = "zone-3"
RENEW_SECONDS = 10
"""How often a kubelet renews its Lease."""
WARM_SECONDS = 20
RATE = 0.1
"""How many nodes a second may be tainted NoExecute, in a zone that has failed altogether as in one that is well."""
COUNTED = re.compile(r"apiserver_request_total\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
RESOURCES = frozenset({"nodes", "leases", "pods", "events"})
UNCOUNTED = frozenset({"WATCH", "LIST"})
TOLD_APART = 0.005


@dataclass(slots=True)
class Course:
    """When each silent node was tainted, and each of its pods was marked; on the monotonic clock, in seconds."""

    silent: frozenset[str]
    tainted: dict[str, dict[str, float]] = field(default_factory=lambda: {"NoSchedule": {}, "NoExecute": {}})
    marked: dict[str, float] = field(default_factory=dict)

    def node(self, event: Object, at: float) -> None:
        """Take in an event of a node."""
        name = event["object"]["metadata"]["name"]
        for taint in event["object"]["spec"].get("taints", ()):
            if name in self.silent and taint["key"] == UNREACHABLE:
                self.tainted[taint["effect"]].setdefault(name, at)

    def pod(self, event: Object, at: float) -> None:
        """Take in an event of a pod."""
        conditions = {each["type"]: each["status"] for each in event["object"]["status"].get("conditions", ())}
        if event["object"]["spec"]["nodeName"] in self.silent and conditions.get("Ready") == "False":
            self.marked.setdefault(event["object"]["metadata"]["name"], at)

    def numbers(self, begun: float) -> dict[str, float]:
        """Return how long it took, and how far it came."""
        numbers: dict[str, float] = {}
        for what, times in (("NoSchedule", self.tainted["NoSchedule"]), ("pods not ready", self.marked)):
            ordered = sorted(at - begun for at in times.values())
            for which, place in {"first": 0, "half": len(ordered) // 2, "last": -1}.items():
                if ordered:
                    numbers[f"{what}: {which} after, s"] = ordered[place]
            numbers[f"{what}: how many"] = len(ordered)
        return numbers | {"NoExecute: how many": len(self.tainted["NoExecute"])}


def main() -> int:
    """Measure both in turn and print a table."""
    parser = command.parser(__doc__ or "")
    parser.add_argument("--nodes", type=int, default=5_000, help="a third of them falls silent (%(default)s)")
    parser.add_argument("--pods", type=int, default=15_000, help="(%(default)s)")
    parser.add_argument("--grace", type=int, default=50, help="--node-monitor-grace-period in seconds (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="how long it goes on after that (%(default)s)")
    return command.run(_measure_all, parser.parse_args())


async def _measure_all(options: argparse.Namespace) -> Report:
    silent = options.nodes // 3
    report = Report(
        f"{options.nodes} nodes and {options.pods} pods; {silent} nodes of one zone fall silent, "
        f"grace period {options.grace} s, told after {options.grace + options.seconds} s"
    )
    for contestant in (_taintkeeper, _kcm):
        async with contestant(options) as (program, cluster), Kube(cluster.kubeconfig) as kube:
            say(program.name)
            await _fill(kube, options)
            report.rows.append(Row(program.name, await _measure(program, cluster, kube, options)))
    most = 2 + RATE * (options.grace + options.seconds)
    report.notes += [
        f"NoExecute: the rates allow {most:.0f} nodes at most",
        "memory and CPU of kcm are those of all its controllers",
    ]
    return report


@asynccontextmanager
async def _taintkeeper(options: argparse.Namespace) -> AsyncIterator[tuple[Program, RealCluster]]:
    with RealCluster(scheduler=False, kubelets=False, flags=NOT_TAINTED) as cluster:
        program = Operator(cluster.kubeconfig, _patience(options))
        try:
            yield program, cluster
        finally:
            program.end()


@asynccontextmanager
async def _kcm(options: argparse.Namespace) -> AsyncIterator[tuple[Program, RealCluster]]:
    with RealCluster(scheduler=False, kubelets=False, controllers_off=(), flags=NOT_TAINTED) as cluster:
        program = await take_over(cluster, *LIMITS[UNTHROTTLED], _patience(options))
        try:
            yield program, cluster
        finally:
            program.end()


def _patience(options: argparse.Namespace) -> str:
    return f"--node-monitor-grace-period={options.grace}s"


async def _measure(program: Program, cluster: RealCluster, kube: Kube, options: argparse.Namespace) -> dict[str, float]:
    course, marks = Course(frozenset(_silent(options))), Marks(node=_name(0))
    program.begin()
    await program.wait_until_ready()
    async with (
        watched(kube, path_to("nodes"), course.node),
        watched(kube, path_to("pods", NAMESPACE), course.pod),
        watched_pods(kube, marks.gone, MARKS),
    ):
        say(f"  ready; all Leases are renewed for {WARM_SECONDS} s")
        async with _renewals(cluster, options.nodes, WARM_SECONDS):
            pass
        say(f"  {len(course.silent)} nodes fall silent")
        begun, cpu, before = time.monotonic(), cpu_seconds(program.pid), await _requests(kube)
        seconds = options.grace + options.seconds
        async with (
            _renewals(cluster, options.nodes - len(course.silent), seconds + WARM_SECONDS),
            probes_of(program) as probes,
        ):
            await marks.make(kube, program.name, seconds)
            numbers = course.numbers(begun) | {
                "CPU, s": cpu_seconds(program.pid) - cpu,
                "peak, MB": peak_megabytes(program.pid),
            }
            asked = await _requests(kube) - before - Counter({"POST pods": len(marks.made)})
    numbers |= quantiles("reaction", marks.reactions()) | quantiles("probe", probes)
    return numbers | dict(_shares(asked, len(course.silent)))


@asynccontextmanager
async def _renewals(cluster: RealCluster, nodes: int, seconds: int) -> AsyncIterator[None]:
    """Have the Leases of the first nodes renewed, each as often as a kubelet does it, until that ends by itself."""
    much = argparse.Namespace(pods=1, nodes=nodes, changes=0, renewals=max(1, nodes // RENEW_SECONDS), seconds=seconds)
    async with traffic(cluster.kubeconfig, much):
        yield


async def _requests(kube: Kube) -> Counter[str]:
    """Return what the API server has answered so far, as far as it concerns us."""
    answer = await kube.request("GET", "/metrics")
    found = Counter[str]()
    for labels, number in COUNTED.findall(answer.body):
        of = dict(LABEL.findall(labels))
        renewal = of["resource"] == "leases" and of["verb"] != "GET"
        if of["resource"] in RESOURCES and of["verb"] not in UNCOUNTED and not renewal:
            found["/".join(filter(None, (f"{of['verb']} {of['resource']}", of["subresource"])))] += int(float(number))
    return found


def _shares(asked: Counter[str], silent: int) -> Iterator[tuple[str, float]]:
    yield "requests a silent node", asked.total() / silent
    for what, number in asked.most_common():
        if number > TOLD_APART * asked.total():
            yield f"  {what}", number / silent


async def _fill(kube: Kube, options: argparse.Namespace) -> None:
    for namespace in (NAMESPACE, MARKS):
        await make_namespace(kube, namespace)
    silent, others = set(_silent(options)), [_name(number) for number in range(1, options.nodes)]
    say("  filling the cluster")
    await kube.create("nodes", {**large_node(_name(0)), "spec": {"taints": [TAINT]}})
    nodes = (large_node(name, SILENT_ZONE if name in silent else f"zone-{n % 2 + 1}") for n, name in enumerate(others))
    await create(kube, "nodes", nodes, "nodes")
    await create(kube, "leases", map(lease, (_name(0), *others)), "Leases")
    pods = (large_pod(f"pod-{n}", others[n % len(others)], n % APPLICATIONS) for n in range(options.pods))
    await create(kube, "pods", pods, "pods")
    await in_parallel(partial(_make_ready, kube, f"pod-{number}") for number in range(options.pods))
    say("  filled")


async def _make_ready(kube: Kube, name: str) -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await kube.patch_status("pods", NAMESPACE, name, status)


def _silent(options: argparse.Namespace) -> list[str]:
    return [_name(number) for number in range(options.nodes - options.nodes // 3, options.nodes)]


def _name(number: int) -> str:
    return f"node-{number}"


if __name__ == "__main__":
    sys.exit(main())
