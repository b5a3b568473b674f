"""Carries out what the eviction engine decides."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.custom_kind import GROUP
from taintkeeper.cluster.policy_wire import POLICIES
from taintkeeper.controllers.shell import Shell
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.controllers.taint_eviction.metrics import EvictionMetrics
from taintkeeper.controllers.taint_eviction.reports import EvictionReports
from taintkeeper.core import messages as m
from taintkeeper.core.eviction import EvictionEngine
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.policy_messages import PolicyWritten, WritePolicyStatus

PERMISSIONS = (
    Permission("get", "nodes"),
    Permission("list", "nodes"),
    Permission("watch", "nodes"),
    Permission("patch", "nodes"),
    Permission("list", "pods"),
    Permission("watch", "pods"),
    Permission("create", "pods", subresource="eviction"),
    Permission("delete", "pods"),
    Permission("patch", "pods", subresource="status"),
    Permission("list", "poddisruptionbudgets", group="policy"),
    Permission("watch", "poddisruptionbudgets", group="policy"),
    Permission("list", "namespaces"),
    Permission("watch", "namespaces"),
    Permission("list", "persistentvolumes"),
    Permission("watch", "persistentvolumes"),
    Permission("list", POLICIES.resource, group=GROUP),
    Permission("watch", POLICIES.resource, group=GROUP),
    Permission("patch", POLICIES.resource, group=GROUP, subresource="status"),
)

REMEMBER_SECONDS = 0.2
"""How long a memory waits to be written: taints often come in bursts, and each counts from when it was seen, so that
seeing the next one goes before writing down the last."""

ReadNode = Callable[[str], Awaitable[m.NodeRead | m.NodeUnread]]
"""Reads the node of this name and its pods, past every watch."""


class TaintEviction:
    """Feed it with what is seen of all its resources: it evicts, remembers and reports."""

    permissions = PERMISSIONS
    resources = frozenset(
        {"nodes", "pods", "poddisruptionbudgets", "namespaces", "persistentvolumes", POLICIES.resource}
    )

    def __init__(self, options: EvictionOptions, around: Surroundings, read_node: ReadNode) -> None:
        self._writer = around.writer
        self._custom_writer = around.custom_writer
        self._clock = around.clock
        self._read_node = read_node
        self._reports = EvictionReports(around.send)
        self._metrics = EvictionMetrics(around.registry)
        self._engine = EvictionEngine(options, around.random)
        self._shell: Shell[m.EvictionInput, m.EvictionEffect] = Shell(
            self._engine, around.clock, self._perform, crashed=around.crashed, stalled=around.stalled
        )
        self._metrics.observe(self._engine.queue, around.clock)

    @property
    def busy(self) -> bool:
        """Whether evictions are due or under way that must not wait for anything less important.

        Where pods stand in line and yet none is under way, they have to wait themselves: for a pause to be over that
        the API server asked for, or for fresh knowledge. Pods whose node is being read stand in no line.
        """
        tracks = self._engine.queue.tracks
        being_read = tracks.counts[State.READY] > 0 and tracks.next_is_own() is None
        return tracks.counts[State.POSTED] > 0 or being_read

    def feed(self, event: m.EvictionInput) -> None:
        """Take in an event and act on it."""
        self._shell.feed(event)

    async def stop(self) -> None:
        """End what is under way."""
        await self._shell.stop()

    def _perform(self, effect: m.EvictionEffect) -> None:
        match effect:
            case m.Evict():
                self._shell.spawn(self._evict(effect))
            case m.Delete():
                self._shell.spawn(self._delete(effect))
            case m.ReadNode():
                self._shell.spawn(self._read(effect))
            case m.Remember():
                self._shell.spawn(self._remember(effect))
            case WritePolicyStatus():
                self._shell.spawn(self._write_status(effect))
            case _:
                self._metrics.count(effect)
                self._reports.tell(effect)

    async def _evict(self, effect: m.Evict) -> None:
        answer = await self._writer.evict(effect.pod, effect.grace)
        self._shell.feed(m.EvictionAnswered(effect.pod.uid, answer))

    async def _delete(self, effect: m.Delete) -> None:
        answer = await self._writer.delete(effect.pod, effect.grace, str(effect.deadline), self._clock())
        self._shell.feed(m.EvictionAnswered(effect.pod.uid, answer))

    async def _read(self, effect: m.ReadNode) -> None:
        answer = await self._read_node(effect.name)
        if isinstance(answer, m.NodeRead) and answer.node is not None:
            answer = replace(answer, node=self._writer.as_seen(answer.node))
        self._metrics.count_reading(answer)
        self._shell.feed(answer)

    async def _remember(self, effect: m.Remember) -> None:
        await asyncio.sleep(REMEMBER_SECONDS)
        self._shell.feed(await self._writer.write_first_seen(effect.node, effect.uid, effect.memory))

    async def _write_status(self, effect: WritePolicyStatus) -> None:
        done = await self._custom_writer.write_status(POLICIES, effect.name, effect.status)
        self._shell.feed(PolicyWritten(effect.name, done))
