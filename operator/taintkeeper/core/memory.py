"""Keeps on each node the memory of when its taints were first seen, level triggered."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from taintkeeper.core.first_seen import remember
from taintkeeper.core.messages import NodeWritten, Remember, WriteResult
from taintkeeper.core.objects import Node
from taintkeeper.core.pacing import Backoff

WRITE_BACKOFF = Backoff(base=0.5, cap=30.0)
SAME_SECONDS = 0.001


@dataclass(slots=True)
class NodeMemory:
    """A node, what is remembered of its taints, and what the node itself holds of that."""

    node: Node
    memory: dict[str, float]
    written: Mapping[str, float]
    sent: Mapping[str, float] | None = None
    failures: int = 0
    retry_at: float = 0.0


class MemoryKeeper:
    """All nodes with their memories, and the writes that bring the nodes up to date."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._nodes: dict[str, NodeMemory] = {}
        self._dirty: set[str] = set()

    def get(self, name: str) -> NodeMemory | None:
        """Return what is known of the node, or None."""
        return self._nodes.get(name)

    def seen(self, node: Node, now: float) -> bool:
        """Take in the node as it is now; return whether its taints or their times differ from before.

        The annotation on the node is read only when the node is new to us: a restart goes on where it was left, and
        from then on what is remembered here is newer.
        """
        known = self._nodes.get(node.name)
        if known is not None and node.older_than(known.node):
            return False
        if known is None or known.node.uid != node.uid:
            memory = remember(node.taints, (), node.first_seen, node_created=node.created, now=now)
            known = self._nodes[node.name] = NodeMemory(node, memory, node.first_seen)
            changed = True
        else:
            before, old = known.node.taints, known.memory
            known.memory = remember(node.taints, before, old, node_created=node.created, now=now)
            known.node, known.written = node, node.first_seen
            changed = before != node.taints or old != known.memory
        if not _same(known.memory, known.written):
            self._dirty.add(node.name)
        return changed

    def gone(self, name: str) -> None:
        """Forget a node that was deleted."""
        self._nodes.pop(name, None)
        self._dirty.discard(name)

    def answered(self, event: NodeWritten, now: float) -> None:
        """Note how a write ended; one that failed is tried again after a growing pause."""
        known = self._nodes.get(event.name)
        if known is None:
            return
        if event.result is WriteResult.DONE:
            known.written, known.failures = known.sent or {}, 0
        else:
            known.retry_at = now + WRITE_BACKOFF.delay(known.failures, self._random)
            known.failures += 1
        known.sent = None
        self._dirty.add(event.name)

    def writes(self, now: float) -> list[Remember]:
        """Return the writes that are to be made now, at most one under way for each node."""
        found = []
        for name in sorted(self._dirty):
            known = self._nodes[name]
            if _same(known.memory, known.written):
                self._dirty.discard(name)
            elif known.sent is None and known.retry_at <= now:
                self._dirty.discard(name)
                known.sent = dict(known.memory)
                found.append(Remember(name, known.node.uid, known.sent))
        return found

    def wake_at(self) -> float | None:
        """Return when the next failed write is due again, in seconds since the epoch."""
        waiting = (self._nodes[name] for name in self._dirty)
        return min((known.retry_at for known in waiting if known.sent is None), default=None)


def _same(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Compare with a tolerance, since times lose their last digits in the annotation."""
    return left.keys() == right.keys() and all(abs(left[key] - right[key]) < SAME_SECONDS for key in left)
