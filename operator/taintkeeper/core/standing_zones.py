"""Which zones stand still as the eviction engine sees them, and whose pods are to be judged anew when that changes."""

import math

from taintkeeper.core.objects import Node
from taintkeeper.core.pauses import NEVER_PAUSED, ZonePauses
from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import Rates


class StandingZones:
    """Follows the nodes of every zone by the same rules as the taint engine does, and keeps the zones' pauses.

    ``listed`` says that all nodes have been seen: before that no zone is judged.
    """

    def __init__(self, rates: Rates) -> None:
        self.listed = False
        self._book = ZoneBook(rates)
        self._members: dict[str, set[str]] = {}
        self._zone_of: dict[str, str] = {}
        self._pauses: dict[str, ZonePauses] = {}

    def place(self, node: Node, now: float) -> bool:
        """Take in a node as it is now; return whether it came to another zone."""
        before = self._zone_of.get(node.name)
        self._book.place(node, now)
        if before == node.zone:
            return False
        self._forget_place(node.name)
        self._zone_of[node.name] = node.zone
        self._members.setdefault(node.zone, set()).add(node.name)
        return before is not None

    def remove(self, name: str) -> None:
        """Forget a node that was deleted."""
        self._book.remove(name)
        self._forget_place(name)

    def judge(self, now: float) -> list[str]:
        """Judge the zones that something happened in; return the nodes of those that stand still or go on from now."""
        if not self.listed:
            return []
        changed = [change.zone for change in self._book.judge(now) if self._note(change.zone, now)]
        return sorted(name for zone in changed for name in self._members.get(zone, ()))

    def pauses(self, zone: str) -> ZonePauses:
        """Return when this zone stood still."""
        return self._pauses.get(zone, NEVER_PAUSED)

    def wake_at(self) -> float | None:
        """Return when :meth:`judge` has something to do though nothing happens, in seconds since the epoch."""
        at = self._book.judge_at()
        return at if self.listed and at < math.inf else None

    def _note(self, zone: str, now: float) -> bool:
        paused = self._book.paused(zone)
        if paused is self.pauses(zone).paused:
            return False
        pauses = self._pauses.setdefault(zone, ZonePauses())
        (pauses.begin if paused else pauses.end)(now)
        return True

    def _forget_place(self, name: str) -> None:
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        self._members[zone].discard(name)
        if not self._members[zone]:
            del self._members[zone]
            self._pauses.pop(zone, None)
