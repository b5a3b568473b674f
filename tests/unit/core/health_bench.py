"""Plays the shell, the API server and the kubelets around the engine of node health, on a clock of its own."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, TypeVar

from taintkeeper.core import health_messages as h
from taintkeeper.core.health import Patience
from taintkeeper.core.health_engine import HealthEngine, HealthOptions
from taintkeeper.core.messages import Knowledge, NodeGone, NodeSeen, NodeWritten, PodSeen, Woke, WriteResult
from taintkeeper.core.objects import Condition, Node, Pod

Effect = TypeVar("Effect", bound=h.HealthEffect)
Event = Any
GRACE = 50.0
MOST_STEPS_AT_ONCE = 20_000


def constantly(result: Any) -> Callable[..., Any]:
    """Let every call end like this."""
    return lambda *_: result


def first(*results: Any, then: Any) -> Callable[..., Any]:
    """Let the first calls end like this and all later ones like ``then``."""
    left = list(results)
    return lambda *_: left.pop(0) if left else then


class HealthBench:
    """Nodes, Leases and pods on a server with the engine beside it; time passes only in :meth:`run_until`.

    ``reads``, ``statuses``, ``labels`` and ``marks`` decide how calls end that nothing on the server stands against;
    each takes ``latency`` seconds. ``watching`` False keeps what happens on the server from the engine.
    """

    def __init__(
        self, *nodes: Node, pods: tuple[Pod, ...] = (), options: HealthOptions | None = None, fresh: bool = True
    ) -> None:
        self.now = 0.0
        self.latency = 0.0
        self.watching = True
        self.reads: Callable[..., h.ReadResult | None] = constantly(None)
        self.statuses = constantly(WriteResult.DONE)
        self.labels = constantly(WriteResult.DONE)
        self.marks = constantly(h.PodResult.DONE)
        self.server = {node.name: node for node in nodes}
        self.pods = {pod.ref.uid: pod for pod in pods}
        self.leases: dict[str, str] = {}
        self.log: list[tuple[float, h.HealthEffect]] = []
        self.under_way: Counter[type] = Counter()
        self.most_under_way: Counter[type] = Counter()
        self._options = options or HealthOptions()
        self._sequence = count()
        self._coming: list[tuple[float, int, Event]] = []
        self.start(fresh=fresh)

    # What happens in the cluster

    def start(self, *, fresh: bool = True) -> None:
        """Begin with an engine that knows nothing but what there is: a start, or a restart."""
        self._coming.clear()
        self.under_way.clear()
        self.engine = HealthEngine(self._options, Random(7))
        self.tell(*(NodeSeen(node) for node in self.server.values()))
        self.tell(*(h.LeaseSeen(*lease) for lease in self.leases.items()))
        self.tell(*(PodSeen(pod) for pod in self.pods.values()))
        if fresh:
            self.tell(Knowledge(True))

    def tell(self, *events: Event) -> None:
        """Let the engine see these events now."""
        for event in events:
            self._handle(event)
        self._run(self.now)

    def add(self, *nodes: Node) -> None:
        """Create nodes."""
        for node in nodes:
            self.server[node.name] = node
            self._show(NodeSeen(node))

    def add_pods(self, *pods: Pod) -> None:
        """Create pods, or change them."""
        for pod in pods:
            known = self.pods.get(pod.ref.uid)
            self.pods[pod.ref.uid] = replace(pod, version=known.version + 1 if known else pod.version)
            self._show(PodSeen(self.pods[pod.ref.uid]))

    def delete(self, name: str) -> None:
        """Delete a node."""
        del self.server[name]
        self._show(NodeGone(name))

    def change(self, name: str, **facts: Any) -> None:
        """Change a node."""
        version = str(int(self.server[name].resource_version) + 1)
        self.server[name] = replace(self.server[name], resource_version=version, **facts)
        self._show(NodeSeen(self.server[name]))

    def condition(self, name: str, type_: str, status: str, heartbeat: float | None = None) -> None:
        """Have a condition written to a node."""
        others = tuple(each for each in self.server[name].conditions if each.type != type_)
        self.change(name, conditions=(Condition(type_, status, "", heartbeat), *others))

    def heartbeat(self, name: str = "n1", status: str = "True", at: float | None = None) -> None:
        """Have the kubelet report Ready, at this time by its own clock."""
        self.condition(name, "Ready", status, self.now if at is None else at)

    def renew(self, *names: str, at: object = None) -> None:
        """Have kubelets renew their Leases, at this time by their own clocks."""
        for name in names or ("n1",):
            self.leases[name] = str(self.now if at is None else at)
            self._show(h.LeaseSeen(name, self.leases[name]))

    def run_until(self, end: float, *, renewing: tuple[str, ...] = (), every: float = 10.0) -> None:
        """Let time pass, waking the engine whenever it asks for it; meanwhile these nodes renew their Leases."""
        while renewing and self.now + every <= end:
            self.run_until(self.now + every)
            self.renew(*renewing)
        self._run(end)
        self.now = end

    # What came of it

    def of(self, kind: type[Effect]) -> list[tuple[float, Effect]]:
        """Return the effects of this kind with their times."""
        return [(at, effect) for at, effect in self.log if isinstance(effect, kind)]

    def times(self, kind: type[Effect]) -> list[float]:
        """Return when there were effects of this kind."""
        return [at for at, _ in self.of(kind)]

    def ready(self, name: str = "n1") -> str:
        """Return the status of a node's Ready condition, empty if there is none."""
        condition = self.server[name].condition("Ready")
        return "" if condition is None else condition.status

    def marked(self) -> list[str]:
        """Return the UIDs of the pods that were marked, in order, once for each time."""
        return [effect.pod.ref.uid for _, effect in self.of(h.PodMarked)]

    def _show(self, event: Event) -> None:
        if self.watching:
            self.tell(event)

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
            answer = self._carry_out(event)
            self._handle(event if answer is None else answer)

    def _next(self) -> float:
        wake_at = self.engine.wake_at(self.now)
        times = [self._coming[0][0]] if self._coming else []
        return min(times if wake_at is None else [*times, wake_at], default=float("inf"))

    def _handle(self, event: Event) -> None:
        for effect in self.engine.handle(event, self.now):
            self.log.append((self.now, effect))
            if isinstance(effect, h.ReadLease | h.PatchStatus | h.PatchLabels | h.MarkPod):
                self.under_way[type(effect)] += 1
                self.most_under_way[type(effect)] = max(self.most_under_way[type(effect)], self.under_way[type(effect)])
                heapq.heappush(self._coming, (self.now + self.latency, next(self._sequence), effect))

    def _carry_out(self, effect: Event) -> Event | None:
        self.under_way[type(effect)] -= 1
        match effect:
            case h.ReadLease(name):
                return self._read(name)
            case h.PatchStatus(node, conditions):
                return h.StatusWritten(self._write_status(node, conditions))
            case h.PatchLabels(node, labels):
                return h.LabelsWritten(self._write_labels(node, labels))
            case h.MarkPod(pod):
                return self._mark(pod)
        return None

    def _read(self, name: str) -> h.LeaseRead:
        result = self.reads(name, self.now)
        if result is None:
            result = h.ReadResult.FOUND if name in self.leases else h.ReadResult.MISSING
        return h.LeaseRead(name, result, self.leases.get(name, "") if result is h.ReadResult.FOUND else "")

    def _write_status(self, node: Node, conditions: tuple[Any, ...]) -> NodeWritten:
        result, now = self.statuses(node, self.now), self.server.get(node.name)
        if now is None or now.uid != node.uid:
            result = WriteResult.GONE
        elif now.resource_version != node.resource_version:
            result = WriteResult.CONFLICT
        if result is not WriteResult.DONE or now is None:
            return NodeWritten(node.name, result)
        changed = {each.type: each for each in conditions}
        kept = tuple(each for each in now.conditions if each.type not in changed)
        heartbeats = {each.type: each.heartbeat for each in now.conditions}
        new = tuple(
            Condition(each.type, "Unknown", each.reason, heartbeats.get(each.type, each.heartbeat), each.transition)
            for each in conditions
        )
        self.change(node.name, conditions=new + kept)
        return NodeWritten(node.name, result, self.server[node.name])

    def _write_labels(self, node: Node, labels: Any) -> NodeWritten:
        result = self.labels(node, self.now) if node.name in self.server else WriteResult.GONE
        if result is not WriteResult.DONE:
            return NodeWritten(node.name, result)
        self.change(node.name, labels={**self.server[node.name].labels, **labels})
        return NodeWritten(node.name, result, self.server[node.name])

    def _mark(self, pod: Pod) -> h.PodWritten:
        uid = pod.ref.uid
        result, now = self.marks(pod, self.now), self.pods.get(uid)
        if now is None:
            result = h.PodResult.GONE
        elif result is h.PodResult.DONE and now.version != pod.version:
            result = h.PodResult.CONFLICT
        if result is h.PodResult.DONE and now is not None:
            self.add_pods(replace(now, ready=False))
        return h.PodWritten(uid, result, retry_after=5.0 if result is h.PodResult.THROTTLED else 0.0)


def impatient(grace: float) -> HealthOptions:
    """Return options with this grace period."""
    return HealthOptions(Patience(grace=grace))


def declared(bench: HealthBench) -> list[float]:
    """Return when nodes were declared Unknown."""
    return bench.times(h.DeclaredUnknown)
