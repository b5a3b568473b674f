"""Plays the shell and the API server around the taint engine: keeps the time and the nodes, writes down the writes."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, TypeVar

from taintkeeper.core.messages import Knowledge, NodeGone, NodeSeen, NodeWritten, Woke, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node, Taint
from taintkeeper.core.rules import Rule, RuleGone, RuleSeen, RuleStatus, RuleWritten, WriteRuleStatus
from taintkeeper.core.taint_messages import PatchTaints, TaintEffect, TaintInput
from taintkeeper.core.tainting import TaintEngine, TaintOptions
from tests.unit.core.rule_bench import seen as rule_seen

Results = Callable[[PatchTaints, float], WriteResult]
Effect = TypeVar("Effect", bound=TaintEffect)

MOST_STEPS_AT_ONCE = 5_000


def done(_patch: PatchTaints, _now: float) -> WriteResult:
    """Let every write through."""
    return WriteResult.DONE


def failing(*results: WriteResult) -> Results:
    """Let the first writes end like this and all later ones through."""
    left = list(results)
    return lambda _patch, _now: left.pop(0) if left else WriteResult.DONE


class TaintBench:
    """Nodes on a server with the engine beside it; time passes only in :meth:`run_until`.

    A write is checked against the node's resource version, takes ``latency`` seconds, and is answered with the new
    node; the watch shows it as well. ``statuses`` are those of the rules as they were written last.
    """

    def __init__(
        self,
        *nodes: Node,
        rules: Iterable[Rule] = (),
        options: TaintOptions | None = None,
        results: Results = done,
        latency: float = 0.0,
        fresh: bool = True,
        start: float = 0.0,
    ) -> None:
        self.now = start
        self.results = results
        self.latency = latency
        self.server = {node.name: node for node in nodes}
        self.rules: dict[str, RuleSeen] = {}
        self.statuses: dict[str, RuleStatus] = {}
        self.log: list[tuple[float, TaintEffect]] = []
        self._options = options or TaintOptions()
        self._coming: list[tuple[float, int, PatchTaints | TaintInput]] = []
        self._sequence = count()
        self._versions = 0
        self.engine = TaintEngine(self._options, Random(7))
        for each in rules:
            self.put_rule(each)
        self.tell(*(NodeSeen(node) for node in nodes))
        if fresh:
            self.tell(Knowledge(True))

    # What happens in the cluster

    def tell(self, *events: TaintInput) -> None:
        """Let the engine see these events now."""
        for event in events:
            self._handle(event)
        self._run(self.now)

    def add(self, *nodes: Node) -> None:
        """Create nodes on the server."""
        self.server.update({node.name: node for node in nodes})
        self.tell(*(NodeSeen(node) for node in nodes))

    def delete(self, name: str) -> None:
        """Delete a node on the server."""
        del self.server[name]
        self.tell(NodeGone(name))

    def change(self, name: str, *, seen: bool = True, **facts: Any) -> None:
        """Change a node on the server; with ``seen`` False the watch does not show it yet."""
        self.server[name] = replace(self.server[name], resource_version=self._next_version(name), **facts)
        if seen:
            self.tell(NodeSeen(self.server[name]))

    def condition(self, name: str, type_: str, status: str, reason: str = "") -> None:
        """Let the node report a condition."""
        before = self.server[name].condition(type_)
        others = [condition for condition in self.server[name].conditions if condition.type != type_]
        transition = before.transition if before is not None and before.status == status else self.now
        self.change(name, conditions=(*others, Condition(type_, status, reason, transition=transition)))

    def ready(self, status: str, *names: str) -> None:
        """Let these nodes, or all of them, report this status of the Ready condition."""
        for name in names or tuple(self.server):
            self.condition(name, "Ready", status)

    def put_rule(self, rule: Rule | None, *, name: str = "", fault: str = "") -> None:
        """Create or change a rule; None for one that makes no sense, by its name and with its fault."""
        version = self._versions = self._versions + 1
        told = rule_seen(rule, name=name, fault=fault, version=version)
        self.rules[told.name] = replace(told, status=self.statuses.get(told.name))
        self.tell(self.rules[told.name])

    def delete_rule(self, name: str, *, seen: bool = True) -> None:
        """Delete a rule; with ``seen`` False nobody tells of it."""
        del self.rules[name]
        self.statuses.pop(name, None)
        if seen:
            self.tell(RuleGone(name))

    def run_until(self, end: float) -> None:
        """Let time pass, waking the engine whenever it asks for it."""
        self._run(end)
        self.now = end

    def restart(self) -> None:
        """Replace the engine by a new one that knows nothing but what the nodes and the rules say."""
        self._coming.clear()
        self.engine = TaintEngine(self._options, Random(7))
        self.tell(*(replace(each, status=self.statuses.get(each.name)) for each in self.rules.values()))
        self.tell(*(NodeSeen(node) for node in self.server.values()), Knowledge(True))

    # What came of it

    def of(self, kind: type[Effect]) -> list[tuple[float, Effect]]:
        """Return the effects of this kind with their times."""
        return [(at, effect) for at, effect in self.log if isinstance(effect, kind)]

    def writes(self, name: str = "n1") -> list[tuple[float, PatchTaints]]:
        """Return the writes to a node with their times."""
        return [(at, patch) for at, patch in self.of(PatchTaints) if patch.node.name == name]

    def executed(self) -> list[tuple[float, str]]:
        """Return when a NoExecute taint was written that was not there before, and to which node."""
        return [
            (at, patch.node.name)
            for at, patch in self.of(PatchTaints)
            if any(taint.effect == NO_EXECUTE for taint in patch.change.added)
        ]

    def keys(self, name: str = "n1", effect: str = NO_SCHEDULE) -> set[str]:
        """Return the keys of the node's taints with this effect, without the common prefix."""
        taints: tuple[Taint, ...] = self.server[name].taints
        return {taint.key.removeprefix("node.kubernetes.io/") for taint in taints if taint.effect == effect}

    def _run(self, end: float) -> None:
        steps = 0
        while (at := self._next()) <= end:
            steps = steps + 1 if at <= self.now else 0
            assert steps < MOST_STEPS_AT_ONCE, f"the engine goes in circles at {self.now}"
            self.now = max(self.now, at)
            if not self._coming or self._coming[0][0] > self.now:
                self._handle(Woke())
                continue
            event = heapq.heappop(self._coming)[2]
            self._handle(self._commit(event) if isinstance(event, PatchTaints) else event)

    def _next(self) -> float:
        wake_at = self.engine.wake_at(self.now)
        times = [self._coming[0][0]] if self._coming else []
        return min(times if wake_at is None else [*times, wake_at], default=float("inf"))

    def _later(self, at: float, event: PatchTaints | TaintInput) -> None:
        heapq.heappush(self._coming, (at, next(self._sequence), event))

    def _handle(self, event: TaintInput) -> None:
        for effect in self.engine.handle(event, self.now):
            self.log.append((self.now, effect))
            if isinstance(effect, PatchTaints):
                self._later(self.now + self.latency, effect)
            elif isinstance(effect, WriteRuleStatus):
                self.statuses[effect.name] = effect.status
                self._later(self.now + self.latency, RuleWritten(effect.name, done=True))

    def _commit(self, patch: PatchTaints) -> NodeWritten:
        name, result = patch.node.name, self.results(patch, self.now)
        node = self.server.get(name)
        if node is None or node.uid != patch.node.uid:
            result = WriteResult.GONE
        elif result is WriteResult.DONE and node.resource_version != patch.node.resource_version:
            result = WriteResult.CONFLICT
        if result is not WriteResult.DONE or node is None:
            return NodeWritten(name, result)
        memory = node.rule_taints if patch.rule_taints is None else patch.rule_taints
        version = self._next_version(name)
        written = replace(node, taints=patch.change.taints, rule_taints=memory, resource_version=version)
        self.server[name] = written
        self._later(self.now, NodeSeen(written))
        return NodeWritten(name, result, written)

    def _next_version(self, name: str) -> str:
        return str(int(self.server[name].resource_version) + 1)
