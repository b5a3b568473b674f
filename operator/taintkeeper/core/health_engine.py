"""Which nodes are declared Unknown, and what follows from that: the engine of the node-health controller.

It joins the signs of life of nodes with what is done about silence, about the pods of nodes that are not ready, and
about the labels that follow others.
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from taintkeeper.core import health_messages as h
from taintkeeper.core import messages as m
from taintkeeper.core.disruption import Marking
from taintkeeper.core.health import Patience, Sight
from taintkeeper.core.node_labels import LabelKeeper
from taintkeeper.core.objects import Node
from taintkeeper.core.pod_readiness import PodReadiness
from taintkeeper.core.silence import SilenceKeeper

UNREPORTED = "Unreported"
"""Stands for the status of a Ready condition that is missing."""


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """What a cluster administrator may choose."""

    patience: Patience = field(default_factory=Patience)
    marking: Marking = Marking.ALWAYS


class HealthEngine:
    """Turns what is seen of nodes, their Leases and their pods into writes of conditions and labels."""

    def __init__(self, options: HealthOptions, random: Random) -> None:
        self.statuses: Counter[str] = Counter()
        """How many nodes there are with each status of the Ready condition."""
        self.pods = PodReadiness(options.marking, random)
        self._sight = Sight(options.patience)
        self._silence = SilenceKeeper(options.patience, self._sight, random)
        self._labels = LabelKeeper(random)
        self._nodes: dict[str, Node] = {}
        self._listed = False
        self._out: list[h.HealthEffect] = []

    def handle(self, event: h.HealthInput, now: float) -> list[h.HealthEffect]:
        """Take in one event at the time ``now``; return what is to be done, in this order."""
        self._sight.pass_time(now)
        self._take_in(event, now)
        effects, self._out = self._out, []
        effects += self._silence.advance(now)
        effects += self.pods.advance(now, fresh=self._sight.fresh)
        if self._sight.fresh:
            effects += self._labels.advance(now)
        return effects

    def wake_at(self, now: float) -> float | None:
        """Return when to send the next :class:`~taintkeeper.core.messages.Woke`, in seconds since the epoch."""
        times = [self._sight.tick_at, self._silence.wake_at(), self.pods.wake_at(now)]
        if self._sight.fresh:
            times.append(self._labels.wake_at())
        return min((time for time in times if time is not None), default=None)

    def _take_in(self, event: h.HealthInput, now: float) -> None:  # noqa: C901 - a table
        match event:
            case h.LeaseSeen(name, renewed):
                self._silence.lease_seen(name, renewed, now)
            case h.LeaseGone(name):
                self._silence.lease_gone(name)
            case m.NodeSeen(node):
                self._node_seen(node, now)
            case m.NodeGone(name):
                self._node_gone(name, now)
            case m.PodSeen(pod):
                self.pods.pod_seen(pod, now)
            case m.PodGone(uid):
                self.pods.pod_gone(uid)
            case m.Knowledge(fresh):
                self._listed = self._listed or fresh
                self._sight.know(fresh, now)
            case h.LeaseRead():
                self._silence.read(event, now)
            case h.StatusWritten(written):
                self._see_written(written, now)
                self._silence.written(event, now)
            case h.LabelsWritten(written):
                self._see_written(written, now)
                self._labels.written(event, now)
            case h.PodWritten():
                self.pods.written(event, now)
            case m.Woke():
                pass

    def _see_written(self, written: m.NodeWritten, now: float) -> None:
        if written.node is not None and written.name in self._nodes:
            self._node_seen(written.node, now)

    def _node_seen(self, node: Node, now: float) -> None:
        known = self._nodes.get(node.name)
        if known is not None and known.uid != node.uid:
            self._node_gone(node.name, now)
            known = None
        if known is not None and node.older_than(known):
            return
        self._nodes[node.name] = node
        self._count(known, node)
        self._silence.node_seen(node, now)
        self.pods.node_seen(node, now)
        self._labels.node_seen(node)

    def _node_gone(self, name: str, now: float) -> None:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self.statuses[_status(node)] -= 1
        self._silence.node_gone(name)
        self.pods.node_gone(name, now)
        self._labels.node_gone(name)

    def _count(self, known: Node | None, node: Node) -> None:
        self.statuses[_status(node)] += 1
        if known is None:
            # What is there when the first lists are complete is not new, however new to us.
            if self._listed:
                self._out.append(h.NodeRegistered(node))
            return
        before, after = _status(known), _status(node)
        self.statuses[before] -= 1
        if UNREPORTED not in (before, after) and before != after:
            self._out.append(h.ReadyChanged(node, before, after))


def _status(node: Node) -> str:
    condition = node.condition("Ready")
    return UNREPORTED if condition is None else condition.status
