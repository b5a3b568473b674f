"""Of which nodes every pod that has to leave has been asked to."""

from collections import Counter


class Departures:
    """Counts, for each node, the pods that are still to be asked to leave.

    A node is done with once the last of them has been asked, is gone or may stay. Where we asked one alone, its own
    event has said all there is to say.
    """

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._waiting: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._done: dict[str, None] = {}

    def wait(self, uid: str, node: str) -> None:
        """Note that a pod of the node is still to be asked."""
        if uid not in self._node_of:
            self._node_of[uid] = node
            self._waiting[node] += 1
            self._done.pop(node, None)

    def ask(self, node: str) -> None:
        """Note that a pod of the node was asked, and is leaving."""
        self._asked[node] += 1

    def end(self, uid: str) -> None:
        """Note that a pod need not be asked, any more."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        self._waiting[node] -= 1
        if self._waiting[node] == 0:
            del self._waiting[node]
            if self._asked.pop(node, 0) > 1:
                self._done[node] = None

    def take_done(self) -> list[str]:
        """Return the nodes that are done with, each once."""
        done, self._done = list(self._done), {}
        return done
