"""How fast the nodes of a zone get NoExecute, and what happens when all zones fail at once."""

import pytest

from taintkeeper.core.messages import Knowledge, NodeSeen, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.taint_messages import PatchTaints, ZoneChanged
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates, ZoneState
from tests.unit.core.builders import node, not_ready, reported, unreachable
from tests.unit.core.tainting_bench import Results, TaintBench

EPOCH = 1_750_000_000.0


def zone(name: str, letters: str) -> list[Node]:
    """Return the nodes of a zone, one for each letter: T is ready, F is not, U is unknown."""
    statuses = {"T": "True", "F": "False", "U": "Unknown"}
    return [
        node(f"{name}-{number}", zone=name, conditions={"Ready": statuses[letter]})
        for number, letter in enumerate(letters)
    ]


def down_between(start: float, end: float) -> Results:
    """Let the writes of this stretch of time fail."""
    return lambda _patch, now: WriteResult.FAILED if start <= now < end else WriteResult.DONE


def executed(bench: TaintBench) -> list[str]:
    return [name for _, name in bench.executed()]


def tainted(bench: TaintBench, effect: str = NO_EXECUTE) -> set[str]:
    return {name for name in bench.server if bench.keys(name, effect)}


@pytest.mark.parametrize("start", [0.0, EPOCH], ids=["at zero", "today"])
def test_nodes_of_a_zone_are_tainted_one_by_one_in_order_of_arrival(start: float) -> None:
    bench = TaintBench(*zone("z1", "T" * 10), start=start)
    bench.ready("False", "z1-3", "z1-1")
    bench.run_until(start + 5.0)
    bench.ready("Unknown", "z1-2")
    bench.run_until(start + 100.0)
    assert [name for _, name in bench.executed()] == ["z1-3", "z1-1", "z1-2"]
    assert [at - start for at, _ in bench.executed()] == pytest.approx([0.0, 10.0, 20.0], abs=1e-3)


def test_no_schedule_does_not_wait_for_the_token() -> None:
    bench = TaintBench(*zone("z1", "T" * 10))
    bench.ready("False", "z1-3", "z1-1", "z1-2")
    assert tainted(bench, NO_SCHEDULE) == {"z1-1", "z1-2", "z1-3"}
    assert tainted(bench) == {"z1-3"}


def test_each_zone_has_a_bucket_of_its_own() -> None:
    bench = TaintBench(*zone("z1", "FFTTT"), *zone("z2", "UUTTT"))
    assert executed(bench) == ["z1-0", "z2-0"]
    bench.run_until(10.1)
    assert executed(bench) == ["z1-0", "z2-0", "z1-1", "z2-1"]


@pytest.mark.parametrize(
    ("letters", "rates", "times"),
    [
        pytest.param("FFTTT", Rates(), [0, 10], id="Normal goes at the normal rate"),
        pytest.param("FFTTT", Rates(normal=1.0), [0, 1], id="which may be chosen"),
        pytest.param("FFTTT", Rates(normal=0.0), [], id="even as zero"),
        pytest.param("FFFTT", Rates(), [], id="Partial in a small zone stands still"),
        reported("kubernetes/kubernetes#102908", "Partial in a zone of 20", "F" * 11 + "T" * 9, Rates(), []),
        pytest.param("FFFFTT", Rates(large_cluster_size=5), [0, 100, 200, 300], id="Partial in a large zone is slow"),
        pytest.param("FFFFTT", Rates(large_cluster_size=6), [], id="a zone as large as the threshold is small"),
        pytest.param("FFFTTTT", Rates(unhealthy_threshold=0.4), [], id="the threshold may be chosen"),
    ],
)
def test_the_state_of_a_zone_sets_its_pace(letters: str, rates: Rates, times: list[float]) -> None:
    bench = TaintBench(*zone("z1", letters), options=TaintOptions(rates))
    bench.run_until(400.0)
    assert [at for at, _ in bench.executed()] == pytest.approx(times)


@pytest.mark.reported("kubernetes/kubernetes#102908")
def test_a_zone_of_twenty_counts_as_small_in_a_cluster_of_sixty() -> None:
    bench = TaintBench(*zone("z1", "F" * 12 + "T" * 8), *zone("z2", "T" * 20), *zone("z3", "T" * 20))
    assert next(each.state for each in bench.engine.book.zones()) is ZoneState.PARTIAL
    bench.run_until(3600.0)
    assert bench.executed() == []
    assert len(tainted(bench, NO_SCHEDULE)) == 12


