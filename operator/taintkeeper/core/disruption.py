"""Whether the pods of a failed node are left in the endpoints, since there is nothing better to send requests to.

When every node of a zone is silent, it is rather the network between us and the zone that fails than the zone: its pods
may serve well, and marking them all would make an outage of a service that has none.
"""

from enum import StrEnum

from taintkeeper.core.objects import Node
from taintkeeper.core.zones import ZoneState, zone_state


class Marking(StrEnum):
    """When the pods of a node that is not ready are marked: the values of ``--mark-pods-not-ready``."""

    ALWAYS = "always"
    UNLESS_ZONE = "unless-zone-disrupted"
    UNLESS_ALL = "unless-all-disrupted"


class Disruption:
    """Counts the nodes of each zone that are ready and that are not, and says whose pods are spared."""

    def __init__(self, marking: Marking) -> None:
        self._marking = marking
        self._nodes: dict[str, Node] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._counts: dict[str, list[int]] = {}
        self._spared: set[str] = set()

    def place(self, node: Node) -> list[str]:
        """Count the node as it is now; return the nodes whose pods are no longer spared."""
        self._forget(node.name)
        self._nodes[node.name] = node
        self._members.setdefault(node.zone, {})[node.name] = None
        if not node.excluded:
            self._counts.setdefault(node.zone, [0, 0])[node.ready] += 1
        return self._judge()

    def remove(self, name: str) -> list[str]:
        """Count a deleted node no longer; return the nodes whose pods are no longer spared."""
        self._forget(name)
        return self._judge()

    def spares(self, name: str) -> bool:
        """Say whether the pods of this node stay as they are."""
        return self._nodes[name].zone in self._spared

    def _forget(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        del self._members[node.zone][name]
        if not node.excluded:
            self._counts[node.zone][node.ready] -= 1
        if not self._members[node.zone]:
            del self._members[node.zone]
            self._counts.pop(node.zone, None)

    def _judge(self) -> list[str]:
        if self._marking is Marking.ALWAYS:
            return []
        disrupted = {zone for zone, (bad, good) in self._counts.items() if _full(bad, good)}
        if self._marking is Marking.UNLESS_ALL:
            every = all(zone in disrupted for zone, counts in self._counts.items() if any(counts))
            disrupted = set(self._members) if disrupted and every else set()
        freed, self._spared = self._spared - disrupted, disrupted
        return [name for zone in sorted(freed) for name in self._members.get(zone, ())]


def _full(not_ready: int, ready: int) -> bool:
    return zone_state(ready=ready, not_ready=not_ready, unhealthy_threshold=1.0) is ZoneState.FULL
