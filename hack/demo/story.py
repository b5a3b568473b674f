"""The whole story on one control plane, from its first node to the verdict."""

import asyncio
import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo import checks, guest, manifests, measurements, scenes, setting
from demo.beds import Bed
from demo.checks import Check
from demo.clock import Clock
from demo.narrator import Narrator
from demo.operator_process import OperatorProcess
from demo.reading import node_of
from demo.record import Record
from demo.stage import Stage, StuckError
from demo.timeline import Timeline, Tone
from demo.watching import watching
from testbed.client import Kube, until

READY_SECONDS = 20.0
OURS = ("--node-eviction-rate=1",)
"""Ten times as fast as by default."""
GUEST = ("--controllers=taint-eviction",)


async def perform(bed: Bed, clock: Clock, timeline: Timeline, operator_args: Sequence[str]) -> bool:
    """Play the story and return whether it came out right.

    Raises:
        ExceptionGroup: the API could not be reached, or did not do what the story needs of it.
    """
    flags = [*(OURS if bed.is_ours else GUEST), *operator_args]
    record = Record(clock)
    narrator = Narrator(timeline, record)
    with tempfile.TemporaryDirectory(prefix="taintkeeper-demo-") as folder:
        operator = OperatorProcess(bed.kubeconfig, flags, Path(folder, "operator.log"))
        async with Kube(bed.kubeconfig) as kube, watching(kube, record):
            stage = Stage(bed, kube, clock, timeline, record, narrator)
            await _play(stage, operator)
        return _judge(stage, operator)


async def _play(stage: Stage, operator: OperatorProcess) -> None:
    try:
        if stage.bed.is_ours:
            stage.timeline.scene(
                "A new cluster. The API server taints every new node until somebody sees that it is ready."
            )
            await setting.build_cluster(stage)
        async with contextlib.AsyncExitStack() as ending:
            await ending.enter_async_context(operator)
            if not stage.bed.is_ours:
                await ending.enter_async_context(guest.leaving_no_trace(stage.kube, stage.nodes))
            # That what is taken down goes is no part of the story.
            ending.callback(stage.narrator.end)
            await _start(stage, operator)
            await _scenes(stage)
            await _measure(stage, operator)
        await _look_back(stage)
    except StuckError:
        stage.timeline.say("The story cannot go on.", Tone.BAD)
    stage.checks.append(checks.ended_well(operator.exit_code))


async def _start(stage: Stage, operator: OperatorProcess) -> None:
    stage.narrator.begin()
    stage.timeline.happened("operator", f"started: taintkeeper run {' '.join(operator.flags)}", Tone.BY_HAND)
    with contextlib.suppress(TimeoutError):
        await until(operator.is_settled, READY_SECONDS)
    ready = await operator.is_ready()
    seen = "ready" if ready else "running, not ready" if operator.running else "ended"
    stage.require("the operator is ready", holds=ready, expected="ready", seen=seen)


async def _scenes(stage: Stage) -> None:
    if stage.bed.is_ours:
        await setting.nodes_become_usable(stage)
    await setting.deploy(stage)
    await setting.workloads_run(stage)
    with_db = sorted(node_of(pod) for pod in stage.running("db"))
    serviced = with_db[0]
    if stage.bed.is_ours:
        failing = next(node for node in stage.nodes if node not in with_db)
        await setting.add_pods(stage, manifests.cache, manifests.mirror, node=failing)
        await setting.add_pods(stage, manifests.batch, manifests.monitor, manifests.mirror, node=serviced)
    else:
        # A real kubelet ends a mirror pod that it has no file for.
        await setting.add_pods(stage, manifests.batch, manifests.monitor, node=serviced)
    stage.record.guard()
    stage.narrator.pods_too = True
    if stage.bed.is_ours:
        await scenes.node_fails(stage, failing)
    await scenes.maintenance(stage, serviced)
    await _overall(stage)


async def _overall(stage: Stage) -> None:
    # Whoever is evicted wrongly may be evicted late.
    await asyncio.sleep(scenes.PAUSE_SECONDS)
    least = manifests.web_replicas(len(stage.nodes)) - manifests.WEB_SPARE
    stage.checks += [checks.outcome(stage.record, forecast) for forecast in stage.forecasts]
    stage.checks += [
        checks.only_these_left(stage.record, stage.forecasts),
        checks.budget_kept(stage.record, "web", least),
        checks.budget_kept(stage.record, "db", manifests.DB_REPLICAS),
    ]


async def _look_back(stage: Stage) -> None:
    if not stage.bed.is_ours:
        stage.timeline.say(f"The namespace {manifests.NAMESPACE} and the taint are gone again.")
    await stage.comes_true(lambda: checks.left_as_found(stage.record, stage.nodes).ok, scenes.PAUSE_SECONDS)
    stage.checks.append(checks.left_as_found(stage.record, stage.nodes))


async def _measure(stage: Stage, operator: OperatorProcess) -> None:
    text = await operator.metrics()
    stage.timeline.scene("What the operator's own /metrics say of it")
    for line in measurements.summary(text):
        stage.timeline.say(f"  {line}")
    evicted, seen = measurements.evictions_accepted(text), len(stage.record.lefts())
    claim = "the operator counted every eviction"
    if stage.bed.is_ours:
        stage.checks.append(Check(claim, evicted == seen, f"{seen}, as many as were seen", f"{evicted:g}"))
    else:
        # Others may have had to leave the tainted node as well.
        stage.checks.append(Check(claim, evicted >= seen, f"{seen} or more", f"{evicted:g}"))


def _judge(stage: Stage, operator: OperatorProcess) -> bool:
    timeline = stage.timeline
    timeline.scene("Did it come out right?")
    fine = checks.report(
        stage.checks,
        lambda line: timeline.say(line, Tone.GOOD, hanging=8),
        lambda line: timeline.say(line, Tone.BAD, hanging=20),
    )
    timeline.say()
    if fine:
        timeline.say(f"Yes: all {len(stage.checks)} checks passed, in {stage.clock.now():.0f} s.", Tone.GOOD)
        return True
    timeline.say("No. The operator's last words:", Tone.BAD)
    for line in operator.tail():
        timeline.say(f"  {line}", hanging=4)
    return False
