"""How fast zones go after a disruption, which of them stand still, and when there is something to do."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core import zone_book
from taintkeeper.core.objects import Node
from taintkeeper.core.zone_book import ZoneBook
from taintkeeper.core.zones import ZoneState, zone_state
from tests.unit.core.zone_bench import RATES, Zones, member, place, rates


@pytest.mark.parametrize(
    ("before", "after", "during", "afterwards"),
    [
        pytest.param("FFFT", "FFTT", 0.0, 0.1, id="from Partial to Normal"),
        pytest.param("TTFFFF", "TTTFFF", 0.01, 0.1, id="from Partial in a large zone to Normal"),
        pytest.param("FFFF", "FFFT", 0.0, 0.0, id="from Full to Partial"),
        pytest.param("FFFFFF", "FFFFFT", 0.01, 0.01, id="from Full to Partial in a large zone"),
        pytest.param("TTTT", "FFFT", 0.0, 0.0, id="from Normal to Partial"),
        pytest.param("FFFT", "FFFF", 0.2, 0.2, id="from Partial to Full"),
    ],
)
def test_a_zone_that_got_better_keeps_the_lower_rate_for_the_cooldown(
    before: str, after: str, during: float, afterwards: float
) -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": before, "z2": "T"})
    book.judge(0.0)
    place(book, {"z1": after})
    book.judge(100.0)
    assert rates(book)["z1"] == during
    book.judge(159.9)
    assert rates(book)["z1"] == during
    book.judge(160.0)
    assert rates(book)["z1"] == afterwards


def test_a_cooldown_names_the_time_of_its_end_and_ends_once() -> None:
    book = ZoneBook(RATES)
    assert book.judge_at() == math.inf
    for at, letters in (
        (0.0, {"z1": "FFFT", "z2": "FFFT"}),
        (10.0, {"z1": "FFTT"}),
        (20.0, {"z2": "FFTT"}),
        (30.0, {"z1": "FFFT"}),
        (40.0, {"z1": "FFTT"}),
    ):
        place(book, letters)
        book.judge(at)
    assert book.judge_at() == 80.0
    assert [(each.zone, each.rate, each.cooling) for each in book.judge(80.0)] == [("z2", 0.1, False)]
    assert book.judge_at() == 100.0
    assert [(each.zone, each.rate, each.cooling) for each in book.judge(100.0)] == [("z1", 0.1, False)]
    assert book.judge_at() == math.inf


def test_no_cooldown_names_no_time() -> None:
    book = ZoneBook(replace(RATES, cooldown_seconds=0.0))
    place(book, {"z1": "FFFT"})
    book.judge(0.0)
    place(book, {"z1": "FFTT"})
    assert [each.cooling for each in book.judge(1.0)] == [False]
    assert book.judge_at() == math.inf


def test_a_zone_whose_nodes_are_gone_while_one_waited_names_no_time() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "F", "z2": "T"})
    book.judge(0.0)
    book.wait(member("z1", 0, "F"), 0.0)
    book.remove("z1-0")
    assert (book.next_at(), book.serve(0.0)) == (math.inf, [])


def test_a_zone_that_comes_back_after_all_its_nodes_were_gone_begins_anew() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "FFFT", "z2": "T"})
    book.judge(0.0)
    place(book, {"z1": "FFTT"})
    book.judge(1.0)
    for number in range(4):
        book.remove(f"z1-{number}")
    assert book.judge_at() == math.inf
    place(book, {"z1": "FFTT"})
    book.judge(2.0)
    assert rates(book)["z1"] == 0.1


@pytest.mark.parametrize(
    ("zones", "paused"),
    [
        pytest.param({"z1": "TTF"}, [], id="normal"),
        pytest.param({"z1": "TFFF", "z2": "TF"}, ["z1"], id="partial and small"),
        pytest.param({"z1": "TTFFFF"}, [], id="partial and large"),
        pytest.param({"z1": "FF", "z2": "T"}, [], id="full beside a healthy zone"),
        pytest.param({"z1": "FF", "z2": "F"}, ["z1", "z2"], id="all full"),
    ],
)
def test_a_zone_whose_rate_is_zero_is_paused(zones: Zones, paused: list[str]) -> None:
    book = ZoneBook(RATES)
    place(book, zones)
    book.judge(0.0)
    assert [name for name in ("z1", "z2", "unheard") if book.paused(name)] == paused


def test_a_zone_stays_paused_during_its_cooldown() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "FFFT"})
    book.judge(0.0)
    place(book, {"z1": "FFTT"})
    book.judge(10.0)
    assert book.paused("z1")
    book.judge(book.judge_at())
    assert not book.paused("z1")


def test_an_event_costs_work_for_the_zone_that_it_touched_only(monkeypatch: pytest.MonkeyPatch) -> None:
    book = ZoneBook(RATES)
    place(book, {f"z{number}": "TF" for number in range(100)})
    book.judge(0.0)
    judged: list[int] = []

    def counting(*, ready: int, not_ready: int, unhealthy_threshold: float) -> ZoneState:
        judged.append(ready)
        return zone_state(ready=ready, not_ready=not_ready, unhealthy_threshold=unhealthy_threshold)

    monkeypatch.setattr(zone_book, "zone_state", counting)
    place(book, {"z7": "FF"})
    book.judge(1.0)
    assert len(judged) == 1
    book.judge(2.0)
    assert len(judged) == 1


def test_when_the_last_zone_is_gone_that_was_well_all_are_disrupted() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "F", "z2": "T"})
    book.judge(0.0)
    book.remove("z2-0")
    book.judge(1.0)
    assert (book.all_disrupted, rates(book)) == (True, {"z1": 0.0})
    place(book, {"z2": "T"})
    book.judge(2.0)
    assert (book.all_disrupted, rates(book)) == (False, {"z1": 0.2, "z2": 0.1})
    book.remove("z1-0")
    book.judge(3.0)
    assert not book.all_disrupted


def test_a_node_that_no_longer_waits_leaves_no_time_to_wake() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "FFT"})
    book.judge(0.0)
    first, second = member("z1", 0, "F"), member("z1", 1, "F")
    book.wait(first, 0.0)
    assert book.serve(0.0) == ["z1-0"]
    for _ in range(3):
        book.wait(second, 1.0)
        assert book.next_at() == pytest.approx(10.0)
        book.forgo(second)
        assert book.next_at() == math.inf


def test_a_zone_waits_for_one_token_however_many_nodes_come() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "T" * 500})
    book.judge(0.0)
    for number in range(200):
        book.wait(member("z1", number, "T"), number / 1000.0)
        book.serve(number / 1000.0)
    assert len(book._due) == 1


def test_a_rate_that_changes_moves_the_time_of_the_next_token() -> None:
    book = ZoneBook(RATES)
    place(book, {"z1": "FFTTT"})
    book.judge(0.0)
    for number in (0, 1):
        book.wait(member("z1", number, "F"), 0.0)
    assert book.serve(0.0) == ["z1-0"]
    place(book, {"z1": "FFFFT"})
    book.judge(5.0)
    assert book.next_at() == pytest.approx(55.0)
    assert book.serve(10.0) == []
    place(book, {"z1": "FFFTF", "z2": "T"})
    book.place(member("z1", 3, "F"), 5.0)
    book.judge(5.0)
    assert book.next_at() == pytest.approx(7.5)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    story=st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from("TFUtf-x"), st.sampled_from(["z1", "z2", "z3"])), max_size=40
    )
)
def test_zones_judged_as_things_happen_are_as_if_all_had_happened_at_once(story: list[tuple[int, str, str]]) -> None:
    options = replace(RATES, cooldown_seconds=0.0)
    book = ZoneBook(options)
    nodes: dict[str, Node] = {}
    for number, letter, zone in story:
        changed = replace(member(zone, number, letter), name=f"n{number}")
        if letter == "x":
            nodes.pop(changed.name, None)
            book.remove(changed.name)
        else:
            nodes[changed.name] = changed
            book.place(changed, 0.0)
        book.judge(0.0)
    anew = ZoneBook(options)
    for each in nodes.values():
        anew.place(each, 0.0)
    anew.judge(0.0)
    assert book.all_disrupted is anew.all_disrupted
    assert rates(book) == rates(anew)
    assert {zone.name: zone.state for zone in book.zones()} == {zone.name: zone.state for zone in anew.zones()}
    assert {name for name in rates(book) if book.paused(name)} == {name for name in rates(anew) if anew.paused(name)}
