"""All zones: who is in them, what state they are in, and who waits there for NoExecute.

Whatever happens costs work for the zones that it touched, not for all: a cluster at the edge has a zone for each site.
"""

import heapq
import math
from dataclasses import dataclass, field

from taintkeeper.core.conditions import execute_taint
from taintkeeper.core.objects import NO_EXECUTE, Node
from taintkeeper.core.rules import Limit
from taintkeeper.core.taint_messages import ZoneChanged
from taintkeeper.core.zones import Rates, ZoneQueue, ZoneState, zone_state


@dataclass(slots=True)
class Zone:
    """A zone. Only nodes that count are in ``ready`` and ``not_ready``; ``members`` are all.

    ``witness`` is the node that was last seen in it. ``held_rate`` is the most that it may go at until ``held_until``,
    in seconds since the epoch. ``due`` is when it asked to be served.
    """

    name: str
    queue: ZoneQueue
    state: ZoneState = ZoneState.NORMAL
    ready: int = 0
    not_ready: int = 0
    members: int = 0
    witness: Node = field(default_factory=lambda: Node(""))
    held_rate: float = math.inf
    held_until: float = -math.inf
    due: float = math.inf

    @property
    def size(self) -> int:
        """How many nodes count."""
        return self.ready + self.not_ready


