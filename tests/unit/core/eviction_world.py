"""Stories of pods, nodes, budgets and answers in any order, and the world in which they happen."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from taintkeeper.core.answers import Answer
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.eviction_states import State
from taintkeeper.core.messages import BudgetGone, Evict, Knowledge, NodeGone, PodGone
from taintkeeper.core.objects import Pod, Taint
from tests.unit.core.builders import (
    ACCEPTED,
    BAR,
    CONNECTION_LOST,
    FOO,
    FORBIDDEN,
    GONE,
    HELD_BY_BUDGET,
    NAMESPACE_TERMINATING,
    SEVERAL_BUDGETS,
    THROTTLED,
    budget,
    lasting,
    node,
    pod,
)
from tests.unit.core.eviction_bench import EvictionBench, always

Step = tuple[str, Any]

LIMIT = 2
PODS = tuple(f"p{number}" for number in range(4))
NODES = ("n1", "n2")
APPS = ("one", "two")
ANSWERS = (
    ACCEPTED,
    GONE,
    HELD_BY_BUDGET,
    THROTTLED,
    FORBIDDEN,
    NAMESPACE_TERMINATING,
    SEVERAL_BUDGETS,
    CONNECTION_LOST,
    Answer(422),
)
CHANGES = ("ready", "phase", "app", "node", "priority", "seconds")
TAINTS = ((), (FOO,), (BAR,), (FOO, BAR))

_pods, _nodes, _budgets = st.sampled_from(PODS), st.sampled_from(NODES), st.sampled_from(["b1", "b2"])
_answer = st.tuples(st.just("answer"), st.tuples(st.integers(0, 5), st.sampled_from(ANSWERS)))
_steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("change"), st.tuples(_pods, st.sampled_from(CHANGES))),
    st.tuples(st.just("terminate"), _pods),
    st.tuples(st.just("delete"), _pods),
    st.tuples(st.just("recreate"), _pods),
    st.tuples(st.just("again"), _pods),
    st.tuples(st.just("taint"), st.tuples(_nodes, st.sampled_from(TAINTS), st.booleans())),
    st.tuples(st.just("node"), st.tuples(_nodes, st.booleans())),
    st.tuples(st.just("budget"), st.tuples(_budgets, st.integers(0, 3), st.sampled_from(APPS))),
    st.tuples(st.just("unbudget"), _budgets),
    _answer,
    _answer,
    _answer,
    st.tuples(st.just("fresh"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 3.0, 20.0, 120.0])),
    st.tuples(st.just("restart"), st.none()),
)
stories = st.lists(_steps, min_size=25, max_size=60)


@dataclass
class World:
    """The bench with answers that the story gives, looked at after every step."""

    generation: int = 0
    deleted: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = EvictionOptions(concurrency=LIMIT, confirm_seconds=30.0)
        self.bench = EvictionBench(api=always(None), lingers=None, options=options)
        self.bench.see(node("n1", FOO), node("n2"), budget("b1", app="one"))
        for number, name in enumerate(PODS):
            self.bench.see(pod(name, lasting("bar", 10), labels={"app": APPS[number // 3]}, node=NODES[number // 3]))
        self.look()

    def play(self, story: list[Step]) -> None:
        """Let the whole story happen."""
        for step in story:
            self.do(step)

    def do(self, step: Step) -> None:
        """Let one thing happen, and look at what it has led to."""
        kind, value = step
        posted = len(self.bench.posts())
        getattr(self, f"_{kind}")(value)
        self.look(posted)

    def settle(self) -> None:
        """Let the API become well: whatever is under way and whatever comes is accepted, and the pods terminate."""
        bench = self.bench
        bench.lingers, bench.api = 1.0, always(ACCEPTED)
        bench.tell(Knowledge(True))
        for effect in list(bench.unanswered):
            bench.answer(effect, ACCEPTED)
        bench.run_until(bench.now + 600.0)

    def look(self, posted: int = 0) -> None:
        """Check what must hold at any time; ``posted`` is how many evictions had been posted before."""
        queue, pods = self.bench.engine.queue, self.bench.pods
        uids = [effect.pod.uid for effect in self.bench.unanswered]
        assert len(uids) == len(set(uids)), "two evictions of a pod are under way"
        tracks = list(queue.tracks)
        assert +queue.tracks.counts == Counter(track.state for track in tracks)
        assert min(queue.tracks.counts.values(), default=0) >= 0
        for track in tracks:
            assert (track.state is State.POSTED) <= (track.pod.ref.uid in uids)
            assert (track.state is State.SKIPPED) <= track.pod.terminal
        for _, effect in self.bench.of(Evict)[posted:]:
            assert len(uids) <= LIMIT
            assert not pods[effect.pod.uid].deleting
            assert not pods[effect.pod.uid].terminal

    def _find(self, name: str) -> Pod | None:
        return next((each for each in self.bench.pods.values() if each.ref.name == name), None)

    def _change(self, value: tuple[str, str]) -> None:
        name, what = value
        found = self._find(name)
        if found is None or found.deleting:
            return
        changes: dict[str, dict[str, Any]] = {
            "ready": {"ready": not found.ready},
            "phase": {"phase": "Running" if found.phase == "Pending" else "Succeeded"},
            "app": {"labels": {"app": "two" if found.labels["app"] == "one" else "one"}},
            "node": {"node": "n2" if found.node == "n1" else "n1"},
            "priority": {"priority": found.priority + 1},
            "seconds": {"tolerations": () if found.tolerations else (lasting("foo", 15), lasting("bar"))},
        }
        self.bench.see(replace(found, **changes[what]))

    def _terminate(self, name: str) -> None:
        if found := self._find(name):
            self.bench.see(replace(found, deleting=True))

    def _delete(self, name: str) -> None:
        if found := self._find(name):
            self.deleted[name] = found
            self.bench.tell(PodGone(found.ref.uid))

    def _recreate(self, name: str) -> None:
        self.generation += 1
        self._delete(name)
        uid = f"{name}-{self.generation}"
        self.bench.see(pod(name, uid=uid, labels={"app": "one"}, bound=self.bench.now, phase="Pending"))

    def _again(self, name: str) -> None:
        if name in self.deleted and self._find(name) is None:
            self.bench.see(self.deleted[name])

    def _taint(self, value: tuple[str, tuple[Taint, ...], bool]) -> None:
        name, taints, timed = value
        added = self.bench.now if timed else None
        self.bench.see(node(name, *(replace(taint, time_added=added) for taint in taints)))

    def _node(self, value: tuple[str, bool]) -> None:
        name, there = value
        if there:
            self.bench.see(node(name, FOO))
        else:
            self.bench.tell(NodeGone(name))

    def _budget(self, value: tuple[str, int, str]) -> None:
        name, allowed, app = value
        self.bench.see(budget(name, allowed=allowed, app=app))

    def _unbudget(self, name: str) -> None:
        self.bench.budgets.pop(name, None)
        self.bench.tell(BudgetGone("default", name))

    def _answer(self, value: tuple[int, Answer]) -> None:
        index, answer = value
        if unanswered := self.bench.unanswered:
            self.bench.answer(unanswered[index % len(unanswered)], answer)

    def _fresh(self, fresh: bool) -> None:
        self.bench.tell(Knowledge(fresh))

    def _wait(self, seconds: float) -> None:
        self.bench.run_until(self.bench.now + seconds)

    def _restart(self, _nothing: None) -> None:
        self.bench.restart()
