"""All zones: who is in them, what state they are in, and who waits there for NoExecute."""

import math
from dataclasses import dataclass, field

from taintkeeper.core.messages import ZoneChanged
from taintkeeper.core.objects import Node
from taintkeeper.core.zones import Rates, ZoneQueue, ZoneState, zone_state


@dataclass(slots=True)
class Zone:
    """A zone. Only nodes that count are in ``ready`` and ``not_ready``; ``members`` are all.

    ``witness`` is the node that was last seen in it.
    """

    name: str
    queue: ZoneQueue
    state: ZoneState = ZoneState.NORMAL
    ready: int = 0
    not_ready: int = 0
    members: int = 0
    witness: Node = field(default_factory=lambda: Node(""))

    @property
    def size(self) -> int:
        """How many nodes count."""
        return self.ready + self.not_ready


class ZoneBook:
    """Counts nodes by zone as they come, go, move and change, and judges the zones they touched."""

    def __init__(self, rates: Rates) -> None:
        self.all_disrupted = False
        self._rates = rates
        self._zones: dict[str, Zone] = {}
        self._places: dict[str, Node] = {}

    def zones(self) -> list[Zone]:
        """Return every zone that has nodes."""
        return list(self._zones.values())

    def queue_of(self, node: Node) -> ZoneQueue:
        """Return the queue in which this node waits; the node must have been placed."""
        return self._zones[node.zone].queue

    def place(self, node: Node, now: float) -> None:
        """Count a node as it is now; one that moved leaves the queue of the zone it came from."""
        before = self._places.get(node.name)
        if before is not None:
            self._count(before, -1)
        if node.zone not in self._zones:
            self._zones[node.zone] = Zone(node.zone, ZoneQueue(self._rates.normal, now))
        self._places[node.name] = node
        self._zones[node.zone].witness = node
        self._count(node, 1)
        if before is not None and before.zone != node.zone:
            self._leave(before)

    def remove(self, name: str) -> None:
        """Count a deleted node no longer."""
        node = self._places.pop(name, None)
        if node is not None:
            self._count(node, -1)
            self._leave(node)

    def judge(self, now: float) -> list[ZoneChanged]:
        """Give every zone the state and rate that its nodes call for; return what became different."""
        states = {zone.name: self._state(zone) for zone in self._zones.values()}
        counting = [states[zone.name] for zone in self._zones.values() if zone.size]
        self.all_disrupted = bool(counting) and all(state is ZoneState.FULL for state in counting)
        changes = []
        for zone in self._zones.values():
            state = states[zone.name]
            rate = 0.0 if self.all_disrupted else self._rates.of(state, zone.size)
            if state is not zone.state or rate != zone.queue.bucket.rate:
                changes.append(ZoneChanged(zone.name, zone.witness, zone.state, state, rate, self.all_disrupted))
            zone.queue.bucket.set_rate(rate, now)
            zone.state = state
        return changes

    def serve(self, now: float) -> list[str]:
        """Return the nodes that get their token now."""
        served = []
        for zone in self._zones.values():
            while (name := zone.queue.take(now)) is not None:
                served.append(name)
        return served

    def next_at(self, now: float) -> float:
        """Return when :meth:`serve` will yield a node, in seconds since the epoch; infinity while it cannot."""
        return min((zone.queue.next_at(now) for zone in self._zones.values()), default=math.inf)

    def _state(self, zone: Zone) -> ZoneState:
        threshold = self._rates.unhealthy_threshold
        return zone_state(ready=zone.ready, not_ready=zone.not_ready, unhealthy_threshold=threshold)

    def _count(self, node: Node, step: int) -> None:
        zone = self._zones[node.zone]
        zone.members += step
        if not node.excluded:
            zone.ready += step * node.ready
            zone.not_ready += step * (not node.ready)

    def _leave(self, node: Node) -> None:
        zone = self._zones[node.zone]
        zone.queue.remove(node.name)
        if zone.members == 0:
            del self._zones[node.zone]
