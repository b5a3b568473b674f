"""The beta labels of a node's operating system and architecture, which follow the stable ones.

The table is ``labelReconcileInfo`` in kubernetes/kubernetes
``pkg/controller/nodelifecycle/node_lifecycle_controller.go``. Pods and volumes from before Kubernetes 1.14 select nodes
by them.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from taintkeeper.core.health_messages import LabelsWritten, PatchLabels
from taintkeeper.core.messages import WriteResult
from taintkeeper.core.objects import Node
from taintkeeper.core.pacing import WRITE_BACKOFF

FOLLOWERS = {"beta.kubernetes.io/os": "kubernetes.io/os", "beta.kubernetes.io/arch": "kubernetes.io/arch"}


@dataclass(slots=True)
class Labelled:
    """A node and the state of the writes of its labels."""

    node: Node
    writing: bool = False
    failures: int = 0
    retry_at: float = 0.0


class LabelKeeper:
    """Keeps the labels of all nodes right, level triggered, with at most one write under way for each node."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._nodes: dict[str, Labelled] = {}
        self._dirty: dict[str, None] = {}
        self._retries: list[tuple[float, str]] = []

    def node_seen(self, node: Node) -> None:
        """Take in the node as it is now; one that takes the place of another is told after that is gone."""
        self._nodes.setdefault(node.name, Labelled(node)).node = node
        if missing_labels(node.labels):
            self._dirty[node.name] = None

    def node_gone(self, name: str) -> None:
        """Forget a node that was deleted."""
        self._nodes.pop(name, None)
        self._dirty.pop(name, None)

    def written(self, event: LabelsWritten, now: float) -> None:
        """Note how a write ended; one that failed is tried again after a growing pause."""
        known = self._nodes.get(event.written.name)
        if known is None or not known.writing:
            return
        known.writing = False
        if event.written.result is WriteResult.DONE:
            known.failures = 0
        else:
            known.failures += 1
        known.retry_at = now + WRITE_BACKOFF.delay(max(0, known.failures - 1), self._random)
        heapq.heappush(self._retries, (known.retry_at, event.written.name))

    def advance(self, now: float) -> list[PatchLabels]:
        """Return the writes that are to be made now."""
        while self._retries and self._retries[0][0] <= now:
            name = heapq.heappop(self._retries)[1]
            if name in self._nodes:
                self._dirty[name] = None
        dirty, self._dirty = self._dirty, {}
        return [patch for name in dirty if (patch := self._patch(self._nodes[name], now)) is not None]

    def wake_at(self) -> float | None:
        """Return when the next failed write is due again, in seconds since the epoch."""
        return self._retries[0][0] if self._retries else None

    @staticmethod
    def _patch(known: Labelled, now: float) -> PatchLabels | None:
        labels = missing_labels(known.node.labels)
        if known.writing or known.retry_at > now or not labels:
            return None
        known.writing = True
        return PatchLabels(known.node, labels)


def missing_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that are to be set so that every beta label equals its stable one."""
    return {
        beta: labels[stable]
        for beta, stable in FOLLOWERS.items()
        if stable in labels and labels.get(beta) != labels[stable]
    }