class ZoneBook:
    """Counts nodes by zone as they come, go, move and change, and judges the zones they touched.

    Place and remove nodes, then :meth:`judge`, and again at the time that :meth:`judge_at` names. Who only wants to
    know which zones stand still asks :meth:`paused` after that; who taints lets nodes :meth:`wait` and then
    :meth:`serve`. ``most_evicting`` limits how many nodes of all may be tainted NoExecute at once.
    """

    def __init__(self, rates: Rates, most_evicting: Limit | None = None) -> None:
        self.all_disrupted = False
        self._rates = rates
        self._most_evicting = most_evicting
        self._zones: dict[str, Zone] = {}
        self._places: dict[str, Node] = {}
        self._evicting = 0
        self._touched: dict[str, None] = {}
        self._counting: set[str] = set()
        self._full: set[str] = set()
        self._cooling: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []

    @property
    def evicting(self) -> int:
        """How many nodes have a NoExecute taint of ours, for a condition or by a rule, or got their token for one."""
        return self._evicting

    @property
    def most_evicting(self) -> float:
        """How many that may be at once; infinity where there is no limit."""
        return math.inf if self._most_evicting is None else self._most_evicting.of(len(self._places))

    def zones(self) -> list[Zone]:
        """Return every zone that has nodes."""
        return list(self._zones.values())

    def paused(self, zone: str) -> bool:
        """Say whether no node of this zone may be tainted NoExecute now, since too much of it, or all else, failed."""
        found = self._zones.get(zone)
        return found is not None and found.queue.bucket.rate <= 0.0

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
        """Give the zones that were touched the state and rate that their nodes call for; return what has changed."""
        self._end_cooldowns(now)
        touched = [self._zones[name] for name in self._touched if name in self._zones]
        self._touched.clear()
        states = {zone.name: self._assess(zone) for zone in touched}
        all_disrupted = bool(self._counting) and len(self._full) == len(self._counting)
        if all_disrupted is not self.all_disrupted:
            self.all_disrupted = all_disrupted
            touched = self.zones()
        judged = (self._enter(zone, states.get(zone.name, zone.state), now) for zone in touched)
        return [change for change in judged if change is not None]

    def judge_at(self) -> float:
        """Return when a zone's cooldown ends and :meth:`judge` is due, in seconds since the epoch, or infinity."""
        return next(iter(self._cooling.values()), math.inf)

    def wait(self, node: Node, now: float) -> None:
        """Let a node that has been placed wait for a token, unless it does or has got one."""
        zone = self._zones[node.zone]
        zone.queue.add(node.name)
        if zone.due == math.inf:
            self._schedule(zone, now)

    def forgo(self, node: Node) -> None:
        """Let a node neither wait for a token nor keep one."""
        zone = self._zones[node.zone]
        self._evicting -= zone.queue.granted(node.name)
        zone.queue.remove(node.name)
        if not len(zone.queue):
            zone.due = math.inf

    def granted(self, node: Node) -> bool:
        """Say whether a node that has been placed has got its token."""
        return self._zones[node.zone].queue.granted(node.name)

    def serve(self, now: float) -> list[str]:
        """Return the nodes that get their token now."""
        names: list[str] = []
        zones: list[Zone] = []
        while self.next_at() <= now:
            zone = self._zones[heapq.heappop(self._due)[1]]
            zone.due = math.inf
            zones.append(zone)
            if (name := zone.queue.take(now)) is not None:
                self._evicting += 1
                names.append(name)
        for zone in zones:
            self._schedule(zone, now)
        return names

    def next_at(self) -> float:
        """Return when :meth:`serve` will yield a node, in seconds since the epoch; infinity while it cannot."""
        while self._due and not self._is_due(*self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due and self._evicting < self.most_evicting else math.inf

    def _is_due(self, at: float, name: str) -> bool:
        return name in self._zones and self._zones[name].due == at

    def _schedule(self, zone: Zone, now: float) -> None:
        zone.due = zone.queue.next_at(now)
        if zone.due < math.inf:
            heapq.heappush(self._due, (zone.due, zone.name))

    def _end_cooldowns(self, now: float) -> None:
        while self.judge_at() <= now:
            name = next(iter(self._cooling))
            del self._cooling[name]
            self._touched[name] = None

    def _assess(self, zone: Zone) -> ZoneState:
        threshold = self._rates.unhealthy_threshold
        state = zone_state(ready=zone.ready, not_ready=zone.not_ready, unhealthy_threshold=threshold)
        _put(self._counting, zone.name, present=zone.size > 0)
        _put(self._full, zone.name, present=state is ZoneState.FULL)
        return state

    def _enter(self, zone: Zone, state: ZoneState, now: float) -> ZoneChanged | None:
        before, rate_before = zone.state, zone.queue.bucket.rate
        if state.milder_than(before) and self._rates.cooldown_seconds > 0.0:
            self._cool(zone, rate_before, now)
        own = 0.0 if self.all_disrupted else self._rates.of(state, zone.size)
        rate = min(own, zone.held_rate) if now < zone.held_until else own
        zone.state = state
        if rate != rate_before:
            zone.queue.bucket.set_rate(rate, now)
            self._schedule(zone, now)
        if state is before and rate == rate_before:
            return None
        return ZoneChanged(zone.name, zone.witness, before, state, rate, self.all_disrupted, cooling=rate < own)

    def _cool(self, zone: Zone, rate: float, now: float) -> None:
        zone.held_rate, zone.held_until = rate, now + self._rates.cooldown_seconds
        self._cooling.pop(zone.name, None)
        self._cooling[zone.name] = zone.held_until

    def _count(self, node: Node, step: int) -> None:
        zone = self._zones[node.zone]
        self._touched[zone.name] = None
        self._evicting += step * _evicts(node)
        zone.members += step
        if not node.excluded:
            zone.ready += step * node.ready
            zone.not_ready += step * (not node.ready)

    def _leave(self, node: Node) -> None:
        self.forgo(node)
        if self._zones[node.zone].members == 0:
            del self._zones[node.zone]
            self._counting.discard(node.zone)
            self._full.discard(node.zone)
            self._cooling.pop(node.zone, None)


def _evicts(node: Node) -> bool:
    by_rule = any(taint.effect == NO_EXECUTE and (taint.key, taint.effect) in node.rule_taints for taint in node.taints)
    return by_rule or execute_taint(node) is not None


def _put(names: set[str], name: str, *, present: bool) -> None:
    if present:
        names.add(name)
    else:
        names.discard(name)
