"""``python -m rivals`` runs Taintkeeper beside kube-controller-manager's own controllers for two minutes.

It needs the real control plane (``make real-cluster-build``) and ends with 0 only if both rivals were noticed and
nobody wrote in circles.
"""

import argparse
import asyncio
import functools
import sys
from collections.abc import Sequence

from rivals.contest import Findings, contest
from testbed.real.build import BuildError
from testbed.real.processes import StartError

RIVALS = ("node-lifecycle-controller", "taint-eviction-controller")
MOST_CHANGES = 12
"""How often the taints of a node may change in all: it fails at most twice and is well again twice, each time it is
closed, evicted from and opened again at different moments, and there are two who write."""

say = functools.partial(print, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of them; return 0 if it came out right, 1 if not, 2 if it could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m rivals", description="Runs Taintkeeper beside its rivals.")
    parser.add_argument("--seconds", type=float, default=120.0, help="for how long (%(default)g)")
    try:
        found = asyncio.run(contest(parser.parse_args(arguments).seconds, say))
    except (BuildError, StartError, TimeoutError) as error:
        print(f"rivals: {error}", file=sys.stderr)
        return 2
    for line in report(found):
        say(line)
    wrong = faults(found)
    say("\n".join(wrong) or "all is right: both were noticed, and nobody writes in circles")
    return 1 if wrong else 0


def report(found: Findings) -> list[str]:
    """Return the findings, line by line."""
    changes = ", ".join(f"{node} {count}" for node, count in sorted(found.changes.items()))
    evicted = ", ".join(f"{count} by {who}" for who, count in sorted(found.evicted_by.items()))
    metrics = [line for line in found.metrics.splitlines() if line.startswith("taintkeeper_rival_")]
    return [
        f"changes of taints: {changes}; when nothing happened any more: {sum(found.late.values())}",
        f"writes of nodes and their status, by everybody: {found.writes}",
        f"pods marked for deletion: {evicted}",
        *sorted(found.told),
        *metrics,
    ]


def faults(found: Findings) -> list[str]:
    """Return what did not come out right."""
    wrong = [f"{name} was not noticed" for name in RIVALS if not _noticed(found, name)]
    wrong += [f"the taints of {node} changed {n} times" for node, n in found.changes.items() if n > MOST_CHANGES]
    wrong += [f"the taints of {node} changed {n} times without a reason" for node, n in found.late.items()]
    return wrong


def _noticed(found: Findings, name: str) -> bool:
    told = any(name in message for message in found.told)
    logged = any("WARNING" in line and f"{name} is running too" in line for line in found.log)
    return told and logged and f'taintkeeper_rival_seen{{controller="{name}"}} 1.0' in found.metrics


if __name__ == "__main__":
    sys.exit(main())
