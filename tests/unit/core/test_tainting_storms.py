"""What keeps an outage from becoming a mass eviction: cooldown after a disruption, a cap over all zones, flapping."""

from typing import Any

import pytest

from taintkeeper.core.messages import Knowledge, NodeSeen, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.rules import Limit
from taintkeeper.core.taint_messages import ReadyFlipped, ZoneChanged
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates, ZoneState
from tests.unit.core.builders import node, not_ready, reported
from tests.unit.core.tainting_bench import TaintBench, failing

NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL
STATUSES = {"T": "True", "F": "False", "U": "Unknown"}


def zone(name: str, letters: str) -> list[Node]:
    """Return the nodes of a zone, one for each letter: T is ready, F is not, U is unknown."""
    return [
        node(f"{name}-{number}", zone=name, conditions={"Ready": STATUSES[letter]})
        for number, letter in enumerate(letters)
    ]


def tainted(bench: TaintBench) -> set[str]:
    return {name for name in bench.server if bench.keys(name, NO_EXECUTE)}


def told(bench: TaintBench, name: str = "z1") -> list[tuple[float, ZoneState, float, bool]]:
    return [(at, each.after, each.rate, each.cooling) for at, each in bench.of(ZoneChanged) if each.zone == name]


# Cooldown


@pytest.mark.reported("medik8s/node-healthcheck-operator#378")
def test_after_a_partial_disruption_a_zone_stands_still_for_the_cooldown() -> None:
    bench = TaintBench(*zone("z1", "F" * 12 + "T" * 8))
    bench.run_until(100.0)
    bench.ready("True", "z1-0", "z1-1")
    bench.run_until(159.9)
    assert tainted(bench) == set()
    bench.run_until(160.0)
    assert tainted(bench) == {"z1-2"}
    bench.run_until(170.1)
    assert tainted(bench) == {"z1-2", "z1-3"}
    assert told(bench) == [(0.0, PARTIAL, 0.0, False), (100.0, NORMAL, 0.0, True), (160.0, NORMAL, 0.1, False)]


def test_a_zone_that_gets_worse_and_better_again_starts_another_cooldown() -> None:
    bench = TaintBench(*zone("z1", "F" * 12 + "T" * 8))
    for at, status in ((100.0, "True"), (130.0, "False"), (140.0, "True")):
        bench.run_until(at)
        bench.ready(status, "z1-0", "z1-1")
    bench.run_until(199.9)
    assert tainted(bench) == set()
    bench.run_until(200.0)
    assert tainted(bench) == {"z1-2"}


@pytest.mark.parametrize(
    ("cooldown", "at"),
    [pytest.param(0.0, 100.0, id="none"), pytest.param(300.0, 400.0, id="five minutes")],
)
def test_the_cooldown_may_be_chosen(cooldown: float, at: float) -> None:
    bench = TaintBench(*zone("z1", "FFFTT"), options=TaintOptions(Rates(cooldown_seconds=cooldown)))
    bench.run_until(100.0)
    bench.ready("True", "z1-0")
    bench.run_until(1000.0)
    assert bench.executed()[0][0] == pytest.approx(at)


def test_a_zone_that_gets_worse_does_not_wait_for_a_cooldown() -> None:
    bench = TaintBench(*zone("z1", "FFFT"), *zone("z2", "T"))
    bench.run_until(10.0)
    bench.ready("False", "z1-3")
    assert bench.executed() == [(10.0, "z1-0")]


def test_a_zone_that_went_slowly_goes_on_slowly_for_the_cooldown() -> None:
    rates = Rates(secondary=0.02, large_cluster_size=3)
    bench = TaintBench(*zone("z1", "FFFFTT"), options=TaintOptions(rates))
    bench.run_until(1.0)
    bench.ready("True", "z1-3")
    bench.run_until(65.0)
    assert bench.executed() == [(0.0, "z1-0"), (pytest.approx(50.0), "z1-1")]
    bench.run_until(80.0)
    assert [name for _, name in bench.executed()] == ["z1-0", "z1-1", "z1-2"]


def test_a_zone_that_leaves_a_disruption_of_all_zones_has_a_cooldown_too() -> None:
    bench = TaintBench(*zone("z1", "FFFF"), options=TaintOptions(grace_seconds=10.0))
    bench.run_until(100.0)
    bench.ready("True", "z1-0", "z1-1")
    bench.run_until(159.9)
    assert tainted(bench) == set()
    bench.run_until(160.0)
    assert tainted(bench) == {"z1-2"}


def test_the_cooldown_of_a_zone_whose_nodes_are_all_gone_ends_with_it() -> None:
    bench = TaintBench(*zone("z1", "FFFTT"), *zone("z2", "T"))
    bench.run_until(10.0)
    bench.ready("True", "z1-0")
    for name in [name for name in bench.server if name.startswith("z1")]:
        bench.delete(name)
    assert bench.engine.wake_at(10.0) is None
    bench.add(*zone("z1", "FT"))
    assert bench.executed() == [(10.0, "z1-0")]


# A cap over all zones


def capped(*nodes: Node, limit: Limit, **more: Any) -> TaintBench:
    return TaintBench(*nodes, options=TaintOptions(most_evicting=limit), **more)


