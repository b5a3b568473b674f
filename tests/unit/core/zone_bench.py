"""Zones spelled as letters, for tests of the zone book."""

from taintkeeper.core.objects import Node
from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import Rates
from tests.unit.core.builders import node

Zones = dict[str, str]
"""Zone to the readiness of its nodes: T, F or U for True, False, Unknown, "-" for a missing condition.

A small letter is a node that does not count.
"""

LETTERS = {"T": "True", "F": "False", "U": "Unknown"}

RATES = Rates(normal=0.1, secondary=0.01, full=0.2, large_cluster_size=4)


def member(zone: str, number: int, letter: str) -> Node:
    """Return the node of this number in the zone."""
    letter, excluded = letter.upper(), letter.islower()
    conditions = {"Ready": LETTERS[letter]} if letter in LETTERS else {}
    return node(f"{zone}-{number}", zone=zone, excluded=excluded, conditions=conditions)


def place(book: ZoneBook, zones: Zones) -> None:
    """Have the book see all these nodes."""
    for zone, letters in zones.items():
        for number, letter in enumerate(letters):
            book.place(member(zone, number, letter), 0.0)


def rates(book: ZoneBook) -> dict[str, float]:
    """Return the rate of each zone."""
    return {zone.name: zone.queue.bucket.rate for zone in book.zones()}
