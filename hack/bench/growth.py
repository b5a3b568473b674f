"""Does an event, and a pod, cost the same in a large cluster as in a small one?

    make real-cluster-build
    PYTHONPATH=hack .venv/bin/python -m bench.growth --sizes 1000 3000 --seconds 20

Measures what bench.scale measures at several sizes, one after the other, each on a fresh control plane, with 30 pods on
each node. At the end it tells what a pod and an event cost at each size, and how the largest and the smallest compare.

10,000, 50,000 and 150,000 pods take about 14 minutes.
"""

import argparse
import sys

from bench import command, scale
from bench.command import say
from bench.report import Report, Row

PODS_PER_NODE = 30


def main() -> int:
    """Measure every size in turn and print a table."""
    parser = command.parser(__doc__ or "")
    scale.add_sizes(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 150_000], help="pods (%(default)s)")
    return command.run(_measure_all, parser.parse_args())


async def _measure_all(options: argparse.Namespace) -> Report:
    growth = Report(f"{', '.join(map(str, options.sizes))} pods")
    for pods in options.sizes:
        sized = argparse.Namespace(**{**vars(options), "pods": pods, "nodes": max(1, pods // PODS_PER_NODE)})
        report = await scale.measure(sized)
        say(f"\n{report.table()}\n")
        growth.rows += [Row(f"{row.name}, {pods}", {**row.numbers, **_costs(row, pods)}) for row in report.rows]
    growth.notes += _comparison(growth.rows)
    return growth


def _costs(row: Row, pods: int) -> dict[str, float]:
    numbers = row.numbers
    events = numbers["changes a second"] + numbers["renewals a second"]
    return {
        "an event, us of CPU": 10_000.0 * numbers["CPU, % of a core"] / events,
        "1,000 pods to ready, ms": 1_000_000.0 * numbers["ready after, s"] / pods,
    }


def _comparison(rows: list[Row]) -> list[str]:
    """Return how the largest size compares with the smallest, a line for each contestant and cost."""
    names = list(dict.fromkeys(row.name.partition(", ")[0] for row in rows))
    what = ("an event, us of CPU", "a pod, bytes", "1,000 pods to ready, ms")
    lines = []
    for name in names:
        own = [row.numbers for row in rows if row.name.startswith(f"{name}, ")]
        lines += [f"{name}: {each}, largest : smallest = {own[-1][each] / own[0][each]:.2f}" for each in what]
    return lines


if __name__ == "__main__":
    sys.exit(main())
