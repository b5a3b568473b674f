"""How many pods of each node are leaving at once, and who waits for that to become fewer."""

from collections import Counter


class Crowds:
    """Counts the pods on their way out of each node, for policies with ``maxConcurrentPerNode``."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._leaving: Counter[str] = Counter()
        self._waiting: dict[str, dict[str, None]] = {}

    def admits(self, node: str, limit: int | None) -> bool:
        """Say whether one more pod may leave the node now, where so many may at once; None for any number."""
        return limit is None or self._leaving[node] < limit

    def leaving(self, node: str) -> int:
        """Return how many pods are on their way out of the node."""
        return self._leaving[node]

    def wait(self, node: str, uid: str) -> None:
        """Let a pod wait until another has left its node."""
        self._waiting.setdefault(node, {})[uid] = None

    def join(self, node: str, uid: str) -> None:
        """Note that a pod is on its way out of the node."""
        if uid not in self._node_of:
            self._node_of[uid] = node
            self._leaving[node] += 1

    def leave(self, uid: str) -> list[str]:
        """Note that a pod is not, or no longer, on its way out; return the pods that need wait no longer."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return []
        self._leaving[node] -= 1
        if self._leaving[node] == 0:
            del self._leaving[node]
        return list(self._waiting.pop(node, ()))
