"""All zones: who is in them, what state they are in, and who waits there."""

import math

import pytest

from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import Rates, ZoneState
from tests.unit.core.builders import case, node
from tests.unit.core.zone_bench import RATES, Zones, member, place, rates

NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL


def states(book: ZoneBook) -> dict[str, ZoneState]:
    book.judge(0.0)
    return {zone.name: zone.state for zone in book.zones()}


def health(name: str, before: Zones, first: list[ZoneState], after: Zones, then: list[ZoneState]) -> object:
    """Return a row of upstream's TestMonitorNodeHealth: nodes and the states of z1, z2, and an hour later."""
    return case(f"TestMonitorNodeHealth: {name}", before, first, after, then)


@pytest.mark.parametrize(
    ("before", "first", "after", "then"),
    [
        health(
            "No Disruption: Node created recently without failure domain labels (happens only at cluster startup)",
            {"": "T"}, [NORMAL], {"": "T"}, [NORMAL],
        ),
        health(
            "No Disruption: Initially both zones down, one comes back",
            {"z1": "U", "z2": "U"}, [FULL, FULL], {"z1": "U", "z2": "T"}, [FULL, NORMAL],
        ),
        health(
            "Partial Disruption: Nodes created recently without status conditions (happens only at cluster startup)",
            {"z1": "----"}, [FULL], {"z1": "UUUT"}, [PARTIAL],
        ),
        health(
            "Partial Disruption: one Node failed leading to the number of healthy Nodes to exceed the configured "
            "threshold",
            {"z1": "UUTTT"}, [NORMAL], {"z1": "UUUTT"}, [PARTIAL],
        ),
        health(
            "Full Disruption: the zone has less than 2 Nodes down, the last healthy Node has failed",
            {"z1": "UUT"}, [NORMAL], {"z1": "UUU"}, [FULL],
        ),
        health(
            "Full Disruption: all the Nodes in one zone are down",
            {"z1": "U", "z2": "T"}, [FULL, NORMAL], {"z1": "U", "z2": "T"}, [FULL, NORMAL],
        ),
        health(
            "Full Disruption: all the Nodes in both the zones are down",
            {"z1": "U", "z2": "U"}, [FULL, FULL], {"z1": "U", "z2": "U"}, [FULL, FULL],
        ),
        health("Full Disruption: Ready condition removed from the Node", {"z1": "T"}, [NORMAL], {"z1": "-"}, [FULL]),
        health(
            "Full Disruption: the only available Node has the node.kubernetes.io/exclude-disruption label",
            {"z1": "Ut"}, [FULL], {"z1": "Ut"}, [FULL],
        ),
    ],
)  # fmt: skip
def test_zones_get_the_state_that_their_nodes_call_for(
    before: Zones, first: list[ZoneState], after: Zones, then: list[ZoneState]
) -> None:
    book = ZoneBook(Rates())
    place(book, before)
    assert list(states(book).values()) == first
    place(book, after)
    assert list(states(book).values()) == then


@pytest.mark.upstream("Test_isNodeExcludedFromDisruptionChecks")
def test_an_excluded_node_leaves_the_count_only() -> None:
    book = ZoneBook(Rates())
    place(book, {"z1": "TfuU"})
    (zone,) = book.zones()
    assert (zone.ready, zone.not_ready, zone.size, zone.members) == (1, 1, 2, 4)
    excluded = member("z1", 1, "f")
    book.wait(excluded, 0.0)
    assert book.serve(0.0) == ["z1-1"]


def test_a_node_is_counted_by_what_it_is_now() -> None:
    book = ZoneBook(Rates())
    place(book, {"z1": "TTT"})
    for letter, expected in (("F", (2, 1)), ("u", (2, 0)), ("-", (2, 1)), ("T", (3, 0))):
        book.place(member("z1", 0, letter), 0.0)
        (zone,) = book.zones()
        assert (zone.ready, zone.not_ready, zone.members) == (*expected, 3)
    book.remove("z1-0")
    book.remove("z1-0")
    (zone,) = book.zones()
    assert (zone.ready, zone.not_ready, zone.members) == (2, 0, 2)


