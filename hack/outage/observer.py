"""Looks at the nodes again and again, and tells what has changed; several nodes of a zone in one line."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp

from demo.timeline import Timeline, Tone
from testbed.client import ApiError, Kube, Object

LOOK_SECONDS = 0.3
NAMED = 2
"""Up to so many nodes are called by their names, more are counted."""
TAINTS = {
    "node.kubernetes.io/unreachable:NoSchedule": "unreachable:NoSchedule",
    "node.kubernetes.io/unreachable:NoExecute": "unreachable:NoExecute",
    "node.kubernetes.io/not-ready:NoSchedule": "not-ready:NoSchedule",
    "node.kubernetes.io/not-ready:NoExecute": "not-ready:NoExecute",
}
NO_SCHEDULE, NO_EXECUTE = "unreachable:NoSchedule", "unreachable:NoExecute"


@dataclass(frozen=True, slots=True)
class Look:
    """What a node looks like: its zone, the status of its condition Ready, and the taints that concern it."""

    zone: str
    ready: str
    taints: frozenset[str]

    @classmethod
    def at(cls, node: Object) -> "Look":
        """Look at a node."""
        conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
        taints = {f"{each['key']}:{each['effect']}" for each in node["spec"].get("taints", [])}
        zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        return cls(zone, conditions.get("Ready", "missing"), frozenset(TAINTS[each] for each in taints & TAINTS.keys()))


class Observer:
    """What is known of the nodes now, and which taints they have ever had since :meth:`begin_act`."""

    def __init__(self, kube: Kube, timeline: Timeline) -> None:
        self.nodes: dict[str, Look] = {}
        self.ever: dict[str, set[str]] = defaultdict(set)
        """The taints that each node has had since the act began."""
        self._kube = kube
        self._timeline = timeline

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look as long as the body runs."""
        await self._look()
        task = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def begin_act(self) -> None:
        """Forget which taints there have been."""
        self.ever.clear()

    def with_taint(self, taint: str) -> set[str]:
        """Return the nodes that have this taint now."""
        return {name for name, look in self.nodes.items() if taint in look.taints}

    def tainted(self) -> set[str]:
        """Return the nodes that have any taint now, or are not ready."""
        return {name for name, look in self.nodes.items() if look.taints or look.ready != "True"}

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds, for so many seconds at most; return whether it does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():  # noqa: ASYNC110 - what is asked is what was seen last
                    await asyncio.sleep(LOOK_SECONDS)
        return holds()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            # The API server may be away: that is part of the story.
            with contextlib.suppress(aiohttp.ClientError, ApiError, TimeoutError):
                await self._look()

    async def _look(self) -> None:
        seen = {node["metadata"]["name"]: Look.at(node) for node in await self._kube.list("nodes")}
        changes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, look in seen.items():
            self.ever[name] |= look.taints
            for change in _changes(self.nodes.get(name, look), look):
                changes[look.zone, change].append(name)
        self.nodes = seen
        for (zone, change), names in changes.items():
            self._timeline.happened(_called(zone, names), change, _tone(change))


def _changes(before: Look, after: Look) -> list[str]:
    ready = [f"Ready is {after.ready}"] if after.ready != before.ready else []
    added = [f"+ {taint}" for taint in sorted(after.taints - before.taints)]
    removed = [f"- {taint}" for taint in sorted(before.taints - after.taints)]
    return ready + added + removed


def _called(zone: str, names: list[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} of {zone}"


def _tone(change: str) -> Tone:
    if change.startswith("+"):
        return Tone.TAINT
    return Tone.GOOD if change.startswith("-") or change.endswith("True") else Tone.BAD
