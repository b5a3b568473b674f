"""``python -m crash`` kills Taintkeeper at random moments while pods count, and judges by the API server's audit log.

It needs the real control plane (``make real-cluster-build``) and ends with 0 only if nobody noticed: no pod was evicted
before its time, none twice, none was forgotten, and nobody acted who did not lead.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from crash.facts import Facts, read
from crash.judging import RULES, UNHEARD, terms
from crash.setting import NAMESPACE, NODES, fill, permit, pods
from crash.story import SECONDS_A_KILL, Story
from demo.clock import Clock
from demo.timeline import Timeline, Tone
from testbed.client import Kube
from testbed.real import RealCluster
from testbed.real.build import BuildError
from testbed.real.processes import StartError

WRONG, NOT_PLAYED = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill it so many times; return 0 if nobody noticed, 1 if somebody did, 2 if it could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m crash", description="Kills Taintkeeper at random moments.")
    parser.add_argument("--kills", type=int, default=50, help="how many times (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random but the machine (%(default)s)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the logs here, the API server's and the processes'"
    )
    options = parser.parse_args(arguments)
    timeline = Timeline(Clock())
    try:
        with RealCluster(audit=True) as cluster, tempfile.TemporaryDirectory() as temporary:
            folder = options.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            cluster.add_nodes(NODES)
            asyncio.run(_play(cluster, folder, timeline, options))
            log = cluster.audit_log.read_text()
            (folder / "audit.log").write_text(log)
    except (BuildError, StartError, TimeoutError) as error:
        print(f"crash: {error}", file=sys.stderr)
        return NOT_PLAYED
    return WRONG if _judge(read(log.splitlines(), NAMESPACE), timeline) else 0


async def _play(cluster: RealCluster, folder: Path, timeline: Timeline, options: argparse.Namespace) -> None:
    random = Random(options.seed)
    wanted = pods(random, options.kills * SECONDS_A_KILL)
    async with Kube(cluster.kubeconfig) as kube, AsyncExitStack() as stack:
        await permit(kube)
        await fill(kube, wanted)
        timeline.scene(f"{len(wanted)} pods on {NODES} nodes, {options.kills} kills, seed {options.seed}")
        await Story(cluster, kube, folder, random, timeline, options.kills, stack).play(wanted)


def _judge(facts: Facts, timeline: Timeline) -> list[str]:
    """Tell what the audit log says; return what is wrong."""
    timeline.scene("What the API server's audit log says")
    told = [act for act in facts.acts if act.uid and act.status < 300]
    unheard = sum(act.status in UNHEARD for act in facts.acts if act.uid)
    refused = sum(act.status >= 300 for act in facts.acts if act.uid) - unheard
    led = terms(facts.claims)
    timeline.say(f"{len(facts.pods)} pods were made, {len(facts.ended)} of them have left")
    timeline.say(
        f"evictions: {len(told)} granted, {refused} refused, {unheard} whose sender was killed before the answer"
    )
    timeline.say(f"{len(led)} terms of {len({term.holder for term in led})} processes")
    wrong = []
    for what, rule in RULES.items():
        found = rule(facts)
        timeline.say(f"{what}: {len(found) or 'none'}", Tone.BAD if found else Tone.GOOD)
        for each in found:
            timeline.say(f"  {each}", Tone.BAD)
        wrong += found
    timeline.scene(f"{len(wrong)} things are wrong" if wrong else "All of it is right")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
