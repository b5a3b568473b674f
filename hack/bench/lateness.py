"""Pods have to leave one after the other, by their tolerationSeconds: how late is each?

    make real-cluster-build
    PYTHONPATH=hack .venv/bin/python -m bench.lateness --pods 1000 --seconds 10

One evictor after another does the same work on a fresh control plane of its own. Every second a hundred pods come due
in the same instant (pods divided by seconds), spread over all nodes. Due is a pod its tolerationSeconds after the API
server has answered the request that tainted its node, with a taint that does not say since when it is there, as those
of kubectl: so everybody counts from when they see it. It has left when a watch shows it as deleted; its grace period
is zero, so that is the moment in which its eviction, or deletion, is accepted. Both are the bench's own clock.
--throttled adds kube-controller-manager with its limit of 20 requests a second, on a tenth of the pods.

10,000 pods over 100 s take about 5 minutes, with --throttled about 9.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial

from bench import command
from bench.command import say
from bench.evictors import THROTTLED, UNTHROTTLED, Evictor, kcm, let_settle, taintkeeper
from bench.load import create, in_parallel, make_namespace, small_node, small_pod
from bench.report import Report, Row, quantiles
from bench.usage import cpu_seconds, peak_megabytes
from bench.watching import watched_pods
from testbed.client import Kube, Object, until

KEY = "lateness"
TAINT = {"key": KEY, "effect": "NoExecute"}
AT_ONCE = 16
SETTLE_SECONDS = 5.0
FIRST_SECOND = 10
"""The first pods are due so long after the taints: by then all of them have been seen."""
PATIENCE_SECONDS = 600.0
THROTTLED_SHARE = 10


@dataclass(slots=True)
class Course:
    """When each node was tainted, and how late each of its pods left; times on the monotonic clock, in seconds."""

    tainted: dict[str, float] = field(default_factory=dict)
    late: list[float] = field(default_factory=list)
    early: list[str] = field(default_factory=list)

    def gone(self, pod: Object, at: float) -> None:
        """Note that a pod has left."""
        since = self.tainted.get(pod["spec"]["nodeName"])
        if since is None:
            self.early.append(pod["metadata"]["name"])
            return
        self.late.append(at - since - _seconds(pod))


def main() -> int:
    """Measure everybody in turn and print a table."""
    parser = command.parser(__doc__ or "")
    parser.add_argument("--pods", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--nodes", type=int, default=50, help="(%(default)s)")
    parser.add_argument("--seconds", type=int, default=100, help="over which the deadlines are spread (%(default)s)")
    parser.add_argument("--throttled", action="store_true", help="kube-controller-manager with its own limits as well")
    return command.run(_measure_all, parser.parse_args())


async def _measure_all(options: argparse.Namespace) -> Report:
    each = options.pods / options.seconds
    report = Report(
        f"{options.pods} pods on {options.nodes} nodes, {each:g} of them due in each of {options.seconds} s"
    )
    report.rows.append(await _measure(taintkeeper, options, options.pods))
    report.rows.append(await _measure(partial(kcm, UNTHROTTLED), options, options.pods))
    if options.throttled:
        report.rows.append(await _measure(partial(kcm, THROTTLED), options, options.pods // THROTTLED_SHARE))
        report.notes.append(f"{THROTTLED}: with its limit of 20 requests a second, and a tenth of the pods")
    report.notes.append("memory and CPU of kcm are those of all its controllers")
    return report


async def _measure(
    evictor: Callable[[], AbstractAsyncContextManager[Evictor]], options: argparse.Namespace, pods: int
) -> Row:
    async with evictor() as at_work, Kube(at_work.cluster.kubeconfig) as kube:
        say(at_work.name)
        names = [f"node-{number}" for number in range(options.nodes)]
        await _fill(kube, names, options.seconds, pods)
        await let_settle(SETTLE_SECONDS)
        course, pid = Course(), at_work.pid
        cpu = cpu_seconds(pid)
        async with watched_pods(kube, course.gone):
            await in_parallel([partial(_taint, kube, course, name) for name in names], AT_ONCE)
            say(f"  tainted; the first pods are due in {FIRST_SECOND} s, the last {options.seconds} s later")
            await until(lambda: len(course.late) >= pods, FIRST_SECOND + options.seconds + PATIENCE_SECONDS)
        if course.early:
            raise TimeoutError(f"{len(course.early)} pods went before their node was tainted")
        use = {"CPU, s": cpu_seconds(pid) - cpu, "peak, MB": peak_megabytes(pid)}
        return Row(at_work.name, quantiles("late", course.late) | use)


async def _fill(kube: Kube, names: list[str], seconds: int, pods: int) -> None:
    await make_namespace(kube)
    await create(kube, "nodes", (small_node(name) for name in names), "nodes")
    each = max(1, pods // seconds)
    made = (_pod(number, names[number % len(names)], FIRST_SECOND + number // each) for number in range(pods))
    rate = await create(kube, "pods", made, "pods")
    say(f"  filled, {rate:.0f} pods a second")


def _pod(number: int, node: str, seconds: int) -> Object:
    toleration = {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
    return small_pod(f"pod-{number}", node, tolerations=[toleration])


def _seconds(pod: Object) -> int:
    return next(int(each["tolerationSeconds"]) for each in pod["spec"]["tolerations"] if each["key"] == KEY)


async def _taint(kube: Kube, course: Course, name: str) -> None:
    await kube.patch("nodes", "", name, {"spec": {"taints": [TAINT]}})
    course.tainted[name] = time.monotonic()


if __name__ == "__main__":
    sys.exit(main())
