"""Finds the nodes that have been silent for too long, makes sure of it, and has them declared Unknown.

A renewed Lease costs one comparison: where a node stands in the queue is looked at again only when its place comes up.
"""

import heapq
from dataclasses import dataclass
from itertools import count
from random import Random

from taintkeeper.core.health import Patience, Sight, Vitals, declaration
from taintkeeper.core.health_messages import (
    DeclaredUnknown,
    FoundAlive,
    HealthEffect,
    LeaseRead,
    PatchStatus,
    ReadLease,
    ReadResult,
    StatusWritten,
)
from taintkeeper.core.messages import WriteResult
from taintkeeper.core.objects import Node
from taintkeeper.core.pacing import WRITE_BACKOFF

AT_ONCE = 16
"""How many nodes may be read or written at the same time."""


@dataclass(slots=True, eq=False)
class Case:
    """A node under observation. ``place`` is its place in the queue, zero for none, ``place_at`` when that comes up.

    ``sent`` is the node as it was when it was last declared Unknown. After something went wrong, nothing is tried
    before ``not_before``, unless the node differs from ``outdated``.
    """

    vitals: Vitals
    place: int = 0
    place_at: float = float("inf")
    sent: Node | None = None
    failures: int = 0
    not_before: float = 0.0
    outdated: str = ""

    @property
    def node(self) -> Node:
        """The node as it was last seen."""
        return self.vitals.node


class SilenceKeeper:
    """All nodes with their signs of life; at most :data:`AT_ONCE` of them are being read or written."""

    def __init__(self, patience: Patience, sight: Sight, random: Random) -> None:
        self._patience = patience
        self._sight = sight
        self._random = random
        self._cases: dict[str, Case] = {}
        self._renewed: dict[str, str] = {}
        self._queue: list[tuple[float, int, Case]] = []
        self._places = count(1)
        self._silent: dict[str, Case] = {}
        self._under_way: dict[str, Case] = {}
        self._out: list[HealthEffect] = []

    def node_seen(self, node: Node, now: float) -> None:
        """Take in the node as it is now; one that takes the place of another is told after that is gone."""
        case = self._cases.get(node.name)
        if case is None:
            case = self._cases[node.name] = Case(Vitals(node, now, self._renewed.get(node.name)))
        else:
            case.vitals.look(node, now)
            if case.outdated not in ("", node.resource_version):
                case.outdated, case.not_before = "", 0.0
        self._watch(case)

    def node_gone(self, name: str) -> None:
        """Forget a node that was deleted; what is under way for it is waited for."""
        case = self._cases.pop(name, None)
        self._silent.pop(name, None)
        if case is not None:
            case.place = 0

    def lease_seen(self, name: str, renewed: str, now: float) -> None:
        """Take in the Lease of a node, whether that is known already or not."""
        self._renewed[name] = renewed
        case = self._cases.get(name)
        if case is not None and case.vitals.hear(renewed, now):
            self._watch(case)

    def lease_gone(self, name: str) -> None:
        """Forget a Lease that was deleted; one that comes back as it was is no sign of life."""
        self._renewed.pop(name, None)

    def read(self, event: LeaseRead, now: float) -> None:
        """Take in what a live read has shown: a sign of life, silence, or nothing."""
        case = self._under_way.pop(event.node, None)
        if event.result is ReadResult.FAILED:
            self._sight.lost(now)
        if case is None or case is not self._cases.get(event.node):
            return
        if event.result is ReadResult.FAILED:
            self._pause(case, now)
        elif event.result is ReadResult.FOUND and case.vitals.hear(event.renewed, now):
            self._out.append(FoundAlive(event.node))
        conditions = declaration(case.node, now) if self._sight.fresh and self._due(case) <= now else ()
        if conditions:
            self._under_way[event.node], case.sent = case, case.node
            self._out.append(PatchStatus(case.node, conditions))
        else:
            self._watch(case)

    def written(self, event: StatusWritten, now: float) -> None:
        """Note how the write of a node's conditions ended; one that failed begins anew, with a live read."""
        name, result = event.written.name, event.written.result
        case = self._under_way.pop(name, None)
        if case is None or case is not self._cases.get(name):
            return
        if result is WriteResult.DONE:
            case.failures = 0
            sign_at = case.vitals.seen_at if case.vitals.sign_at is None else case.vitals.sign_at
            self._out.append(DeclaredUnknown(case.sent or case.node, now - sign_at))
        if event.written.node is None:
            # Until the watch shows a newer node, what we know of it is out of date, or the write would fail again.
            stale = result in (WriteResult.DONE, WriteResult.CONFLICT)
            case.outdated = case.node.resource_version if stale else ""
            self._pause(case, now)
        self._watch(case)

    def advance(self, now: float) -> list[HealthEffect]:
        """Return what is to be done now."""
        if self._sight.fresh:
            self._find_silent(now)
            self._read_silent(now)
        effects, self._out = self._out, []
        return effects

    def wake_at(self) -> float | None:
        """Return when the next place in the queue comes up, in seconds since the epoch."""
        return self._queue[0][0] if self._queue and self._sight.fresh else None

    def _find_silent(self, now: float) -> None:
        while self._queue and self._queue[0][0] <= now:
            _, place, case = heapq.heappop(self._queue)
            if case.place != place:
                continue
            case.place, case.place_at = 0, float("inf")
            if self._due(case) > now:
                self._watch(case)
            elif declaration(case.node, now):
                self._silent[case.node.name] = case

    def _read_silent(self, now: float) -> None:
        while len(self._under_way) < AT_ONCE:
            name = next((name for name in self._silent if name not in self._under_way), None)
            if name is None:
                return
            case = self._silent.pop(name)
            if self._due(case) > now:
                self._watch(case)
                continue
            self._under_way[name] = case
            self._out.append(ReadLease(name))

    def _due(self, case: Case) -> float:
        return max(case.vitals.due(self._patience, self._sight), case.not_before)

    def _pause(self, case: Case, now: float) -> None:
        case.not_before = now + WRITE_BACKOFF.delay(case.failures, self._random)
        case.failures += 1

    def _watch(self, case: Case) -> None:
        """Give the case a place in the queue, unless it has one that comes up in time or is being dealt with."""
        if self._under_way.get(case.node.name) is case:
            return
        due = self._due(case)
        if due < case.place_at:
            case.place, case.place_at = next(self._places), due
            heapq.heappush(self._queue, (due, case.place, case))
