"""``python -m outage`` lets nodes, a zone, everything, the API server and the operator fail, and tells what happens.

It needs the real control plane (``make real-cluster-build``) and ends with 0 only if nothing came out wrong.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo.clock import Clock
from demo.operator_process import OperatorProcess
from demo.timeline import Timeline, Tone
from outage.acts import ACTS, Stage
from outage.observer import Observer
from outage.setting import FULL, SHORT, Times, set_up
from testbed.client import Kube
from testbed.real import RealCluster
from testbed.real.build import BuildError
from testbed.real.processes import StartError

STORY_WRONG, NOT_PLAYED = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Let everything fail; return 0 if all came out right, 1 if not, 2 if it could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m outage", description="Lets nodes and control planes fail.")
    parser.add_argument("--short", action="store_true", help="in two minutes, with short grace periods")
    times = SHORT if parser.parse_args(arguments).short else FULL
    clock = Clock()
    timeline = Timeline(clock)
    try:
        with RealCluster(flags={"kwok": times.kwok_flags}) as cluster, tempfile.TemporaryDirectory() as folder:
            return asyncio.run(_play(cluster, Path(folder), clock, timeline, times))
    except (BuildError, StartError) as error:
        print(f"outage: {error}", file=sys.stderr)
        return NOT_PLAYED


async def _play(cluster: RealCluster, folder: Path, clock: Clock, timeline: Timeline, times: Times) -> int:
    wrong: list[str] = []
    async with Kube(cluster.kubeconfig) as kube:
        await set_up(cluster, kube, times)
        operator = OperatorProcess(cluster.kubeconfig, times.flags, folder / "operator.log")
        async with operator:
            observer = Observer(kube, timeline)
            stage = Stage(cluster, kube, operator, observer, timeline, times, wrong)
            clock.restart()
            async with observer.looking():
                for act in ACTS:
                    await act(stage)
                    if wrong:
                        # What comes next would begin from where nobody expects it to.
                        break
        if wrong:
            for line in operator.tail():
                timeline.say(line, Tone.ASIDE)
    timeline.scene(f"{len(wrong)} things came out wrong" if wrong else "All of it came out right")
    for each in wrong:
        timeline.say(each, Tone.BAD)
    return STORY_WRONG if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
