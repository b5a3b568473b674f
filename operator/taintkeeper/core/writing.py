"""The writes of taints: one under way for each node, so many altogether, and pauses after those that failed."""

import heapq
import math
from dataclasses import dataclass, field
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core import taint_messages as t
from taintkeeper.core.conditions import TaintId
from taintkeeper.core.objects import Node
from taintkeeper.core.pacing import WRITE_BACKOFF

CONCURRENT_WRITES = 256
"""So many that 500 nodes are written within 5 s by an API server that takes 2 s for each."""


@dataclass(slots=True)
class Writing:
    """The state of the writes to one node. ``sent`` is the write under way; times in seconds since the epoch.

    ``conflicted`` is the version of the node that is known to be out of date. ``lost`` are the taints that somebody
    removed although they are called for.
    """

    sent: t.PatchTaints | None = None
    failures: int = 0
    retry_at: float = -math.inf
    conflicted: str = ""
    lost: set[TaintId] = field(default_factory=set)


class Writes:
    """Who is being written, who has to pause, and who waits for a place.

    Those who wait are planned anew when it is their turn: by then their node may have changed, and a write that was
    planned before would end in a conflict.
    """

    def __init__(self, concurrency: int, random: Random) -> None:
        self._concurrency = concurrency
        self._random = random
        self._nodes: dict[str, Writing] = {}
        self._under_way = 0
        self._urgent: dict[str, None] = {}
        self._patient: dict[str, None] = {}
        self._pauses: list[tuple[float, str]] = []

    @property
    def has_place(self) -> bool:
        """Whether another write may be sent."""
        return self._under_way < self._concurrency

    def of(self, name: str) -> Writing:
        """Return the state of a node's writes."""
        return self._nodes.setdefault(name, Writing())

    def forget(self, name: str) -> None:
        """Forget a node that is gone; a write that is under way still takes its place until it is answered."""
        self._nodes.pop(name, None)
        self._urgent.pop(name, None)
        self._patient.pop(name, None)

    def may_begin(self, node: Node, now: float) -> bool:
        """Say whether nothing keeps this node from being written but a place."""
        writing = self.of(node.name)
        outdated = writing.conflicted in ("", node.resource_version)
        return writing.sent is None and not (writing.retry_at > now and outdated)

    def begin(self, patch: t.PatchTaints) -> None:
        """Note that this write is sent."""
        self.of(patch.node.name).sent = patch
        self._under_way += 1

    def end(self, event: m.NodeWritten, now: float) -> t.PatchTaints | None:
        """Note the answer to a write and return it, None where it is about a node that is gone since."""
        self._under_way = max(0, self._under_way - 1)
        writing = self._nodes.get(event.name)
        if writing is None or writing.sent is None:
            return None
        if event.node is not None and event.node.uid != writing.sent.node.uid:
            return None
        sent, writing.sent = writing.sent, None
        if event.result is not m.WriteResult.DONE or event.node is None:
            # Until the watch shows a newer node, what we know of it is out of date, or the write would fail again.
            outdated = event.result in (m.WriteResult.DONE, m.WriteResult.CONFLICT)
            writing.conflicted = sent.node.resource_version if outdated else ""
            writing.retry_at = now + WRITE_BACKOFF.delay(writing.failures, self._random)
            writing.failures += 1
            self.look_again(event.name, writing.retry_at)
        return sent

    def stand_by(self, name: str, *, urgent: bool) -> None:
        """Let a node wait for a place, behind those that wait already and are as urgent."""
        (self._urgent if urgent else self._patient).setdefault(name)

    def next_in_line(self) -> str | None:
        """Return who is to be written next if there is a place, and let them wait no longer."""
        line = self._urgent or self._patient
        if not line or not self.has_place:
            return None
        name = next(iter(line))
        del line[name]
        return name

    def look_again(self, name: str, at: float) -> None:
        """Have a node looked at again at this time, in seconds since the epoch."""
        heapq.heappush(self._pauses, (at, name))

    def due(self, now: float) -> list[str]:
        """Return the nodes that are to be looked at again by now."""
        names = []
        while self.next_at() <= now:
            names.append(heapq.heappop(self._pauses)[1])
        return names

    def next_at(self) -> float:
        """Return when the next node is to be looked at again, in seconds since the epoch, or infinity."""
        return self._pauses[0][0] if self._pauses else math.inf