@pytest.mark.parametrize(
    ("rate", "count"),
    [
        reported("kubernetes/kubernetes#70501", "as in a healthy zone", 0.1, 10),
        reported("kubernetes/kubernetes#70501", "not at all", 0.0, 0),
    ],
)
def test_a_full_disruption_of_one_zone_goes_at_its_own_rate(rate: float, count: int) -> None:
    bench = TaintBench(*zone("z1", "F" * 10), *zone("z2", "T"), options=TaintOptions(Rates(full=rate)))
    bench.run_until(95.0)
    assert len(bench.executed()) == count


@pytest.mark.reported("kubernetes/kubernetes#77981")
def test_two_of_two_nodes_down_is_a_full_disruption_that_is_told_once() -> None:
    bench = TaintBench(*zone("", "TT"))
    bench.ready("Unknown")
    bench.run_until(3600.0)
    assert tainted(bench, NO_SCHEDULE) == {"-0", "-1"}
    changes = [effect for _, effect in bench.of(ZoneChanged) if effect.after is ZoneState.FULL]
    assert [(change.before, change.rate, change.all_disrupted) for change in changes] == [(ZoneState.NORMAL, 0.0, True)]
    assert [zone.state for zone in bench.engine.book.zones()] == [ZoneState.FULL]


@pytest.mark.parametrize(
    "letters",
    [
        reported("k3s-io/k3s#1264", "one node of one", "U"),
        reported("kubernetes/kubernetes#77981", "two nodes of two", "UU"),
    ],
)
def test_when_every_zone_has_failed_nothing_is_evicted_and_nothing_is_left_behind(letters: str) -> None:
    bench = TaintBench(*zone("z1", letters))
    bench.run_until(3600.0)
    assert bench.executed() == []
    bench.ready("True")
    bench.run_until(7200.0)
    assert (tainted(bench, NO_SCHEDULE), tainted(bench)) == (set(), set())
    assert bench.executed() == []


def test_when_the_last_zone_fails_all_no_execute_taints_go_and_come_back_after_a_fresh_grace_period() -> None:
    bench = TaintBench(*zone("z1", "FT"), *zone("z2", "TT"), options=TaintOptions(grace_seconds=50.0))
    assert tainted(bench) == {"z1-0"}
    bench.run_until(10.0)
    bench.ready("Unknown")
    assert (tainted(bench), tainted(bench, NO_SCHEDULE)) == (set(), set(bench.server))
    assert {change.zone for _, change in bench.of(ZoneChanged) if change.all_disrupted} == {"z1", "z2"}
    bench.run_until(500.0)
    assert tainted(bench) == set()
    bench.ready("True", "z2-0", "z2-1")
    bench.run_until(549.9)
    assert tainted(bench) == set()
    bench.run_until(550.0)
    assert tainted(bench) == {"z1-0"}
    bench.run_until(600.0)
    assert tainted(bench) == {"z1-0", "z1-1"}


def test_a_second_full_disruption_within_the_grace_period_gives_another_one() -> None:
    bench = TaintBench(*zone("z1", "UU"), *zone("z2", "U"), options=TaintOptions(grace_seconds=50.0))
    for at, status in ((100.0, "True"), (120.0, "Unknown"), (130.0, "True")):
        bench.run_until(at)
        bench.ready(status, "z2-0")
    bench.run_until(179.9)
    assert bench.executed() == []
    bench.run_until(180.0)
    assert executed(bench) == ["z1-0"]


def test_a_taint_that_could_not_be_removed_in_time_does_not_cut_the_grace_period_short() -> None:
    bench = TaintBench(*zone("z1", "FT"), *zone("z2", "T"), results=down_between(10.0, 105.0))
    bench.run_until(10.0)
    bench.ready("Unknown")
    bench.run_until(100.0)
    assert tainted(bench) == {"z1-0"}
    bench.ready("True", "z2-0")
    bench.run_until(149.9)
    assert tainted(bench) == set()
    bench.run_until(150.0)
    assert tainted(bench) == {"z1-0"}


def test_the_grace_period_is_that_of_upstream_unless_chosen_otherwise() -> None:
    assert TaintOptions().grace_seconds == 50.0


