"""Plays the shell around the eviction engine: keeps the time, answers for the API, writes down what comes out."""

import heapq
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, TypeVar

from taintkeeper.core.answers import Answer
from taintkeeper.core.budgets import Budget
from taintkeeper.core.eviction import EvictionEngine
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import (
    BudgetSeen,
    Delete,
    Evict,
    EvictionAnswered,
    EvictionEffect,
    EvictionInput,
    Knowledge,
    NodeGone,
    NodeRead,
    NodeSeen,
    NodeUnread,
    NodeWritten,
    PodGone,
    PodSeen,
    ReadNode,
    Remember,
    Woke,
    WriteResult,
)
from taintkeeper.core.objects import Node, Pod, Taint
from taintkeeper.core.policy_messages import PolicySeen, PolicyWritten, WritePolicyStatus
from tests.unit.core.builders import ACCEPTED, node

Api = Callable[[Any, float], Answer | None]
"""Answers an eviction or a deletion, given the effect and the time; None leaves it unanswered."""
Effect = TypeVar("Effect", bound=EvictionEffect)

MOST_STEPS_AT_ONCE = 5_000
ELSEWHERE = node("elsewhere", zone="elsewhere", conditions={"Ready": "True"})
"""A node in a zone of its own that is always well, so that never everything has failed at once."""


def always(answer: Answer | None) -> Api:
    """Give this answer to everything; None leaves the request unanswered."""
    return lambda _effect, _now: answer


def in_turn(*answers: Answer) -> Api:
    """Give these answers one after the other, and the last one for ever."""
    left = list(answers)
    return lambda _effect, _now: left.pop(0) if len(left) > 1 else left[0]


def until(end: float, answer: Answer, *, then: Answer = ACCEPTED) -> Api:
    """Give one answer up to this time and another one from it on."""
    return lambda _effect, now: answer if now < end else then


