"""What holds for the taints of rules in the engine, whatever happens in whatever order."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from taintkeeper.core.conditions import TaintId, wanted
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Node
from taintkeeper.core.rules import Rule
from taintkeeper.core.taint_messages import PatchTaints
from tests.unit.core.builders import node
from tests.unit.core.rule_bench import DEADLOCK, rule
from tests.unit.core.tainting_bench import TaintBench
from tests.unit.core.test_tainting_properties import Step, World, latencies, names, quickly, steps

made_rules = st.builds(
    rule,
    st.sampled_from(["a", "b", "c"]),
    condition_type=st.sampled_from(["DiskPressure", "KernelDeadlock"]),
    condition_status=st.sampled_from(["True", "False"]),
    key=st.sampled_from([DEADLOCK, "hot"]),
    effect=st.sampled_from([NO_SCHEDULE, NO_EXECUTE]),
    value=st.sampled_from(["", "x"]),
    for_seconds=st.sampled_from([0.0, 5.0, 30.0]),
    clear_seconds=st.sampled_from([0.0, 5.0, 30.0]),
    rate_limited=st.booleans(),
    dry_run=st.booleans(),
)
rule_steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("rule"), made_rules),
    st.tuples(st.just("drop"), st.sampled_from(["a", "b", "c"])),
    st.tuples(
        st.just("condition"),
        st.tuples(names, st.tuples(st.just("KernelDeadlock"), st.sampled_from(["True", "False"]))),
    ),
)
stories = st.lists(st.one_of(rule_steps, steps), min_size=5, max_size=40)


@dataclass
class RuleWorld(World):
    """The world with rules, which come, change and go, also while we are down."""

    rules: dict[str, Rule] = field(default_factory=dict)

    def do(self, step: Step) -> None:
        """Let one thing happen."""
        match step:
            case ("rule", made):
                self.rules[made.name] = made
                self.bench.put_rule(made)
            case ("drop", name):
                if self.rules.pop(name, None) is not None:
                    self.bench.delete_rule(name)
            case _:
                super().do(step)

    def asked(self, found: Node) -> tuple[set[TaintId], set[TaintId]]:
        """Return which taints rules ask for in the calm, and about which they cannot know."""
        in_force = [each for each in self.rules.values() if not each.dry_run]
        unknown = {each.taint_id for each in in_force if found.condition(each.condition_type) is None}
        asking = [
            each
            for each in in_force
            if (condition := found.condition(each.condition_type)) is not None
            and condition.status == each.condition_status
        ]
        if self.bench.engine.book.all_disrupted:
            unknown |= {each.taint_id for each in asking if each.effect == NO_SCHEDULE and each.rate_limited}
            asking = [each for each in asking if each.effect == NO_SCHEDULE or not each.rate_limited]
        return {each.taint_id for each in asking}, unknown


@quickly
@given(story=stories, latency=latencies)
def test_once_all_is_calm_each_node_has_what_its_conditions_and_the_rules_call_for_beside_the_foreign_taints(
    story: list[Step], latency: float
) -> None:
    world = RuleWorld(latency)
    world.play(story)
    for name, found in world.bench.server.items():
        want = wanted(found)
        expected = {(key, NO_SCHEDULE) for key in want.no_schedule}
        if want.execute is not None and not world.bench.engine.book.all_disrupted:
            expected.add((want.execute, NO_EXECUTE))
        asked, unknown = world.asked(found)
        ours = [taint for taint in found.taints if taint not in world.foreign[name]]
        ids = {(taint.key, taint.effect) for taint in ours}
        assert ids - want.unknown - unknown == (expected | asked) - unknown
        assert set(found.taints) - set(ours) == world.foreign[name]
        assert found.rule_taints.keys() == {i for i in ids if i[0] in (DEADLOCK, "hot")}


@quickly
@given(letters=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=8, max_size=40))
def test_in_any_stretch_of_time_rules_and_not_ready_together_yield_no_more_than_rate_and_burst(
    letters: list[tuple[bool, bool]],
) -> None:
    well = {"Ready": "True", "KernelDeadlock": "False"}
    bench = TaintBench(
        *(node(f"n{number}", conditions=well) for number in range(40)),
        rules=[rule(effect=NO_EXECUTE, rate_limited=True)],
    )
    for number, (by_rule, failing) in enumerate(letters):
        name, status = f"n{number % 8}", "True" if failing is by_rule else "False"
        bench.condition(name, "KernelDeadlock" if by_rule else "Ready", status)
        bench.run_until(bench.now + 1.0)
    bench.run_until(bench.now + 100.0)
    times = [at for at, _ in bench.executed()]
    for first, earlier in enumerate(times):
        for later in range(first, len(times)):
            assert later - first <= 0.1 * (times[later] - earlier) + 1e-3


@quickly
@given(story=stories)
def test_a_node_that_is_right_is_left_alone(story: list[Step]) -> None:
    world = RuleWorld(0.0)
    world.play(story)
    writes = len(world.bench.of(PatchTaints))
    world.bench.restart()
    world.calm()
    assert len(world.bench.of(PatchTaints)) == writes
