"""Carries out what the engine of node health decides."""

import asyncio
from collections.abc import Awaitable, Callable

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.status_writer import StatusWriter
from taintkeeper.controllers.node_health.metrics import HealthMetrics
from taintkeeper.controllers.node_health.reports import HealthReports
from taintkeeper.controllers.shell import Shell
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core import health_messages as h
from taintkeeper.core import messages as m
from taintkeeper.core.health_engine import HealthEngine, HealthOptions

LEASE_GROUP = "coordination.k8s.io"
PERMISSIONS = (
    Permission("list", "nodes"),
    Permission("watch", "nodes"),
    Permission("patch", "nodes"),
    Permission("patch", "nodes", subresource="status"),
    Permission("list", "pods"),
    Permission("watch", "pods"),
    Permission("patch", "pods", subresource="status"),
    Permission("list", "leases", group=LEASE_GROUP),
    Permission("watch", "leases", group=LEASE_GROUP),
    Permission("get", "leases", group=LEASE_GROUP),
)

CONCURRENT_LABELS = 16

LeaseReader = Callable[[str], Awaitable[h.LeaseRead]]
"""Reads the Lease of the node with this name from the API server, past every watch."""


class NodeHealth:
    """Feed it with what is seen of nodes, their Leases and pods: it declares, marks, labels and reports."""

    permissions = PERMISSIONS
    resources = frozenset({"nodes", "pods", "leases"})

    def __init__(
        self, options: HealthOptions, around: Surroundings, writer: StatusWriter, read_lease: LeaseReader
    ) -> None:
        self._writer = writer
        self._read_lease = read_lease
        self._reports = HealthReports(around.send)
        self._metrics = HealthMetrics(around.registry)
        self._engine = HealthEngine(options, around.random)
        self._shell: Shell[h.HealthInput, h.HealthEffect] = Shell(
            self._engine, around.clock, self._perform, crashed=around.crashed, stalled=around.stalled
        )
        # One write a node at most, but in a new cluster all nodes must not be labelled at once.
        self._places = asyncio.Semaphore(CONCURRENT_LABELS)
        self._metrics.observe(self._engine)
        self._reports.begin(options.patience)

    def feed(self, event: h.HealthInput) -> None:
        """Take in an event and act on it."""
        self._shell.feed(event)

    async def stop(self) -> None:
        """End what is under way."""
        await self._shell.stop()

    def _perform(self, effect: h.HealthEffect) -> None:
        match effect:
            case h.ReadLease(node):
                self._shell.spawn(self._read(node))
            case h.PatchStatus():
                self._shell.spawn(self._declare(effect))
            case h.PatchLabels():
                self._shell.spawn(self._label(effect))
            case h.MarkPod():
                self._shell.spawn(self._mark(effect))
            case _:
                self._metrics.count(effect)
                self._reports.tell(effect)

    async def _read(self, node: str) -> None:
        read = await self._read_lease(node)
        self._metrics.count_read(read.result)
        if read.result is h.ReadResult.FAILED:
            self._reports.read_failed(read)
        self._shell.feed(read)

    async def _declare(self, effect: h.PatchStatus) -> None:
        written = await self._writer.write_unknown(effect.node, effect.conditions)
        self._note("conditions", written)
        self._shell.feed(h.StatusWritten(written))

    async def _label(self, effect: h.PatchLabels) -> None:
        async with self._places:
            written = await self._writer.write_labels(effect.node, effect.labels)
        self._note("labels", written)
        self._shell.feed(h.LabelsWritten(written))

    async def _mark(self, effect: h.MarkPod) -> None:
        written = await self._writer.mark_pod(effect.pod, effect.at)
        self._metrics.count_mark(written.result)
        self._reports.mark_ended(effect.pod, written)
        self._shell.feed(written)

    def _note(self, what: str, written: m.NodeWritten) -> None:
        if written.result is not m.WriteResult.DONE:
            self._metrics.count_failure(what, written.result)
            self._reports.write_failed(what, written)
