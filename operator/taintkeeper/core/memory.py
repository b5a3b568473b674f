"""Keeps on each node the memory of when its taints were first seen, level triggered.

Several operators may do so at once: one in the cluster and one on somebody's laptop. Each writes the whole memory, and
none is told apart from another. They agree since every time that one of them puts on a node is taken over by the
others where it is older than their own. Only what is new on the node is taken over: what one has written or read there
before belongs to a taint that may have been removed and added again since.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from taintkeeper.core.first_seen import executes, plausible, remember
from taintkeeper.core.messages import NodeWritten, Remember, WriteResult
from taintkeeper.core.objects import Node, Taint
from taintkeeper.core.pacing import WRITE_BACKOFF
from taintkeeper.core.policies import TaintPattern, any_matches

SAME_SECONDS = 0.001
PATIENCE_SECONDS = 10.0
"""How long the memory of a node waits to be written on which nobody counts down, while pods have to leave."""
REST_SECONDS = 1.0
"""How long a node is left alone after a write, so that no disagreement of any kind can become a hot loop."""


@dataclass(slots=True)
class NodeMemory:
    """A node, what is remembered of its taints, and what the node itself holds of that.

    ``sent`` is what we wrote last, arrived or not, and ``writing`` says that its answer is still to come. ``answered``
    is the node as it was after our last write, until the watch has caught up with that. ``retry_at`` is when it may be
    written again, and ``queued_at`` what that was when it was put in line, if it is; both in seconds since the epoch.
    ``urgent`` says that a pod counts down by it: should we end now, it must be known.
    """

    node: Node
    memory: dict[str, float]
    written: Mapping[str, float]
    sent: Mapping[str, float] = field(default_factory=dict)
    writing: bool = False
    answered: Node | None = None
    failures: int = 0
    retry_at: float = 0.0
    queued_at: float | None = None
    urgent: bool = False

    def read(self, node: Node) -> None:
        """Take over what somebody else has put on the node, where that is older than what is remembered here.

        The answer to a write may overtake the watch, whose events are then too old to tell what is on the node.
        """
        if self.answered is not None and node.older_than(self.answered):
            return
        self.answered = None
        for name, at in plausible(node.first_seen, node_created=node.created).items():
            known = _holds(self.written, name, at) or _holds(self.sent, name, at)
            if name in self.memory and not known:
                self.memory[name] = min(self.memory[name], at)
        self.written = node.first_seen

    def arrived(self, node: Node | None) -> None:
        """Note that what was sent is on the node, and how the server answered: with the node as it then was, if so."""
        if node is None:
            self.written = self.sent
        elif not node.older_than(self.node):
            self.written, self.answered = node.first_seen, node
        self.failures = 0

    @property
    def due(self) -> bool:
        """Whether the node does not hold what is remembered of it, and no write is under way."""
        return not self.writing and not _same(self.memory, self.written)


class MemoryKeeper:
    """All nodes with their memories, and the writes that bring the nodes up to date.

    ``acts`` says which taints may have a pod leave, and so are remembered. The line of nodes to be written is a heap,
    of which what is out of date is dropped when it comes up. Those whose turn has come while others have to be served
    first stand aside, each until a time of its own.
    """

    def __init__(self, random: Random, acts: Callable[[Taint], bool] = executes) -> None:
        self._random = random
        self._acts = acts
        self._nodes: dict[str, NodeMemory] = {}
        self._line: list[tuple[float, str]] = []
        self._aside: dict[str, float] = {}

    def get(self, name: str) -> NodeMemory | None:
        """Return what is known of the node, or None."""
        return self._nodes.get(name)

    def nodes(self) -> list[Node]:
        """Return every node as it was last seen."""
        return [known.node for known in self._nodes.values()]

    def seen(self, node: Node, now: float) -> bool:
        """Take in the node as it is now; return whether its taints or their times differ from before.

        For a node that is new to us the annotation on it is the memory: a restart goes on where it was left.
        """
        known = self._nodes.get(node.name)
        if known is not None and node.older_than(known.node):
            return False
        if known is None or known.node.uid != node.uid:
            trusted = plausible(node.first_seen, node_created=node.created)
            memory = remember(node.taints, (), trusted, node_created=node.created, now=now, acts=self._acts)
            known = self._nodes[node.name] = NodeMemory(node, memory, node.first_seen)
            changed = True
        else:
            before, old = known.node.taints, known.memory
            known.memory = remember(node.taints, before, old, node_created=node.created, now=now, acts=self._acts)
            known.read(node)
            known.node = node
            changed = before != node.taints or old != known.memory
        self._line_up(known)
        return changed

    def reconsider(self, patterns: Iterable[TaintPattern], now: float) -> list[str]:
        """Take in that other taints than before may act, among those of these patterns; return the nodes with any.

        A taint that begins to act is remembered as first seen now, unless the node itself remembers: it may have been
        seen before the policies were. One that no longer acts is forgotten.
        """
        patterns = tuple(patterns)
        names = [name for name, known in self._nodes.items() if any_matches(patterns, known.node.taints)]
        for name in names:
            known = self._nodes[name]
            known.memory = plausible(known.node.first_seen, node_created=known.node.created) | known.memory
            self.seen(known.node, now)
        return names

    def gone(self, name: str) -> None:
        """Forget a node that was deleted."""
        self._nodes.pop(name, None)
        self._aside.pop(name, None)

    def answered(self, event: NodeWritten, now: float) -> None:
        """Note how a write ended; one that failed is tried again after a growing pause.

        Of the node in the answer only the memory counts. Its taints come with the watch, one change after the other:
        a jump ahead could miss that a taint was removed and added again, and so began anew.
        """
        known = self._nodes.get(event.name)
        if known is None or not known.writing:
            return
        known.writing = False
        if event.result is WriteResult.DONE:
            known.arrived(event.node)
            known.retry_at = now + REST_SECONDS
        else:
            known.retry_at = now + WRITE_BACKOFF.delay(known.failures, self._random)
            known.failures += 1
        self._line_up(known)

    def urge(self, name: str) -> None:
        """Note that a pod counts down on this node: what is remembered is to be on it without delay."""
        known = self._nodes.get(name)
        if known is not None and not known.urgent:
            known.urgent = True
            if self._aside.pop(name, None) is not None:
                self._line_up(known)

    def writes(self, now: float, *, calm: bool = True) -> list[Remember]:
        """Return the writes that are to be made now, at most one under way for each node.

        Unless it is ``calm``, only what is urgent, and what has waited long enough.
        """
        found = []
        while (known := self._next()) is not None and known.retry_at <= now:
            heapq.heappop(self._line)
            known.queued_at = None
            if calm or known.urgent:
                found.append(self._write(known))
            else:
                self._aside.setdefault(known.node.name, now + PATIENCE_SECONDS)
        while self._aside and (calm or next(iter(self._aside.values())) <= now):
            known = self._nodes.get(self._take_aside())
            if known is not None and known.due:
                found.append(self._write(known))
        return found

    def wake_at(self) -> float | None:
        """Return when the next write that had to wait is due, in seconds since the epoch."""
        known = self._next()
        times = [*([known.retry_at] if known else []), *islice(self._aside.values(), 1)]
        return min(times, default=None)

    def _write(self, known: NodeMemory) -> Remember:
        known.sent, known.writing, known.urgent = dict(known.memory), True, False
        return Remember(known.node.name, known.node.uid, known.sent)

    def _take_aside(self) -> str:
        name = next(iter(self._aside))
        del self._aside[name]
        return name

    def _line_up(self, known: NodeMemory) -> None:
        if known.due and known.queued_at is None and known.node.name not in self._aside:
            known.queued_at = known.retry_at
            heapq.heappush(self._line, (known.retry_at, known.node.name))

    def _next(self) -> NodeMemory | None:
        """Return who is to be written first, after dropping those who stand before them and need no write any more."""
        while self._line:
            at, name = self._line[0]
            known = self._nodes.get(name)
            if known is not None and known.queued_at == at:
                if known.due:
                    return known
                known.queued_at = None
            heapq.heappop(self._line)
        return None


def _same(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Compare with a tolerance, since times lose their last digits in the annotation."""
    return left.keys() == right.keys() and all(_holds(left, name, at) for name, at in right.items())


def _holds(memory: Mapping[str, float], name: str, at: float) -> bool:
    return name in memory and abs(memory[name] - at) < SAME_SECONDS
