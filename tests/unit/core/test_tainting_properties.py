"""What holds for the taints of nodes, whatever happens in whatever order."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core.conditions import EXECUTE_KEYS, execute_taint, wanted
from taintkeeper.core.messages import Knowledge, NodeSeen, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node, Taint
from taintkeeper.core.rules import Limit
from taintkeeper.core.taint_messages import PatchTaints
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates
from tests.unit.core.builders import FOREIGN, node
from tests.unit.core.tainting_bench import TaintBench

RATE = 0.5
RATES = Rates(normal=RATE, secondary=RATE, full=RATE, large_cluster_size=0)
OPTIONS = TaintOptions(RATES, grace_seconds=20.0)
ZONES = ("z1", "z2")
NAMES = ("n1", "n2", "n3", "n4", "n5")

Step = tuple[str, Any]

names = st.sampled_from(NAMES)
conditions = st.tuples(st.sampled_from(["Ready", "DiskPressure"]), st.sampled_from(["True", "False", "Unknown"]))
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("condition"), st.tuples(names, conditions)),
    st.tuples(st.just("vanish"), names),
    st.tuples(st.just("cordon"), st.tuples(names, st.booleans())),
    st.tuples(st.just("foreign"), st.tuples(names, st.integers(0, 2))),
    st.tuples(st.just("unseen"), st.tuples(names, st.integers(0, 2))),
    st.tuples(st.just("untaint"), names),
    st.tuples(st.just("move"), st.tuples(names, st.sampled_from(ZONES))),
    st.tuples(st.just("fail"), st.lists(st.sampled_from(list(WriteResult)), max_size=4)),
    st.tuples(st.just("fresh"), st.booleans()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 5.0, 30.0])),
)


def start() -> list[Node]:
    return [
        node(name, FOREIGN, zone=ZONES[number % 2], conditions={"Ready": "True"}) for number, name in enumerate(NAMES)
    ]


@dataclass
class World:
    """The bench, what others have done to the taints, and how often the engine could have begun with a full bucket."""

    latency: float
    options: TaintOptions = OPTIONS
    results: list[WriteResult] = field(default_factory=list)
    foreign: dict[str, set[Taint]] = field(default_factory=lambda: {name: {FOREIGN} for name in NAMES})
    buckets: int = len(ZONES)

    def __post_init__(self) -> None:
        self.bench = TaintBench(*start(), options=self.options, results=self._result, latency=self.latency)

    def _result(self, _patch: PatchTaints, _now: float) -> WriteResult:
        return self.results.pop(0) if self.results else WriteResult.DONE

    def do(self, step: Step) -> None:
        """Let one thing happen."""
        bench = self.bench
        match step:
            case ("condition", (name, (type_, status))):
                bench.condition(name, type_, status)
            case ("vanish", name):
                bench.change(name, conditions=(Condition("DiskPressure", "False"),))
            case ("cordon", (name, unschedulable)):
                bench.change(name, unschedulable=unschedulable)
            case ("foreign" | "unseen" as kind, (name, number)):
                self._taint(
                    name, {Taint(f"foreign-{each}", NO_EXECUTE) for each in range(number)}, seen=kind == "foreign"
                )
            case ("untaint", name):
                self.foreign[name] = set()
                bench.change(name, taints=())
            case ("move", (name, zone)):
                self.buckets += 1  # A zone that loses its last node begins anew with the next one.
                bench.change(name, zone=zone)
            case ("fail", results):
                self.results.extend(results)
            case ("fresh", fresh):
                bench.tell(Knowledge(fresh))
            case ("restart", _):
                self.buckets += len(ZONES)
                bench.restart()
            case ("wait", seconds):
                bench.run_until(bench.now + seconds)

    def _taint(self, name: str, foreign: set[Taint], *, seen: bool) -> None:
        ours = [taint for taint in self.bench.server[name].taints if taint not in self.foreign[name]]
        self.foreign[name] = foreign
        self.bench.change(name, seen=seen, taints=(*ours, *sorted(foreign, key=str)))

    def calm(self) -> None:
        """Let everything be seen, every write go through, and time pass until nothing changes any more."""
        self.results.clear()
        self.bench.tell(*(NodeSeen(each) for each in self.bench.server.values()), Knowledge(True))
        self.bench.run_until(self.bench.now + 600.0)

    def play(self, story: list[Step]) -> None:
        """Let the whole story happen and come to rest."""
        for step in story:
            self.do(step)
        self.calm()


def grants(bench: TaintBench) -> int:
    """Count the NoExecute taints that cost a token: those of nodes that had none, nor were promised one."""
    holding: Counter[str] = Counter()
    total = 0
    for _, patch in bench.of(PatchTaints):
        name = patch.node.name
        had = any(taint.effect == NO_EXECUTE and taint.key in EXECUTE_KEYS for taint in patch.node.taints)
        gets = any(taint.effect == NO_EXECUTE and taint.key in EXECUTE_KEYS for taint in patch.change.taints)
        if gets and not had and not holding[name]:
            total += 1
        holding[name] = int(gets)
    return total


stories = st.lists(steps, min_size=5, max_size=40)
latencies = st.sampled_from([0.0, 0.3, 4.0])
quickly = settings(max_examples=100, derandomize=True, deadline=None)


@quickly
@given(story=stories, latency=latencies)
def test_once_all_is_calm_each_node_has_exactly_the_wanted_taints_beside_the_foreign_ones(
    story: list[Step], latency: float
) -> None:
    world = World(latency)
    world.play(story)
    disrupted = world.bench.engine.book.all_disrupted
    for name, found in world.bench.server.items():
        want = wanted(found)
        expected = {(key, NO_SCHEDULE) for key in want.no_schedule}
        if want.execute is not None and not disrupted:
            expected.add((want.execute, NO_EXECUTE))
        ours = [taint for taint in found.taints if taint not in world.foreign[name]]
        ids = {(taint.key, taint.effect) for taint in ours}
        assert ids - want.unknown == expected
        assert set(found.taints) - set(ours) == world.foreign[name]
        assert all(taint.time_added is not None for taint in ours)


@quickly
@given(story=stories, latency=latencies)
def test_no_write_ever_changes_a_foreign_taint_or_splits_the_twins(story: list[Step], latency: float) -> None:
    world = World(latency)
    world.play(story)
    for _, patch in world.bench.of(PatchTaints):
        want, change = wanted(patch.node), patch.change
        changed = {(taint.key, taint.effect) for taint in (*change.added, *change.removed)}
        assert all(key.startswith("node.kubernetes.io/") for key, _ in changed)
        assert set(change.taints) == (set(patch.node.taints) - set(change.removed)) | set(change.added)
        ids = {(taint.key, taint.effect) for taint in change.taints}
        for taint in change.added:
            assert taint.effect == NO_SCHEDULE or (taint.key, NO_SCHEDULE) in ids
        for taint in change.removed:
            assert (taint.key, NO_EXECUTE) not in ids or taint.effect == NO_EXECUTE
        if want.no_schedule and any(taint.effect == NO_SCHEDULE for taint in patch.node.taints):
            assert any(effect == NO_SCHEDULE for _, effect in ids)


@quickly
@given(story=stories, latency=latencies)
def test_no_more_nodes_get_no_execute_than_the_rate_allows(story: list[Step], latency: float) -> None:
    world = World(latency)
    world.play(story)
    bench = world.bench
    assert grants(bench) <= world.buckets + len(ZONES) * RATE * bench.now + 1e-3


@quickly
@given(story=stories, latency=latencies, cap=st.integers(0, 3), places=st.integers(1, 3))
def test_never_more_nodes_are_evicted_from_than_the_cap_allows_and_all_else_is_as_ever(
    story: list[Step], latency: float, cap: int, places: int
) -> None:
    options = TaintOptions(RATES, grace_seconds=20.0, most_evicting=Limit(cap), concurrency=places)
    world = World(latency, options)
    for step in story:
        world.do(step)
        assert sum(execute_taint(each) is not None for each in world.bench.server.values()) <= cap
    world.calm()
    bench = world.bench
    evicted = [each for each in bench.server.values() if execute_taint(each) is not None]
    deserving = [each for each in bench.server.values() if wanted(each).execute is not None]
    assert len(evicted) <= cap
    assert bench.engine.book.evicting == len(evicted)
    if not bench.engine.book.all_disrupted:
        assert len(evicted) >= min(cap, len(deserving))
    for each in bench.server.values():
        keys = {
            taint.key for taint in each.taints if taint.effect == NO_SCHEDULE and taint not in world.foreign[each.name]
        }
        unknown = {key for key, _ in wanted(each).unknown}
        assert keys - unknown == set(wanted(each).no_schedule)


@quickly
@given(story=stories)
def test_a_node_that_is_right_is_left_alone(story: list[Step]) -> None:
    world = World(0.0)
    world.play(story)
    writes = len(world.bench.of(PatchTaints))
    world.bench.restart()
    world.calm()
    assert len(world.bench.of(PatchTaints)) == writes


@pytest.mark.parametrize("count", [1, 3])
@quickly
@given(letters=st.lists(st.booleans(), min_size=8, max_size=40))
def test_in_any_stretch_of_time_a_zone_yields_no_more_than_rate_and_burst(letters: list[bool], count: int) -> None:
    names_ = [f"n{number}" for number in range(20)]
    bench = TaintBench(*(node(name, conditions={"Ready": "True"}) for name in [*names_, *"abcdefghijklmnopqrstuvwxyz"]))
    for number, failing in enumerate(letters):
        bench.ready("False" if failing else "True", names_[number % 8])
        bench.run_until(bench.now + count)
    bench.run_until(bench.now + 100.0)
    times = [at for at, _ in bench.executed()]
    for first, earlier in enumerate(times):
        for later in range(first, len(times)):
            assert later - first <= 0.1 * (times[later] - earlier) + 1e-3
