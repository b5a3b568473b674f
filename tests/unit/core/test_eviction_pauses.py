"""While a zone stands still, countdowns caused by its failing nodes do not run; everything else goes on."""

from dataclasses import replace

import pytest

from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.first_seen import UNREACHABLE
from taintkeeper.core.messages import Cancelled, EvictionInput, Knowledge, NodeSeen, Paused, PodSeen
from taintkeeper.core.pauses import REMEMBERED, ZonePauses
from taintkeeper.core.zones import Rates
from tests.unit.core.builders import FOO, HELD_BY_BUDGET, budget, lasting, no_execute, node, pod
from tests.unit.core.eviction_bench import ELSEWHERE, EvictionBench, always

READY, SILENT = {"Ready": "True"}, {"Ready": "Unknown"}
OPTIONS = EvictionOptions(rates=Rates(cooldown_seconds=0.0))
SILENT_AND_TAINTED = node("n1", no_execute(UNREACHABLE, 0.0), zone="a", conditions=SILENT)
TIMED = pod("p1", lasting(UNREACHABLE, 100))


def zone(silent: int, *, of: int = 5) -> list[EvictionInput]:
    """The other nodes of the zone, so many of which are silent."""
    return [
        NodeSeen(node(f"a{number}", zone="a", conditions=SILENT if number < silent else READY)) for number in range(of)
    ]


def world(*more: EvictionInput, options: EvictionOptions = OPTIONS) -> EvictionBench:
    """A tainted node of zone a that is silent, with a pod that tolerates this for 100 s; zone b is well."""
    well = NodeSeen(node("b1", zone="b", conditions=READY))
    return EvictionBench(NodeSeen(SILENT_AND_TAINTED), well, *zone(0), PodSeen(TIMED), *more, options=options)


def fail(bench: EvictionBench) -> None:
    """Let most of the zone fail, which stops it, since it is small."""
    bench.tell(*zone(4))


def recover(bench: EvictionBench) -> None:
    """Let the zone's other nodes come back."""
    bench.tell(*zone(0))


def test_a_countdown_does_not_run_while_the_zone_stands_still() -> None:
    bench = world()
    bench.run_until(40.0)
    fail(bench)
    bench.run_until(1040.0)
    assert (bench.posts(), bench.count(State.STANDING)) == ([], 1)
    recover(bench)
    bench.run_until(2000.0)
    assert bench.times() == [1100.0]


def test_each_pause_is_told_once() -> None:
    bench = world()
    for at in (10.0, 30.0):
        bench.run_until(at)
        fail(bench)
        bench.see(replace(TIMED, labels={"changed": str(at)}))
        bench.run_until(at + 10.0)
        recover(bench)
    assert [(at, effect.node) for at, effect in bench.of(Paused)] == [(10.0, "n1"), (30.0, "n1")]
    bench.run_until(1000.0)
    assert bench.times() == [120.0]


def test_a_taint_set_by_hand_counts_on() -> None:
    bench = world(PodSeen(pod("p2", lasting(UNREACHABLE, 50), lasting("foo", 60))))
    bench.see(replace(SILENT_AND_TAINTED, taints=(*SILENT_AND_TAINTED.taints, FOO)))
    fail(bench)
    bench.run_until(1000.0)
    assert bench.posts() == [(0.0, "p1"), (60.0, "p2")]


def test_an_eviction_that_a_budget_holds_is_not_tried_while_the_zone_stands_still() -> None:
    bench = EvictionBench(
        NodeSeen(SILENT_AND_TAINTED), *zone(0), PodSeen(pod("p1")), options=OPTIONS, api=always(HELD_BY_BUDGET)
    )
    bench.see(budget())
    bench.run_until(20.0)
    fail(bench)
    tried = len(bench.posts())
    bench.run_until(600.0)
    assert (len(bench.posts()), bench.count(State.STANDING)) == (tried, 1)
    recover(bench)
    bench.run_until(700.0)
    assert len(bench.posts()) > tried


def test_when_all_zones_have_failed_nothing_counts() -> None:
    bench = world()
    bench.tell(*zone(5))
    bench.see(*(replace(each, conditions=SILENT_AND_TAINTED.conditions) for each in (ELSEWHERE, bench.nodes["b1"])))
    bench.run_until(1000.0)
    assert bench.posts() == []


def test_a_zone_that_failed_in_full_goes_on_as_long_as_its_rate_says_so() -> None:
    bench = world()
    bench.tell(*zone(5))
    bench.run_until(1000.0)
    assert bench.times() == [100.0]


def test_a_full_disruption_at_rate_zero_stands_still() -> None:
    bench = world(options=EvictionOptions(rates=Rates(full=0.0, cooldown_seconds=0.0)))
    bench.tell(*zone(5))
    bench.run_until(1000.0)
    assert bench.posts() == []


def test_the_cooldown_after_a_storm_is_part_of_the_pause() -> None:
    bench = world(options=EvictionOptions(rates=Rates(cooldown_seconds=60.0)))
    bench.run_until(40.0)
    fail(bench)
    bench.run_until(140.0)
    recover(bench)
    bench.run_until(1000.0)
    assert bench.times() == [260.0]


def test_a_node_that_moves_to_a_zone_that_goes_on_counts_there() -> None:
    bench = world()
    fail(bench)
    bench.run_until(50.0)
    bench.see(replace(SILENT_AND_TAINTED, zone="b"))
    bench.run_until(1000.0)
    assert bench.times() == [100.0]


def test_a_taint_that_goes_during_a_pause_cancels() -> None:
    bench = world()
    fail(bench)
    bench.run_until(50.0)
    bench.see(replace(SILENT_AND_TAINTED, taints=()))
    assert [at for at, _ in bench.of(Cancelled)] == [50.0]
    recover(bench)
    bench.run_until(1000.0)
    assert bench.posts() == []


def test_zones_are_judged_only_once_all_nodes_have_been_seen() -> None:
    first = [NodeSeen(SILENT_AND_TAINTED), *zone(3, of=3), PodSeen(TIMED)]
    rest = [NodeSeen(node(f"r{number}", zone="a", conditions=READY)) for number in range(20)]
    bench = EvictionBench(*first, *rest, Knowledge(True), options=OPTIONS)
    bench.run_until(1000.0)
    assert bench.of(Paused) == []
    assert bench.times() == [100.0]


# The pauses themselves


@pytest.mark.parametrize(
    ("since", "lost"),
    [(0.0, 15.0), (10.0, 15.0), (15.0, 10.0), (25.0, 5.0), (45.0, 0.0)],
    ids=["before all", "at the begin", "amid the first", "between", "after all"],
)
def test_only_what_lies_behind_the_start_of_a_countdown_is_lost_to_it(since: float, lost: float) -> None:
    pauses = ZonePauses()
    for begin, end in ((10.0, 20.0), (30.0, 35.0)):
        pauses.begin(begin)
        pauses.begin(begin + 1.0)
        pauses.end(end)
        pauses.end(end + 1.0)
    assert pauses.lost(since, 50.0) == lost
    assert not pauses.paused


def test_a_zone_that_fails_again_and_again_costs_no_more_memory() -> None:
    pauses = ZonePauses()
    for number in range(1_000):
        pauses.begin(2.0 * number)
        pauses.end(2.0 * number + 1.0)
    assert len(pauses.spans) == REMEMBERED
    assert pauses.lost(1_990.0, 2_000.0) == 5.0