def test_a_node_that_moves_leaves_the_queue_it_came_from() -> None:
    book = ZoneBook(Rates())
    place(book, {"z1": "FT", "z2": "T"})
    moved = node("z1-0", zone="z2", conditions={"Ready": "False"})
    book.wait(member("z1", 0, "F"), 0.0)
    book.place(moved, 0.0)
    assert [len(zone.queue) for zone in book.zones()] == [0, 0]
    assert {zone.name: (zone.ready, zone.not_ready) for zone in book.zones()} == {"z1": (1, 0), "z2": (1, 1)}


def test_a_zone_without_nodes_is_forgotten() -> None:
    book = ZoneBook(Rates())
    place(book, {"z1": "F", "z2": "T"})
    book.remove("z1-0")
    assert [zone.name for zone in book.zones()] == ["z2"]
    book.place(node("z2-0", zone="z3", conditions={"Ready": "True"}), 0.0)
    assert [zone.name for zone in book.zones()] == ["z3"]


@pytest.mark.parametrize(
    ("zones", "disrupted"),
    [
        pytest.param({}, False, id="no zones at all"),
        pytest.param({"z1": "F"}, True, id="the only zone"),
        pytest.param({"z1": "F", "z2": "UU"}, True, id="every zone"),
        pytest.param({"z1": "F", "z2": "FFT"}, False, id="one zone has a node left"),
        pytest.param({"z1": "F", "z2": "t"}, True, id="a zone in which no node counts has no say"),
        pytest.param({"z1": "t"}, False, id="no node counts anywhere"),
    ],
)
def test_all_are_disrupted_when_every_zone_that_counts_is(zones: Zones, *, disrupted: bool) -> None:
    book = ZoneBook(Rates())
    place(book, zones)
    book.judge(0.0)
    assert book.all_disrupted is disrupted


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param({"z1": "TTF"}, {"z1": 0.1}, id="normal"),
        pytest.param({"z1": "TFFF"}, {"z1": 0.0}, id="partial and small"),
        pytest.param({"z1": "TTFFFF"}, {"z1": 0.01}, id="partial and large"),
        pytest.param({"z1": "TFFFtttt"}, {"z1": 0.0}, id="excluded nodes do not make a zone large"),
        pytest.param({"z1": "FF", "z2": "T"}, {"z1": 0.2, "z2": 0.1}, id="full beside a healthy zone"),
        pytest.param({"z1": "FF", "z2": "F"}, {"z1": 0.0, "z2": 0.0}, id="all full"),
    ],
)
def test_a_zone_goes_at_the_rate_of_its_state(zones: Zones, expected: dict[str, float]) -> None:
    book = ZoneBook(RATES)
    place(book, zones)
    book.judge(0.0)
    assert rates(book) == expected


def test_the_zones_that_became_different_are_told_once() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "TT", "z2": "T"})
    assert book.judge(0.0) == []
    place(book, {"z1": "FF"})
    (change,) = book.judge(1.0)
    assert (change.zone, change.before, change.after, change.rate, change.all_disrupted) == (
        "z1",
        NORMAL,
        FULL,
        0.2,
        False,
    )
    assert change.witness.name == "z1-1"
    assert book.judge(2.0) == []
    place(book, {"z2": "F"})
    changes = {change.zone: (change.after, change.rate, change.all_disrupted) for change in book.judge(3.0)}
    assert changes == {"z1": (FULL, 0.0, True), "z2": (FULL, 0.0, True)}


def test_each_zone_serves_its_own_nodes_at_its_own_rate() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "FFT", "z2": "FFT"})
    book.judge(0.0)
    assert book.next_at() == math.inf
    for zone in ("z1", "z2"):
        for number in (0, 1):
            book.wait(member(zone, number, "F"), 0.0)
    assert book.serve(0.0) == ["z1-0", "z2-0"]
    assert book.serve(0.0) == []
    assert book.next_at() == pytest.approx(10.0)
    assert book.serve(10.0) == ["z1-1", "z2-1"]
