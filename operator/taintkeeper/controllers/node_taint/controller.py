"""Carries out what the taint engine decides."""

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.custom_kind import GROUP
from taintkeeper.cluster.rule_wire import RULES
from taintkeeper.controllers.node_taint.metrics import TaintMetrics
from taintkeeper.controllers.node_taint.reports import TaintReports
from taintkeeper.controllers.shell import Shell
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core import messages as m
from taintkeeper.core import taint_messages as t
from taintkeeper.core.rules import RuleWritten, WriteRuleStatus
from taintkeeper.core.tainting import TaintEngine, TaintOptions

PERMISSIONS = (
    Permission("list", "nodes"),
    Permission("watch", "nodes"),
    Permission("patch", "nodes"),
    Permission("list", RULES.resource, group=GROUP),
    Permission("watch", RULES.resource, group=GROUP),
    Permission("patch", RULES.resource, group=GROUP, subresource="status"),
)


class NodeTaint:
    """Feed it with what is seen of nodes and rules: it taints and reports."""

    permissions = PERMISSIONS
    resources = frozenset({"nodes", RULES.resource})

    def __init__(self, options: TaintOptions, around: Surroundings) -> None:
        self._writer = around.writer
        self._custom_writer = around.custom_writer
        self._reports = TaintReports(around.send)
        self._metrics = TaintMetrics(around.registry)
        self._engine = TaintEngine(options, around.random)
        self._shell: Shell[t.TaintInput, t.TaintEffect] = Shell(
            self._engine, around.clock, self._perform, crashed=around.crashed, stalled=around.stalled
        )
        self._metrics.observe(self._engine.book)

    def feed(self, event: t.TaintInput) -> None:
        """Take in an event and act on it."""
        self._shell.feed(event)

    async def stop(self) -> None:
        """End what is under way."""
        await self._shell.stop()

    def _perform(self, effect: t.TaintEffect) -> None:
        match effect:
            case t.PatchTaints():
                self._shell.spawn(self._write(effect))
            case t.TaintsChanged():
                self._metrics.count(effect)
                self._reports.tell(effect)
            case t.TaintContested():
                self._metrics.count_contest(effect)
                self._reports.tell(effect)
            case t.ReadyFlipped():
                self._metrics.count_flap()
                self._reports.tell(effect)
            case t.ZoneChanged():
                self._reports.tell(effect)
            case WriteRuleStatus():
                self._shell.spawn(self._write_status(effect))

    async def _write(self, effect: t.PatchTaints) -> None:
        written = await self._writer.write_taints(effect.node, effect.change.taints, effect.rule_taints)
        if written.result is not m.WriteResult.DONE:
            self._metrics.count_failure(written.result)
            self._reports.write_failed(written)
        self._shell.feed(written)

    async def _write_status(self, effect: WriteRuleStatus) -> None:
        done = await self._custom_writer.write_status(RULES, effect.name, effect.status)
        self._shell.feed(RuleWritten(effect.name, done))
