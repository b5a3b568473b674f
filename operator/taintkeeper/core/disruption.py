"""Whether the pods of a failed node are left in the endpoints, since there is nothing better to send requests to.

When every node of a zone is silent, it is rather the network between us and the zone that fails than the zone: its pods
may serve well, and marking them all would make an outage of a service that has none.
"""

from collections.abc import Iterable
from enum import StrEnum

from taintkeeper.core.objects import Node
from taintkeeper.core.zones import ZoneState, zone_state


class Marking(StrEnum):
    """When the pods of a node that is not ready are marked: the values of ``--mark-pods-not-ready``."""

    ALWAYS = "always"
    UNLESS_ZONE = "unless-zone-disrupted"
    UNLESS_ALL = "unless-all-disrupted"


class Disruption:
    """Counts the nodes of each zone that are ready and that are not, and says whose pods are spared.

    Whatever happens to a node costs work for the zones that it touched, unless that frees the nodes of others.
    """

    def __init__(self, marking: Marking) -> None:
        self._marking = marking
        self._nodes: dict[str, Node] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._counts: dict[str, list[int]] = {}
        self._full: set[str] = set()
        self._all_full = False

    def place(self, node: Node) -> list[str]:
        """Count the node as it is now; return the nodes whose pods are no longer spared."""
        touched = {node.zone: None} | self._forget(node.name)
        self._nodes[node.name] = node
        self._members.setdefault(node.zone, {})[node.name] = None
        if not node.excluded:
            self._counts.setdefault(node.zone, [0, 0])[node.ready] += 1
        return self._judge(touched)

    def remove(self, name: str) -> list[str]:
        """Count a deleted node no longer; return the nodes whose pods are no longer spared."""
        return self._judge(self._forget(name))

    def spares(self, name: str) -> bool:
        """Say whether the pods of this node stay as they are."""
        if self._marking is Marking.UNLESS_ALL:
            return self._all_full
        return self._marking is Marking.UNLESS_ZONE and self._nodes[name].zone in self._full

    def _forget(self, name: str) -> dict[str, None]:
        """Count a node no longer; return the zone that it was in, if any."""
        node = self._nodes.pop(name, None)
        if node is None:
            return {}
        del self._members[node.zone][name]
        if not self._members[node.zone]:
            del self._members[node.zone]
        if not node.excluded:
            self._counts[node.zone][node.ready] -= 1
            if not any(self._counts[node.zone]):
                del self._counts[node.zone]
        return {node.zone: None}

    def _judge(self, touched: Iterable[str]) -> list[str]:
        ended = [zone for zone in touched if self._recovers(zone)]
        if self._marking is Marking.UNLESS_ALL:
            before, self._all_full = self._all_full, bool(self._full) and len(self._full) == len(self._counts)
            return list(self._nodes) if before and not self._all_full else []
        if self._marking is Marking.UNLESS_ZONE:
            return [name for zone in ended for name in self._members.get(zone, ())]
        return []

    def _recovers(self, zone: str) -> bool:
        """Judge a zone; say whether all of it had failed before, and has not any longer."""
        before = zone in self._full
        if _full(*self._counts.get(zone, (0, 0))):
            self._full.add(zone)
        else:
            self._full.discard(zone)
        return before and zone not in self._full


def _full(not_ready: int, ready: int) -> bool:
    return zone_state(ready=ready, not_ready=not_ready, unhealthy_threshold=1.0) is ZoneState.FULL
