"""Starts and kills Taintkeeper while pods count, and lets nodes, budgets and pods change meanwhile."""

import asyncio
import contextlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from crash.judging import STEADY_SECONDS
from crash.setting import NAMESPACE, Happening, happenings, has_to_leave, short_lived
from demo.operator_process import OperatorProcess
from demo.timeline import Timeline, Tone
from testbed.client import Kube, Object, until
from testbed.real import RealCluster

SECONDS_A_KILL = 5.0
LONGEST_LIFE_SECONDS = 8.0
SOON_SECONDS = 1.5
"""How soon after a process leads it is killed, half of the time: then it has most to do."""
ELECTED_SECONDS = 60.0
MOST_QUIET_SECONDS = 3.0 * STEADY_SECONDS
"""How long nobody is killed in the end at most, when everything is due: until then all must have been done."""
STILL_SECONDS = 5.0
"""How long nothing must happen any more when all who were to leave have been told to."""
AGAIN_SECONDS, AGAIN_PODS = 4.0, 3
LEASE_FLAGS = (
    *("--leader-elect", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s"),
    "--leader-elect-retry-period=500ms",
)
# All nodes have a kubelet that is well.
FLAGS = (*LEASE_FLAGS, "--controllers=*,-node-health")


@dataclass(slots=True)
class Story:
    """All that the story works with. ``replicas`` are the processes that live, by name."""

    cluster: RealCluster
    kube: Kube
    folder: Path
    random: Random
    timeline: Timeline
    kills: int
    stack: AsyncExitStack
    replicas: dict[str, OperatorProcess] = field(default_factory=dict)
    started: int = 0

    @property
    def horizon(self) -> float:
        """How many seconds the story is meant to take; the last pod is due by then."""
        return self.kills * SECONDS_A_KILL

    async def play(self, pods: list[Object]) -> None:
        """Kill and start processes, one at a time first and one of two then, until everything has happened."""
        again = asyncio.create_task(self._make_again({each["metadata"]["name"]: each for each in pods}))
        try:
            await asyncio.gather(self._crash(), self._happen(happenings(self.horizon)), asyncio.sleep(self.horizon))
        finally:
            again.cancel()
            await asyncio.gather(again, return_exceptions=True)
        self.timeline.scene("Nobody is killed any more")
        with contextlib.suppress(TimeoutError):
            await until(self._is_over, MOST_QUIET_SECONDS)
        await asyncio.sleep(STILL_SECONDS)
        await self._tell("the end", Tone.PLAIN)

    async def _is_over(self) -> bool:
        """Return whether nobody stays whom a taint lets stay for a time only; look once a second."""
        await asyncio.sleep(1.0)
        taints = {each["metadata"]["name"]: each["spec"].get("taints", []) for each in await self.kube.list("nodes")}
        pods = await self.kube.list("pods", NAMESPACE)
        staying = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
        return not any(has_to_leave(each, taints[each["spec"]["nodeName"]]) for each in staying)

    async def _crash(self) -> None:
        await self._start()
        for number in range(self.kills):
            if number == self.kills // 2:
                self.timeline.scene("From now on there are two")
                await self._start()
            victim = await self._choose()
            await self.replicas.pop(victim).kill()
            await self._tell(f"{victim} killed", Tone.BAD)
            await self._start()

    async def _choose(self) -> str:
        """Wait for a random moment, of its life or soon after it was elected, and return who is killed then."""
        if self.random.random() < 0.5:
            await asyncio.sleep(self.random.uniform(0.2, LONGEST_LIFE_SECONDS))
            return self.random.choice(sorted(self.replicas))
        leader = await self._leader()
        await asyncio.sleep(self.random.uniform(0.0, SOON_SECONDS))
        return leader

    async def _leader(self) -> str:
        end = asyncio.get_running_loop().time() + ELECTED_SECONDS
        while asyncio.get_running_loop().time() < end:
            for name, process in sorted(self.replicas.items()):
                if "taintkeeper_leader 1.0" in await process.metrics():
                    return name
            await asyncio.sleep(0.05)
        raise TimeoutError(f"none of {', '.join(sorted(self.replicas))} was elected in {ELECTED_SECONDS:.0f} s")

    async def _start(self) -> None:
        self.started += 1
        name = f"process-{self.started}"
        await self.kube.create("serviceaccounts", {"metadata": {"name": name, "namespace": NAMESPACE}})
        kubeconfig = await asyncio.to_thread(self.cluster.kubeconfig_for, NAMESPACE, name)
        # The name is both in the Lease and in the audit log.
        place = {"POD_NAME": name, "POD_NAMESPACE": NAMESPACE}
        process = OperatorProcess(kubeconfig, FLAGS, self.folder / f"{name}.log", place)
        self.replicas[name] = await self.stack.enter_async_context(process)

    async def _happen(self, coming: list[Happening]) -> None:
        begun = asyncio.get_running_loop().time()
        for each in coming:
            await asyncio.sleep(begun + each.at - asyncio.get_running_loop().time())
            await each.do(self.kube)
            self.timeline.happened(each.who, each.what, Tone.TAINT)

    async def _make_again(self, pods: dict[str, Object]) -> None:
        """Make pods by the names of some that are gone, again and again."""
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            there = {each["metadata"]["name"] for each in await self.kube.list("pods", NAMESPACE)}
            gone = [each for name, each in sorted(pods.items()) if name not in there]
            for each in self.random.sample(gone, min(AGAIN_PODS, len(gone))):
                name, node = each["metadata"]["name"], each["spec"]["nodeName"]
                await self.kube.create("pods", short_lived(name, node, self.random))

    async def _tell(self, what: str, tone: Tone) -> None:
        left = await self.kube.list("pods", NAMESPACE)
        leaving = sum("deletionTimestamp" in each["metadata"] for each in left)
        self.timeline.happened(what, f"{len(left) - leaving} pods stay, {leaving} are leaving", tone)
