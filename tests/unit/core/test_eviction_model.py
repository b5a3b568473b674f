"""The engine against a second writing of its rules, in any story that hypothesis can think of."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from taintkeeper.core.answers import Answer
from taintkeeper.core.budgets import Budget
from taintkeeper.core.eviction import EvictionEngine
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.messages import (
    BudgetGone,
    Cancelled,
    Delete,
    Evict,
    EvictionEffect,
    EvictionInput,
    Knowledge,
    NodeGone,
    NodeRead,
    PodGone,
)
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Pod, Taint, Toleration
from taintkeeper.core.selectors import Selector
from tests.unit.core.builders import (
    ACCEPTED,
    CONNECTION_LOST,
    FORBIDDEN,
    GONE,
    HELD_BY_BUDGET,
    NAMESPACE_TERMINATING,
    SEVERAL_BUDGETS,
    THROTTLED,
    WEBHOOK_DOWN,
    node,
    pod,
)
from tests.unit.core.eviction_bench import EvictionBench, always
from tests.unit.core.eviction_model import NOT_READY, UNREACHABLE, EvictionModel

CONFIRM_SECONDS = 30.0
REST_SECONDS, PATIENCE_SECONDS = 2.0, 13.0
"""How long a node may wait to be told since when its taints count: while a pod counts down there, and otherwise."""
MANY = 1 << 20
"""More evictions at once than there are pods, however often the API server halves it."""

NODES = ("n1", "n2")
NAMES = ("p1", "p2", "p3", "p4", "p5")
BUDGETS = {"b1": "one", "b2": "two"}
LABELS: tuple[dict[str, str], ...] = ({}, {"one": "x"}, {"one": "x"}, {"two": "x"}, {"one": "x", "two": "x"})
REFUSALS = (
    HELD_BY_BUDGET,
    THROTTLED,
    FORBIDDEN,
    NAMESPACE_TERMINATING,
    SEVERAL_BUDGETS,
    WEBHOOK_DOWN,
    CONNECTION_LOST,
    Answer(409, "Conflict"),
    Answer(422, "Invalid"),
)
TAINTS = (
    *(Taint(key, NO_EXECUTE) for key in ("foo", NOT_READY, UNREACHABLE)),
    Taint("bar", NO_EXECUTE, "7"),
    Taint("shy", NO_SCHEDULE),
)
TOLERATIONS = (
    *(Toleration("foo", "Exists", effect=NO_EXECUTE, seconds=seconds) for seconds in (None, -5, 0, 10, 40)),
    Toleration("foo", "Exists", effect=NO_SCHEDULE),
    Toleration("foo", "Equal", "other"),
    Toleration("", "Exists", seconds=25),
    Toleration("", "Equal"),
    Toleration("bar", "", "7", seconds=15),
    Toleration("bar", "Equal", "7", NO_EXECUTE),
    Toleration("bar", "Gt", "5", seconds=20),
    Toleration("bar", "Gt", "05"),
    Toleration("bar", "Lt", "-3"),
    Toleration("bar", "Lt", "70", seconds=200),
    Toleration(NOT_READY, "Exists", seconds=30),
    Toleration(UNREACHABLE, "Exists", seconds=60),
)

names, nodes = st.sampled_from(NAMES), st.sampled_from(NODES)
tolerations = st.lists(st.sampled_from(TOLERATIONS), max_size=2).map(tuple)
waits = st.sampled_from([0.5, 1.0, 4.0, 5.0, 10.0, 15.0, 61.0, 80.0])


def closed_budget(name: str) -> Budget:
    return Budget("default", name, Selector(((BUDGETS[name], "x"),)))


class ModelBench(EvictionBench):
    """A bench whose every event the model sees before the engine, and that asks it about every eviction."""

    model: EvictionModel

    def __init__(self) -> None:
        options = EvictionOptions(concurrency=MANY, confirm_seconds=CONFIRM_SECONDS)
        super().__init__(api=always(None), lingers=None, options=options)
        self.deletion_api = always(None)

    def _begin(self) -> EvictionEngine:
        self.model = EvictionModel(CONFIRM_SECONDS)
        return super()._begin()

    def _handle(self, event: EvictionInput) -> None:
        told = len(self.log)
        self.model.cancelled.clear()
        self.model.see(event, self.now)
        if isinstance(event, NodeRead) and event.node is not None:
            self.nodes[event.name] = event.node
            self.hidden.pop(event.name, None)
        super()._handle(event)
        effects = [effect for _, effect in self.log[told:]]
        cancelled = [effect.pod.uid for effect in effects if isinstance(effect, Cancelled)]
        assert sorted(cancelled) == sorted(self.model.cancelled)

    def _carry_out(self, effect: EvictionEffect) -> None:
        match effect:
            case Evict():
                self.model.evict(effect.pod.uid, self.now)
            case Delete():
                self.model.delete(effect.pod.uid, self.now)
        super()._carry_out(effect)


class Evictions(RuleBasedStateMachine):
    """Two nodes, up to five pods at a time, two budgets, and everything that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = ModelBench()
        self.made = 0
        for name in NODES:
            self.bench.see(node(name, conditions={"Ready": "True"}))
        for name in BUDGETS:
            self.bench.see(closed_budget(name))

    @initialize(tolerations=st.lists(tolerations, min_size=5, max_size=5))
    def fill(self, tolerations: list[tuple[Toleration, ...]]) -> None:
        for number, (name, each) in enumerate(zip(NAMES, tolerations, strict=True)):
            self.make(name, NODES[number // 4], each, LABELS[number])
        self.bench.taint(TAINTS[0])

    def find(self, name: str) -> Pod | None:
        return next((each for each in self.bench.pods.values() if each.ref.name == name), None)

    # Pods

    @rule(
        name=names,
        on=nodes,
        tolerations=tolerations,
        labels=st.sampled_from(LABELS),
        mirror=st.sampled_from([False, False, False, True]),
    )
    def make(
        self, name: str, on: str, tolerations: tuple[Toleration, ...], labels: dict[str, str], mirror: bool = False
    ) -> None:
        if found := self.find(name):
            self.bench.tell(PodGone(found.ref.uid))
        self.made += 1
        facts = {"uid": f"{name}-{self.made}", "node": on, "bound": self.bench.now, "mirror": mirror}
        self.bench.see(pod(name, *tolerations, labels=labels, **facts))

    @rule(name=names, tolerations=tolerations)
    def tolerate(self, name: str, tolerations: tuple[Toleration, ...]) -> None:
        if found := self.find(name):
            self.bench.see(replace(found, tolerations=tolerations))

    @rule(name=names, labels=st.sampled_from(LABELS))
    def relabel(self, name: str, labels: dict[str, str]) -> None:
        if found := self.find(name):
            self.bench.see(replace(found, labels=labels))

    @rule(name=names, on=nodes, seconds=waits)
    def arrive_late(self, name: str, on: str, seconds: float) -> None:
        self.wait(seconds)
        self.make(name, on, (Toleration("", "Exists", seconds=10),), {})

    @rule(seconds=st.sampled_from([5, 1000]))
    def tolerate_everything_for_so_long(self, seconds: int) -> None:
        for name in NAMES:
            self.tolerate(name, (Toleration("", "Exists", seconds=seconds),))

    @rule(name=names, how=st.sampled_from(["terminates", "succeeds", "is gone"]))
    def end(self, name: str, how: str) -> None:
        if found := self.find(name):
            if how == "is gone":
                self.bench.tell(PodGone(found.ref.uid))
            elif how == "terminates":
                self.bench.see(replace(found, deleting=True))
            else:
                self.bench.see(replace(found, phase="Succeeded"))

    # Nodes

    @rule(on=nodes, kept=st.sets(st.sampled_from(TAINTS)), added=st.sampled_from([None, None, -20.0, 0.0, 1000.0]))
    def taint(self, on: str, kept: set[Taint], added: float | None) -> None:
        if on in self.bench.hidden:
            return
        time_added = None if added is None else self.bench.now + added
        before = {str(taint): taint for taint in self.bench.nodes[on].taints}
        taints = [before.get(str(each), replace(each, time_added=time_added)) for each in TAINTS if each in kept]
        self.bench.taint(*taints, on=on)

    @rule(on=nodes, seconds=waits)
    def swap_not_ready_and_unreachable(self, on: str, seconds: float) -> None:
        for key in (NOT_READY, UNREACHABLE):
            if on not in self.bench.hidden:
                self.bench.taint(Taint(key, NO_EXECUTE, time_added=self.bench.now), on=on)
                self.wait(seconds)

    @rule(on=nodes)
    def untaint_before_the_watch_tells(self, on: str) -> None:
        if on not in self.bench.hidden:
            self.bench.hidden[on] = replace(self.bench.nodes[on], taints=())

    @rule(on=nodes, seconds=waits)
    def be_without_a_node(self, on: str, seconds: float) -> None:
        self.bench.hidden.pop(on, None)
        self.bench.tell(NodeGone(on))
        self.wait(seconds)
        self.bench.see(node(on, conditions={"Ready": "True"}))

    # Budgets

    @rule(name=st.sampled_from(sorted(BUDGETS)), allowed=st.integers(0, 2))
    def allow(self, name: str, allowed: int) -> None:
        if name in self.bench.budgets:
            self.bench.see(replace(self.bench.budgets[name], allowed=allowed))

    @rule(seconds=waits, name=st.sampled_from(sorted(BUDGETS)), allowed=st.integers(1, 2))
    def hold_for_a_while_and_allow(self, seconds: float, name: str, allowed: int) -> None:
        self.allow(name, 0)
        self.answer_everything_alike_for_a_while(seconds, HELD_BY_BUDGET)
        self.allow(name, allowed)

    @precondition(lambda self: not self.bench.unanswered)
    @rule(name=st.sampled_from(sorted(BUDGETS)))
    def remove_or_bring_back_budget(self, name: str) -> None:
        if self.bench.budgets.pop(name, None):
            self.bench.tell(BudgetGone("default", name))
        else:
            self.bench.see(closed_budget(name))

    # Answers

    @precondition(lambda self: self.bench.unanswered)
    @rule(which=st.integers(0, 4), answer=st.sampled_from(REFUSALS))
    def refuse(self, which: int, answer: Answer) -> None:
        unanswered = self.bench.unanswered
        self.bench.answer(unanswered[which % len(unanswered)], answer)

    @precondition(lambda self: self.bench.unanswered)
    @rule(which=st.integers(0, 4), answer=st.sampled_from([ACCEPTED, ACCEPTED, GONE]), seen=st.booleans())
    def accept(self, which: int, answer: Answer, seen: bool) -> None:
        unanswered = self.bench.unanswered
        effect = unanswered[which % len(unanswered)]
        self.bench.answer(effect, answer)
        if seen and (found := self.bench.pods.get(effect.pod.uid)):
            self.bench.see(replace(found, deleting=True))

    @rule(seconds=waits, answer=st.sampled_from([ACCEPTED, *REFUSALS]))
    def answer_everything_alike_for_a_while(self, seconds: float, answer: Answer) -> None:
        for effect in list(self.bench.unanswered):
            self.bench.answer(effect, answer)
        self.bench.api = self.bench.deletion_api = always(answer)
        self.wait(seconds)
        self.bench.api = self.bench.deletion_api = always(None)

    # Time, and what is known

    @rule(seconds=waits)
    def wait(self, seconds: float) -> None:
        self.bench.run_until(self.bench.now + seconds)
        if self.bench.model.fresh:
            self.see_what_must_outlive_us(seconds)

    def see_what_must_outlive_us(self, seconds: float) -> None:
        model = self.bench.model
        for name in set(NODES) & model.nodes.keys() - self.bench.hidden.keys():
            patience = REST_SECONDS if model.counts(name, self.bench.now) else PATIENCE_SECONDS
            if seconds > patience:
                known = model.nodes[name]
                assert self.bench.nodes[name].first_seen == {each: known.starts[each] for each in known.remembered}

    @rule(seconds=waits)
    def lose_touch(self, seconds: float) -> None:
        self.bench.tell(Knowledge(False))
        self.wait(seconds)
        self.bench.tell(Knowledge(True))

    @rule()
    def restart(self) -> None:
        self.bench.hidden.clear()
        self.bench.restart()

    @invariant()
    def everybody_who_should_leave_was_asked_to(self) -> None:
        assert self.bench.model.overdue(self.bench.now) == []


TestEvictions = Evictions.TestCase
TestEvictions.settings = settings(
    max_examples=100, stateful_step_count=40, derandomize=True, deadline=None, report_multiple_bugs=False
)
