"""Whatever happens in whatever order, rules end up right, cost few writes, and touch nothing of others."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint
from taintkeeper.core.rule_cases import Phase
from taintkeeper.core.rule_entry import Entry
from taintkeeper.core.rules import Limit, Rule
from taintkeeper.core.selectors import Selector
from tests.unit.core.builders import FOREIGN
from tests.unit.core.rule_bench import DEADLOCK, RuleBench, rule

NODES = ("n0", "n1", "n2", "n3")
NAMES = ("a", "b", "c")
LONG = 1_000.0

statuses = st.sampled_from(["True", "False", "Unknown", None])
seconds = st.sampled_from([0.0, 5.0, 30.0, 60.0, 100.0])
rules = st.builds(
    rule,
    st.sampled_from(NAMES),
    condition_type=st.sampled_from(["KernelDeadlock", "Overheated"]),
    key=st.sampled_from([DEADLOCK, "hot"]),
    effect=st.sampled_from([NO_SCHEDULE, NO_EXECUTE]),
    value=st.sampled_from(["", "x"]),
    selector=st.sampled_from([Selector(), Selector((("pool", "gpu"),))]),
    for_seconds=seconds,
    clear_seconds=seconds,
    limit=st.sampled_from([None, Limit(1), Limit(50, percent=True)]),
    dry_run=st.booleans(),
)
steps = st.one_of(
    st.tuples(st.just("report"), st.sampled_from(NODES), st.sampled_from(["KernelDeadlock", "Overheated"]), statuses),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 10.0, 45.0, 90.0])),
    st.tuples(st.just("put"), rules),
    st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    st.tuples(st.just("label"), st.sampled_from(NODES), st.sampled_from(["gpu", "cpu"])),
    st.tuples(st.just("strip"), st.sampled_from(NODES)),
    st.tuples(st.just("add"), st.booleans()),
    st.tuples(st.just("restart")),
)


class Chaos(RuleBench):
    """A bench on which anything may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: dict[str, Rule] = {}
        self.version = 0
        for name in NODES:
            self.add(name, FOREIGN, conditions={"KernelDeadlock": "False", "Overheated": "False"})

    def take(self, what: str, *facts: Any) -> None:
        """Let one thing happen."""
        match what, facts:
            case "report", (name, type_, status):
                self.report(name, **{type_: status})
            case "wait", (time,):
                self.pass_time(time)
            case "put", (made,):
                self.version += 1
                self.rules[made.name] = made
                self.put(made, version=self.version)
            case "remove", (name,):
                self.rules.pop(name, None)
                self.remove(name)
            case "label", (name, pool):
                self.label(name, pool=pool)
            case "strip", (name,):
                self.set_taints(name, FOREIGN)
            case "add", (may_add,):
                self.may_add = may_add
            case _:
                self.restart(*self.rules.values())

    def calm_down(self) -> None:
        """Have every node report everything, and wait until every hold and clear time is over."""
        self.may_add = True
        for name in NODES:
            for type_ in ("KernelDeadlock", "Overheated"):
                if self.nodes[name].condition(type_) is None:
                    self.report(name, **{type_: "False"})
        self.settle(*NODES)
        self.pass_time(LONG)

    def expected(self, name: str) -> set[str]:
        """Return the taints that the rules want on a node in the calm, leaving out those that a limit holds back."""
        found: dict[tuple[str, str], str] = {}
        values: dict[tuple[str, str], str] = {}
        for each in sorted(self.rules.values(), key=lambda made: made.name):
            known = self.nodes[name]
            if each.dry_run or not each.selector.matches(known.labels):
                continue
            values.setdefault(each.taint_id, each.value)
            condition = known.condition(each.condition_type)
            due = condition is not None and condition.status == each.condition_status
            if due and name not in self.entry(each.name).due:
                found[each.taint_id] = values[each.taint_id]
        return {str(Taint(*taint_id, value)) for taint_id, value in found.items()}


def recounted(entry: Entry) -> tuple[int, int, int, int]:
    tainted = sum(case.tainted for case in entry.cases.values())
    holding = sum(case.phase is Phase.HOLDING and not case.tainted for case in entry.cases.values())
    due = sum(case.phase is Phase.DUE and not case.tainted for case in entry.cases.values())
    return len(entry.cases), holding + (0 if entry.capped else due), tainted, due if entry.capped else 0


@given(st.lists(steps, max_size=40))
def test_in_the_calm_after_anything_the_taints_are_those_that_the_rules_want(story: list[tuple[Any, ...]]) -> None:
    chaos = Chaos()
    for step in story:
        chaos.take(*step)
    chaos.calm_down()
    for name in NODES:
        assert chaos.taints(name) == {str(FOREIGN)} | chaos.expected(name)
    before = len(chaos.writes)
    chaos.settle(*NODES)
    chaos.pass_time(LONG)
    assert len(chaos.writes) == before


@given(st.lists(steps, max_size=40))
def test_the_numbers_are_those_of_a_count_at_every_moment(story: list[tuple[Any, ...]]) -> None:
    chaos = Chaos()
    for step in story:
        chaos.take(*step)
        for name in chaos.rules:
            entry = chaos.entry(name)
            assert chaos.numbers(name) == recounted(entry)
            assert entry.over_limit is entry.capped
            assert set(entry.cases) == {n for n in NODES if chaos.rules[name].selector.matches(chaos.nodes[n].labels)}


@given(st.lists(steps, max_size=40))
def test_the_taint_of_somebody_else_is_there_throughout(story: list[tuple[Any, ...]]) -> None:
    chaos = Chaos()
    theirs = (FOREIGN, Taint(DEADLOCK, NO_SCHEDULE, "theirs"))
    for name in NODES:
        chaos.set_taints(name, *theirs)
    for step in story:
        if step[0] != "strip":
            chaos.take(*step)
        for name in NODES:
            assert set(theirs) <= set(chaos.nodes[name].taints)


@given(
    st.sampled_from([0.0, 20.0, 60.0]),
    st.sampled_from([20.0, 60.0]),
    st.lists(st.tuples(statuses, st.sampled_from([1.0, 7.0, 25.0, 70.0]), st.booleans()), max_size=60),
)
def test_however_a_node_flaps_the_writes_are_bounded_by_the_times_of_the_rule(
    hold: float, clear: float, story: list[tuple[str | None, float, bool]]
) -> None:
    made = rule(for_seconds=hold, clear_seconds=clear)
    bench = RuleBench(made)
    bench.add(conditions={"KernelDeadlock": "False"}, since=0.0)
    begun = bench.now
    for status, pause, restart in story:
        known = bench.nodes["n1"].condition("KernelDeadlock")
        if (known.status if known else None) != status:
            bench.report(KernelDeadlock=status)
        bench.pass_time(pause)
        if restart:
            bench.restart(made)
    assert len(bench.writes) <= 2 + 2 * (bench.now - begun) / (hold + clear)
