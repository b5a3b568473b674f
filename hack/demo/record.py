"""Keeps what the API shows, as it is now and as it came to be."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from demo.clock import Clock
from demo.facts import BudgetMoved, Fact, Gone, Left, Runs, TaintsChanged, Told
from demo.reading import (
    NO_EXECUTE,
    allowed,
    condition,
    is_leaving,
    is_ready,
    name_of,
    node_of,
    selects,
    spelled,
    taints_of,
    tolerated_seconds,
    uid_of,
)
from testbed.client import Object

CANCELLED = "Cancelling deletion"
BLOCKED = "EvictionBlocked"
MOMENT = 0.5
"""How far apart two watches may tell of things that happened in the other order."""


@dataclass(slots=True)
class Span:
    """From when to when a taint was on a node."""

    node: str
    taint: Object
    start: float
    end: float = math.inf


class Record:
    """Takes in objects as watches show them, and tells each fact once, when it is seen.

    Args:
        clock: the story's.
    """

    def __init__(self, clock: Clock) -> None:
        self.listeners: list[Callable[[Fact], None]] = []
        self.nodes: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.budgets: dict[str, Object] = {}
        self.facts: list[Fact] = []
        self.spans: list[Span] = []
        self.fewest: dict[str, int] = {}
        """By budget: how few of its pods were available at any moment since :meth:`guard`."""
        self._clock = clock
        self._by_hand: dict[tuple[str, str], float] = {}
        self._take: Mapping[str, Callable[[Object, bool], None]] = {
            "nodes": self._take_node,
            "pods": self._take_pod,
            "poddisruptionbudgets": self._take_budget,
            "events": self._take_event,
        }

    def take(self, resource: str, value: Object, *, deleted: bool = False) -> None:
        """Take in an object as it is now, or was before it was deleted."""
        self._take[resource](value, deleted)

    def set_by_hand(self, node: str, taint: str) -> None:
        """Note that this taint is put on a node now: it counts from here, since it carries no time of its own."""
        self._by_hand[node, taint] = self._clock.now()

    def guard(self) -> None:
        """Begin to count how few pods of each budget are available."""
        self.fewest = {name: self.available(budget) for name, budget in self.budgets.items()}

    def available(self, budget: Object) -> int:
        """Return how many pods of a budget are ready and not on their way out."""
        return sum(is_ready(pod) and not is_leaving(pod) and selects(budget, pod) for pod in self.pods.values())

    def pods_on(self, node: str) -> list[Object]:
        """Return the pods on a node that have not been told to end, by name."""
        staying = [pod for pod in self.pods.values() if node_of(pod) == node and not is_leaving(pod)]
        return sorted(staying, key=name_of)

    def budget_of(self, pod: Object) -> Object | None:
        """Return the budget that counts a pod, if any."""
        return next((budget for budget in self.budgets.values() if selects(budget, pod)), None)

    def lefts(self) -> list[Left]:
        """Return who was told to end, the first first."""
        return [fact for fact in self.facts if isinstance(fact, Left)]

    def left(self, pod: Object) -> Left | None:
        """Return when and how this pod was told to end, if it was."""
        return next((fact for fact in self.lefts() if uid_of(fact.pod) == uid_of(pod)), None)

    def told(self, about: str, reason: str, text: str = "") -> Told | None:
        """Return the first event about an object with this reason and text."""
        events = [fact for fact in self.facts if isinstance(fact, Told)]
        return next((e for e in events if (e.about, e.reason) == (about, reason) and text in e.message), None)

    def tainted_at(self, node: str, taints: frozenset[str]) -> float | None:
        """Return when a node got all of these taints in one write, if it did."""
        changes = [fact for fact in self.facts if isinstance(fact, TaintsChanged) and name_of(fact.node) == node]
        return next((change.at for change in changes if taints <= set(change.added)), None)

    def opened(self, budget: str, after: float) -> float | None:
        """Return when a budget first allowed an eviction after this moment."""
        moves = [fact for fact in self.facts if isinstance(fact, BudgetMoved) and name_of(fact.budget) == budget]
        return next((move.at for move in moves if move.at > after and allowed(move.budget) > 0), None)

    def sentence(self, left: Left) -> tuple[Span, float] | None:
        """Return the taint that a pod left for, with the seconds that it tolerated it; None where none was due."""
        node = node_of(left.pod)
        spans = [s for s in self.spans if s.node == node and s.start - MOMENT <= left.at <= s.end + MOMENT]
        found = [(span, tolerated_seconds(left.pod, span.taint)) for span in spans]
        return min(
            (each for each in found if each[1] < math.inf), key=lambda each: each[0].start + each[1], default=None
        )

    def _add(self, fact: Fact) -> None:
        self.facts.append(fact)
        for listener in self.listeners:
            listener(fact)

    def _take_node(self, node: Object, deleted: bool) -> None:
        name, now = name_of(node), self._clock.now()
        before = taints_of(self.nodes[name]) if name in self.nodes else {}
        after = {} if deleted else taints_of(node)
        self.nodes[name] = node
        added, removed = tuple(after.keys() - before.keys()), tuple(before.keys() - after.keys())
        for taint in added:
            if after[taint]["effect"] == NO_EXECUTE:
                self.spans.append(Span(name, after[taint], self._start(name, taint, after[taint])))
        for span in self.spans:
            if span.node == name and spelled(span.taint) in removed:
                span.end = min(span.end, now)
        if added or removed:
            self._add(TaintsChanged(now, node, tuple(sorted(added)), tuple(sorted(removed))))

    def _start(self, node: str, taint: str, value: Object) -> float:
        if added := value.get("timeAdded"):
            return self._clock.at(added)
        return self._by_hand.get((node, taint), self._clock.now())

    def _take_pod(self, pod: Object, deleted: bool) -> None:
        uid, now = uid_of(pod), self._clock.now()
        before = self.pods.pop(uid, None)
        if not deleted:
            self.pods[uid] = pod
        for name, budget in self.budgets.items():
            if name in self.fewest:
                self.fewest[name] = min(self.fewest[name], self.available(budget))
        if (deleted or is_leaving(pod)) and before is not None and not is_leaving(before):
            self._add(Left(now, pod, condition(pod, "DisruptionTarget").get("reason", "")))
        if deleted:
            self._add(Gone(now, pod))
        elif is_ready(pod) and not (before and is_ready(before)):
            self._add(Runs(now, pod))

    def _take_budget(self, budget: Object, deleted: bool) -> None:
        name = name_of(budget)
        before = self.budgets.get(name, {})
        if deleted:
            self.budgets.pop(name, None)
            return
        self.budgets[name] = budget
        if allowed(before) != allowed(budget):
            self._add(BudgetMoved(self._clock.now(), budget))

    def _take_event(self, event: Object, deleted: bool) -> None:
        if event.get("source", {}).get("component") == "taintkeeper" and not deleted:
            about = event["involvedObject"]["name"]
            self._add(Told(self._clock.now(), about, event["reason"], event["message"]))