def test_in_full_disruption_even_a_node_without_ready_condition_loses_no_execute() -> None:
    silent = node("z1-0", unreachable(), zone="z1", conditions={"DiskPressure": "False"})
    bench = TaintBench(silent, *zone("z2", "F"))
    assert tainted(bench) == set()


@pytest.mark.upstream("TestApplyNoExecuteTaintsToNodesEnqueueTwice")
def test_a_node_that_recovers_while_it_waits_does_not_hold_up_the_others() -> None:
    bench = TaintBench(*zone("z1", "T" * 10))
    bench.ready("False", "z1-0", "z1-1", "z1-2")
    bench.ready("Unknown", "z1-1")
    bench.run_until(5.0)
    bench.ready("True", "z1-1")
    bench.run_until(10.1)
    assert executed(bench) == ["z1-0", "z1-2"]


@pytest.mark.upstream("TestApplyNoExecuteTaints")
def test_a_node_whose_ready_condition_vanishes_while_it_waits_gets_no_taint() -> None:
    bench = TaintBench(*zone("z1", "T" * 10))
    bench.ready("False", "z1-0", "z1-1", "z1-2")
    bench.change("z1-1", conditions=())
    bench.run_until(100.0)
    assert executed(bench) == ["z1-0", "z1-2"]


def test_a_node_that_fails_again_waits_for_another_token() -> None:
    bench = TaintBench(*zone("z1", "T" * 10))
    for at, status in ((0.0, "False"), (1.0, "True"), (2.0, "False")):
        bench.run_until(at)
        bench.ready(status, "z1-0")
    assert tainted(bench, NO_SCHEDULE) == {"z1-0"}
    bench.run_until(100.0)
    assert [at for at, _ in bench.executed()] == pytest.approx([0.0, 10.0])


def test_a_node_that_moves_to_another_zone_waits_there() -> None:
    bench = TaintBench(*zone("z1", "FFTTTT"), *zone("z2", "TTT"))
    bench.run_until(5.0)
    bench.change("z1-1", zone="z2")
    assert bench.executed() == [(0.0, "z1-0"), (5.0, "z1-1")]


def test_a_taint_that_is_there_already_needs_no_token() -> None:
    down = [node(f"z1-{number}", not_ready(), zone="z1", conditions={"Ready": "False"}) for number in range(2)]
    bench = TaintBench(*down, *zone("z2", "T"))
    bench.ready("Unknown", "z1-0", "z1-1")
    assert bench.keys("z1-0", NO_EXECUTE) == bench.keys("z1-1", NO_EXECUTE) == {"unreachable"}


def test_no_token_is_handed_out_while_knowledge_is_stale() -> None:
    bench = TaintBench(*zone("z1", "TTTTT"))
    bench.tell(Knowledge(False))
    bench.ready("False", "z1-0")
    bench.run_until(100.0)
    assert (bench.of(PatchTaints), bench.engine.wake_at(100.0)) == ([], None)
    bench.tell(Knowledge(True))
    assert bench.executed() == [(100.0, "z1-0")]


def test_a_zone_whose_state_changes_tells_state_and_rate() -> None:
    bench = TaintBench(*zone("z1", "TTTTTT"), *zone("z2", "T"))
    for name in ("z1-0", "z1-1", "z1-2", "z1-3", "z1-4", "z1-5"):
        bench.ready("False", name)
    told = [(effect.zone, effect.before.value, effect.after.value, effect.rate) for _, effect in bench.of(ZoneChanged)]
    assert told == [
        ("z1", "Normal", "PartialDisruption", 0.0),
        ("z1", "PartialDisruption", "FullDisruption", 0.1),
    ]
    bench.tell(NodeSeen(bench.server["z1-0"]))
    assert len(bench.of(ZoneChanged)) == 2


def test_excluded_nodes_do_not_count_but_are_tainted() -> None:
    excluded = [node(f"x-{n}", zone="z1", excluded=True, conditions={"Ready": "False"}) for n in range(5)]
    bench = TaintBench(*zone("z1", "TTT"), *excluded)
    bench.run_until(100.0)
    assert tainted(bench) == {f"x-{n}" for n in range(5)}
    assert [(each.size, each.state) for each in bench.engine.book.zones()] == [(3, ZoneState.NORMAL)]
