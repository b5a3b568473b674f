"""What fails, one thing after another, and what must and must not come of it."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from demo.operator_process import OperatorProcess
from demo.timeline import Timeline, Tone
from outage.observer import NO_EXECUTE, NO_SCHEDULE, Observer
from outage.setting import NAMESPACE, Times
from testbed.client import Kube
from testbed.real import RealCluster


@dataclass
class Stage:
    """All that an act works with; ``wrong`` gathers what came out otherwise than it must."""

    cluster: RealCluster
    kube: Kube
    operator: OperatorProcess
    observer: Observer
    timeline: Timeline
    times: Times
    wrong: list[str]

    def scene(self, title: str, expected: str) -> None:
        """Begin an act."""
        self.observer.begin_act()
        self.timeline.scene(title)
        self.timeline.expect("", expected)

    def check(self, holds: bool, what: str) -> None:
        """Say whether something that must be so is so."""
        self.timeline.happened("", ("right: " if holds else "WRONG: ") + what, Tone.GOOD if holds else Tone.BAD)
        if not holds:
            self.wrong.append(what)

    def zone(self, number: int) -> set[str]:
        """Return the nodes of a zone."""
        return {name for name, look in self.observer.nodes.items() if look.zone == f"zone-{number}"}

    async def silence(self, nodes: Iterable[str]) -> None:
        """Let the kubelets of these nodes die."""
        for name in sorted(nodes):
            await asyncio.to_thread(self.cluster.silence, name)

    async def wake(self, nodes: Iterable[str]) -> None:
        """Let them live again."""
        for name in sorted(nodes):
            await asyncio.to_thread(self.cluster.wake, name)

    async def recovered(self) -> None:
        """Wait until every node is as it should be, and say so."""
        well = await self.observer.until(lambda: not self.observer.tainted(), self.times.patience)
        self.check(well, "all nodes are ready again and without taints")


async def one_node(stage: Stage) -> None:
    """One node falls silent and comes back."""
    grace = stage.times.grace
    stage.scene("One node falls silent", f"after {grace:.0f} s it is unreachable, and its pods are not ready")
    victim = min(stage.zone(1))
    await stage.silence([victim])
    early = await stage.observer.until(lambda: victim in stage.observer.tainted(), grace - stage.times.lease)
    stage.check(not early, "nothing happens before its time is up")
    both = {NO_SCHEDULE, NO_EXECUTE}
    done = await stage.observer.until(lambda: both <= stage.observer.nodes[victim].taints, stage.times.patience)
    stage.check(done, f"{victim} has both taints")
    stage.check(stage.observer.tainted() == {victim}, "no other node has any")
    stage.check(await _pods_ready(stage, victim, "False"), "its pods are marked as not ready")
    await stage.wake([victim])
    await stage.recovered()


async def one_zone(stage: Stage) -> None:
    """All nodes of a zone fall silent: they are evicted from slowly."""
    nodes = stage.zone(2)
    stage.scene("A whole zone falls silent", "NoSchedule at once, NoExecute for one node after the other")
    await stage.silence(nodes)
    done = await stage.observer.until(lambda: stage.observer.with_taint(NO_SCHEDULE) == nodes, stage.times.patience)
    stage.check(done, "every node of the zone takes no new pods")
    began = stage.observer.with_taint(NO_EXECUTE)
    await asyncio.sleep(2.0 / stage.times.rate)
    evicting = stage.observer.with_taint(NO_EXECUTE)
    stage.check(began < evicting or evicting == nodes, "pods are evicted from more and more of them")
    stage.check(len(evicting) <= len(began) + 3, "no faster than the rate allows")
    stage.check(stage.observer.tainted() == nodes, "the other zones have no taints")
    await stage.wake(nodes)
    await stage.recovered()


async def everything(stage: Stage) -> None:
    """All nodes fall silent: that cannot be the nodes."""
    nodes = set(stage.observer.nodes)
    stage.scene("Everything falls silent", "no new pods anywhere, and nobody is evicted")
    await stage.silence(nodes)
    done = await stage.observer.until(lambda: stage.observer.with_taint(NO_SCHEDULE) == nodes, stage.times.patience)
    stage.check(done, "no node takes new pods")
    await stage.observer.until(lambda: not stage.observer.with_taint(NO_EXECUTE), stage.times.patience)
    await asyncio.sleep(3.0)
    stage.check(not stage.observer.with_taint(NO_EXECUTE), "no node has a NoExecute taint")
    await stage.wake(nodes)
    await stage.recovered()


async def no_api(stage: Stage) -> None:
    """The API server is away for longer than the grace period."""
    away = stage.times.absence
    stage.scene(f"The API server is away for {away:.0f} s", "we were blind: no node is to blame")
    await asyncio.to_thread(stage.cluster.stop_apiserver)
    await asyncio.sleep(away)
    await asyncio.to_thread(stage.cluster.start_apiserver)
    await _nothing_happens(stage)


async def no_process(stage: Stage) -> None:
    """The operator itself stands still for longer than the grace period."""
    away = stage.times.absence
    stage.scene(f"The operator stands still for {away:.0f} s", "we were asleep: no node is to blame")
    stage.operator.pause()
    await asyncio.sleep(away)
    stage.operator.resume()
    await _nothing_happens(stage)


ACTS = (one_node, one_zone, everything, no_api, no_process)


async def _nothing_happens(stage: Stage) -> None:
    stage.check(await _ready(stage), "the operator is ready again")
    await asyncio.sleep(stage.times.grace + 2.0)
    stage.check(not any(stage.observer.ever.values()), "no node has had any taint")
    stage.check(not stage.observer.tainted(), "every node is ready")


async def _ready(stage: Stage) -> bool:
    end = asyncio.get_running_loop().time() + stage.times.patience
    while not await stage.operator.is_ready():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.2)
    return True


async def _pods_ready(stage: Stage, node: str, status: str) -> bool:
    end = asyncio.get_running_loop().time() + stage.times.patience
    while asyncio.get_running_loop().time() < end:
        pods = await stage.kube.list("pods", NAMESPACE, fieldSelector=f"spec.nodeName={node}")
        found = {c["status"] for pod in pods for c in pod["status"]["conditions"] if c["type"] == "Ready"}
        if found == {status}:
            return True
        await asyncio.sleep(0.2)
    return False