FIVE = [each for number in range(5) for each in zone(f"z{number}", "FTT")]


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        reported("kubernetes-sigs/karpenter node.health (20 %)", "three nodes", Limit(3), 3),
        reported("kubernetes-sigs/karpenter node.health (20 %)", "a fifth of fifteen", Limit(20, percent=True), 3),
        pytest.param(Limit(0), 0, id="none at all"),
        pytest.param(Limit(5), 5, id="as many as there are"),
    ],
)
def test_so_many_nodes_of_all_zones_are_tainted_no_execute_at_once(limit: Limit, count: int) -> None:
    bench = capped(*FIVE, limit=limit)
    bench.run_until(3600.0)
    assert len(tainted(bench)) == count
    assert all(bench.keys(f"z{number}-0", NO_SCHEDULE) == {"not-ready"} for number in range(5))
    assert bench.engine.wake_at(3600.0) is None


def test_without_a_cap_every_zone_goes_on() -> None:
    bench = TaintBench(*FIVE)
    assert len(tainted(bench)) == 5


@pytest.mark.parametrize("way", ["recovers", "is deleted", "is freed by hand"])
def test_a_node_that_waits_is_tainted_as_soon_as_another_makes_room(way: str) -> None:
    bench = capped(*FIVE, limit=Limit(3))
    bench.run_until(100.0)
    assert tainted(bench) == {"z0-0", "z1-0", "z2-0"}
    if way == "recovers":
        bench.ready("True", "z1-0")
    elif way == "is deleted":
        bench.delete("z1-0")
    else:
        bench.change("z1-0", taints=())
    assert tainted(bench) == {"z0-0", "z2-0", "z3-0"}
    assert bench.engine.book.evicting == 3


def test_taints_that_are_there_already_count_and_stay() -> None:
    there = [node(f"old-{number}", not_ready(), zone="z9", conditions={"Ready": "False"}) for number in range(4)]
    bench = capped(*there, *zone("z9", "TTTTTT"), *FIVE, limit=Limit(3))
    bench.run_until(100.0)
    assert tainted(bench) == {each.name for each in there}
    bench.ready("Unknown", "old-0")
    assert bench.keys("old-0", NO_EXECUTE) == {"unreachable"}


def test_a_token_counts_from_when_it_is_given_even_while_its_write_fails() -> None:
    bench = capped(*FIVE, limit=Limit(1), results=failing(*[WriteResult.FAILED] * 30))
    assert [name for _, name in bench.executed()] == ["z0-0"]
    bench.run_until(3600.0)
    assert tainted(bench) == {"z0-0"}
    assert bench.engine.book.evicting == 1


def test_more_nodes_may_be_tainted_as_a_cluster_grows() -> None:
    bench = capped(*zone("z1", "FFTTT"), limit=Limit(20, percent=True))
    bench.run_until(100.0)
    assert tainted(bench) == {"z1-0"}
    bench.add(*zone("z2", "TTTTT"))
    assert tainted(bench) == {"z1-0", "z1-1"}


def test_a_node_that_moves_with_its_token_is_counted_once() -> None:
    bench = capped(*FIVE, limit=Limit(3), latency=5.0)
    bench.run_until(1.0)
    bench.change("z0-0", zone="z4")
    bench.run_until(100.0)
    bench.ready("True")
    bench.run_until(200.0)
    assert bench.engine.book.evicting == 0


# Flapping


@pytest.mark.reported("medik8s/node-healthcheck-operator#238")
def test_a_node_that_is_ready_for_three_seconds_costs_a_write_each_way_and_another_token() -> None:
    bench = TaintBench(*zone("z1", "TTTTT"))
    bench.ready("False", "z1-0")
    bench.run_until(60.0)
    written = len(bench.writes("z1-0"))
    bench.ready("True", "z1-0")
    bench.run_until(63.0)
    bench.ready("False", "z1-0")
    bench.run_until(600.0)
    assert len(bench.writes("z1-0")) - written == 2
    assert [at for at, _ in bench.executed()] == [0.0, 63.0]


@pytest.mark.reported("kubernetes/kubernetes#12041")
@pytest.mark.parametrize("latency", [0.0, 2.0, 45.0])
def test_a_node_that_flaps_costs_two_writes_a_round_at_most_and_is_counted(latency: float) -> None:
    bench = TaintBench(*zone("z1", "TTTTT"), latency=latency)
    for number in range(20):
        bench.ready("True" if number % 2 else "False", "z1-0")
        bench.run_until(30.0 * (number + 1))
    bench.run_until(1000.0)
    assert len(bench.writes("z1-0")) <= 20
    assert len(bench.of(ReadyFlipped)) == 20
    assert bench.server["z1-0"].taints == ()


def test_nodes_that_flap_get_no_execute_no_faster_than_their_zone_allows() -> None:
    bench = TaintBench(*zone("z1", "T" * 20))
    for number in range(120):
        bench.ready("True" if number % 2 else "False", "z1-0", "z1-1")
        bench.run_until(float(number + 1))
    assert len(bench.executed()) <= 13


def test_only_a_change_of_readiness_is_a_flap() -> None:
    bench = TaintBench(*zone("z1", "TTTTT"))
    bench.tell(NodeSeen(bench.server["z1-0"]))
    bench.condition("z1-0", "DiskPressure", "True")
    bench.tell(Knowledge(False), Knowledge(True))
    assert bench.of(ReadyFlipped) == []
    bench.ready("False", "z1-0")
    bench.ready("Unknown", "z1-0")
    bench.ready("True", "z1-0")
    assert [effect.node.ready for _, effect in bench.of(ReadyFlipped)] == [False, True]
