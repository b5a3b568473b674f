"""What holds for the health of nodes, whatever happens in whatever order."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core import health_messages as h
from taintkeeper.core.health import JUDGED_CONDITIONS, Patience
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.messages import Knowledge, Woke, WriteResult
from taintkeeper.core.pod_readiness import AT_ONCE
from tests.unit.core.builders import node, pod
from tests.unit.core.health_bench import HealthBench

GRACE, STARTUP = 10.0, 15.0
OPTIONS = HealthOptions(Patience(grace=GRACE, startup=STARTUP))
NAMES = ("n1", "n2", "n3")
CALM_SECONDS = 1000.0

Step = tuple[str, Any]

names = st.sampled_from(NAMES)
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("renew"), names),
    st.tuples(st.just("report"), st.tuples(names, st.sampled_from(["True", "False"]))),
    st.tuples(st.just("change"), names),
    st.tuples(st.just("pod"), st.tuples(names, st.integers(0, 20))),
    st.tuples(st.just("unseen"), names),
    st.tuples(st.just("reads"), st.lists(st.sampled_from([None, *h.ReadResult]), max_size=4)),
    st.tuples(st.just("statuses"), st.lists(st.sampled_from(list(WriteResult)), max_size=4)),
    st.tuples(st.just("marks"), st.lists(st.sampled_from(list(h.PodResult)), max_size=4)),
    st.tuples(st.just("fresh"), st.booleans()),
    st.tuples(st.just("stall"), st.sampled_from([2.0, 12.0])),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("again"), names),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 5.0, 11.0])),
)


@dataclass
class World:
    """The bench, how calls are still to end, and since when each node was silent before our eyes."""

    latency: float
    results: dict[str, list[Any]] = field(default_factory=lambda: {"reads": [], "statuses": [], "marks": []})
    silent_since: dict[str, float] = field(default_factory=dict)
    seeing_since: float = 0.0
    judged: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        nodes = [node(name, created=0.0, conditions={} if name == "n3" else {"Ready": "True"}) for name in NAMES]
        pods = [pod(f"p{number}", node=NAMES[number % 3]) for number in range(10)]
        self.bench = HealthBench(*nodes, pods=tuple(pods), options=OPTIONS, fresh=False)
        self.bench.latency = self.latency
        self.bench.reads = lambda *_: self._next("reads", None)
        self.bench.statuses = lambda *_: self._next("statuses", WriteResult.DONE)
        self.bench.marks = lambda *_: self._next("marks", h.PodResult.DONE)
        self.silent_since = dict.fromkeys(NAMES, 0.0)
        self.bench.tell(Knowledge(True))

    def _next(self, kind: str, otherwise: Any) -> Any:
        return self.results[kind].pop(0) if self.results[kind] else otherwise

    def do(self, step: Step) -> None:
        """Let one thing happen."""
        bench, now = self.bench, self.bench.now
        self.turn += 1
        match step:
            case ("renew" | "again" | "report", _):
                self._live(step)
            case ("change", name):
                bench.change(name, unschedulable=bool(self.turn % 2))
            case ("pod", (name, number)):
                if (each := bench.pods.get(f"p{number}-uid")) is None or each.node == name:
                    bench.add_pods(pod(f"p{number}", node=name))
            case ("unseen", name):
                bench.watching = False
                bench.renew(name, at=self.turn)
                bench.watching = True
            case ("reads" | "statuses" | "marks" as kind, results):
                self.results[kind] = list(results)
            case ("fresh", fresh):
                bench.tell(Knowledge(fresh))
            case ("stall", seconds):
                bench.now += seconds
                if seconds > OPTIONS.patience.blink + 1.0:
                    self.seeing_since = bench.now
                bench.tell(Woke())
            case ("restart", _):
                bench.start()
                self.seeing_since = now
            case ("wait", seconds):
                bench.run_until(now + seconds)

    def _live(self, step: Step) -> None:
        bench, now = self.bench, self.bench.now
        match step:
            case ("renew", name):
                bench.renew(name, at=self.turn)
            case ("report", (name, status)):
                bench.heartbeat(name, status, at=float(self.turn))
            case (_, name):
                bench.add(node(name, uid=f"{name}-{self.turn}", created=now, conditions={"Ready": "True"}))
        self.silent_since[name] = now

    def check(self) -> None:
        """Check what must hold at every moment, of what was done since the last time."""
        bench = self.bench
        assert bench.most_under_way[h.MarkPod] <= AT_ONCE
        for at, effect in bench.log[self.judged :]:
            if isinstance(effect, h.PatchStatus):
                since = max(self.silent_since[effect.node.name], self.seeing_since)
                assert at - since >= GRACE - 1e-6, "declared Unknown too early"
            if isinstance(effect, h.MarkPod):
                assert effect.pod.ready
        self.judged = len(bench.log)

    def settle(self) -> None:
        """Let things be calm for long."""
        self.results = {kind: [] for kind in self.results}
        self.bench.tell(Knowledge(True))
        self.bench.run_until(self.bench.now + CALM_SECONDS)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(steps, max_size=40), st.sampled_from([0.0, 0.5, 3.0]))
def test_nobody_is_declared_too_early_and_in_the_end_every_silent_node_is_unknown_and_its_pods_are_marked(
    happening: list[Step], latency: float
) -> None:
    world = World(latency)
    for step in happening:
        world.do(step)
        world.check()
    world.settle()
    world.check()
    for each in world.bench.server.values():
        statuses = {condition.type: condition.status for condition in each.conditions}
        assert {type_: statuses[type_] for type_ in JUDGED_CONDITIONS} == dict.fromkeys(JUDGED_CONDITIONS, "Unknown")
    assert not [each for each in world.bench.pods.values() if each.ready]
    assert world.bench.engine.pods.waiting == 0
    assert len(world.bench.engine._silence._queue) <= 3 * len(NAMES)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(steps, max_size=30), st.sampled_from([0.0, 0.5]))
def test_in_the_end_nodes_that_live_are_ready_and_their_pods_are_left_alone(
    happening: list[Step], latency: float
) -> None:
    world = World(latency)
    for step in happening:
        world.do(step)
    world.results = {kind: [] for kind in world.results}
    bench = world.bench
    bench.tell(Knowledge(True))
    bench.run_until(bench.now + 5.0)
    for name in NAMES:
        bench.heartbeat(name, at=-1.0)
    bench.run_until(bench.now + latency)
    marked = len(bench.of(h.MarkPod))
    for uid, each in list(bench.pods.items()):
        bench.add_pods(pod(uid.removesuffix("-uid"), node=each.node))
    bench.run_until(bench.now + 200.0, renewing=NAMES, every=5.0)
    assert [bench.ready(name) for name in NAMES] == ["True"] * 3
    assert all(each.ready for each in bench.pods.values())
    assert len(bench.of(h.MarkPod)) == marked