class EvictionBench:
    """A cluster of a few objects with the engine in it; time passes only in :meth:`run_until`.

    An accepted pod terminates for ``lingers`` seconds and is then deleted; with ``lingers`` None nothing more is ever
    seen of it. Memories are written to the node as the engine asks for. A node that is read looks as it was last
    seen, unless ``hidden`` holds objects that no watch has told of; ``unreadable`` nodes cannot be read.
    """

    def __init__(
        self,
        *events: EvictionInput,
        api: Api | None = None,
        options: EvictionOptions | None = None,
        fresh: bool = True,
        lingers: float | None = 0.0,
    ) -> None:
        self.now = 0.0
        self.api = api or always(ACCEPTED)
        self.deletion_api = always(ACCEPTED)
        self.lingers = lingers
        self.log: list[tuple[float, EvictionEffect]] = []
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.budgets: dict[str, Budget] = {}
        self.policies: dict[str, PolicySeen] = {}
        self.unanswered: list[Evict | Delete] = []
        self.hidden: dict[str, Node | Pod | None] = {}
        self.unreadable: set[str] = set()
        self._options = options or EvictionOptions()
        self._coming: list[tuple[float, int, EvictionInput]] = []
        self._sequence = count()
        self.engine = self._begin()
        self.tell(*events)
        if fresh:
            self.tell(Knowledge(True))

    def _begin(self) -> EvictionEngine:
        engine = EvictionEngine(self._options, Random(7))
        engine.handle(NodeSeen(ELSEWHERE), self.now)
        return engine

    # What happens in the cluster

    def tell(self, *events: EvictionInput) -> None:
        """Let the engine see these events now."""
        for event in events:
            self._handle(event)
        self._run(self.now)

    def see(self, *objects: Node | Pod | Budget) -> None:
        """Let the engine see these objects as they are now."""
        for found in objects:
            match found:
                case Node():
                    self.tell(NodeSeen(found))
                case Pod():
                    self.tell(PodSeen(found))
                case Budget():
                    self.tell(BudgetSeen(found))

    def taint(self, *taints: Taint, on: str = "n1") -> None:
        """Give the node exactly these taints."""
        self.see(replace(self.nodes[on], taints=taints))

    def answer(self, effect: Evict | Delete, answer: Answer) -> None:
        """Answer a request that the API has left unanswered."""
        self.unanswered.remove(effect)
        self.tell(EvictionAnswered(effect.pod.uid, answer))

    def run_until(self, end: float) -> None:
        """Let time pass, waking the engine whenever it asks for it."""
        self._run(end)
        self.now = end

    def restart(self) -> None:
        """Replace the engine by a new one that knows nothing but what the cluster's objects say."""
        self._coming.clear()
        self.unanswered.clear()
        self.engine = self._begin()
        self.see(*self.nodes.values(), *self.pods.values(), *self.budgets.values())
        self.tell(*self.policies.values(), Knowledge(True))

    # What came of it

    def of(self, kind: type[Effect]) -> list[tuple[float, Effect]]:
        """Return the effects of this kind with their times."""
        return [(at, effect) for at, effect in self.log if isinstance(effect, kind)]

    def posts(self) -> list[tuple[float, str]]:
        """Return when an eviction was posted, and of which pod."""
        return [(at, effect.pod.name) for at, effect in self.of(Evict)]

    def times(self, name: str = "p1") -> list[float]:
        """Return when an eviction of this pod was posted."""
        return [at for at, other in self.posts() if other == name]

    def count(self, state: State) -> int:
        """Return how many pods are in this state, as a metric would show it."""
        return self.engine.queue.tracks.counts[state]

    def _run(self, end: float) -> None:
        steps = 0
        while (at := self._next()) <= end:
            steps = steps + 1 if at <= self.now else 0
            assert steps < MOST_STEPS_AT_ONCE, f"the engine goes in circles at {self.now}"
            self.now = max(self.now, at)
            due = self._coming and self._coming[0][0] <= self.now
            self._handle(heapq.heappop(self._coming)[2] if due else Woke())

    def _next(self) -> float:
        wake_at = self.engine.wake_at(self.now)
        times = [self._coming[0][0]] if self._coming else []
        return min(times if wake_at is None else [*times, wake_at], default=float("inf"))

    def _later(self, at: float, event: EvictionInput) -> None:
        heapq.heappush(self._coming, (at, next(self._sequence), event))

    def _handle(self, event: EvictionInput) -> None:
        self._note(event)
        for effect in self.engine.handle(event, self.now):
            self.log.append((self.now, effect))
            self._carry_out(effect)

    def _note(self, event: EvictionInput) -> None:
        match event:
            case NodeSeen(found):
                self.nodes[found.name] = found
            case NodeGone(name):
                self.nodes.pop(name, None)
            case PodSeen(seen):
                self.pods[seen.ref.uid] = seen
            case PodGone(uid):
                self.pods.pop(uid, None)
            case PolicySeen():
                self.policies[event.name] = event
            case BudgetSeen(seen_budget):
                self.budgets[seen_budget.name] = seen_budget
            case _:
                pass

    def _carry_out(self, effect: EvictionEffect) -> None:
        match effect:
            case WritePolicyStatus(name):
                self._later(self.now, PolicyWritten(name, done=True))
            case Evict(ref) | Delete(ref):
                api = self.api if isinstance(effect, Evict) else self.deletion_api
                answer = api(effect, self.now)
                if answer is None:
                    self.unanswered.append(effect)
                    return
                self._later(self.now, EvictionAnswered(ref.uid, answer))
                if 200 <= answer.status < 300 or answer.status == 404:
                    self._terminate(ref.uid)
            case ReadNode(name):
                self._later(self.now, self._read(name))
            case Remember(name, _, memory):
                self._later(self.now, NodeWritten(name, WriteResult.DONE))
                self._later(self.now, NodeSeen(replace(self.nodes[name], first_seen=dict(memory))))
            case _:
                pass

    def _read(self, name: str) -> EvictionInput:
        if name in self.unreadable:
            return NodeUnread(name, "no answer")
        found = self.hidden.get(name, self.nodes.get(name))
        pods = [self.hidden.get(uid, pod) for uid, pod in self.pods.items() if pod.node == name]
        there = tuple(pod for pod in pods if isinstance(pod, Pod))
        return NodeRead(name, found if isinstance(found, Node) else None, there)

    def _terminate(self, uid: str) -> None:
        if self.lingers is None or uid not in self.pods:
            return
        self._later(self.now, PodSeen(replace(self.pods[uid], deleting=True)))
        self._later(self.now + self.lingers, PodGone(uid))
