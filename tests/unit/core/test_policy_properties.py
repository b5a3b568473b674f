"""Whatever policies there are, exactly one decides, the same as without any memory, from the moment of a change."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Pod, Taint
from taintkeeper.core.policies import DEFAULTS, EVERYTHING, Mode, Policy, TaintPattern
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.selectors import Requirement, Selector
from taintkeeper.core.traits import Trait
from tests.unit.core.builders import pod, unreachable
from tests.unit.core.policy_bench import policy, seen

NAMES = ("a", "b", "c", "d")
NAMESPACES = ("one", "two", "three")
LABELS: tuple[dict[str, str], ...] = ({"app": "web"}, {"app": "db", "tier": "x"}, {})
TAINTS = (
    Taint("foo", NO_EXECUTE),
    Taint("foo", NO_EXECUTE, "1"),
    Taint("bar", NO_SCHEDULE),
    Taint("bar", NO_SCHEDULE, "1"),
    unreachable(),
)

selectors = st.sampled_from(
    [EVERYTHING, Selector((("app", "web"),)), Selector((), (Requirement("tier", "DoesNotExist"),))]
)
patterns = st.sampled_from(
    [TaintPattern(), TaintPattern("foo"), TaintPattern("foo", "1"), TaintPattern("bar", None, NO_SCHEDULE)]
)
policies = st.builds(
    policy,
    st.sampled_from(NAMES),
    precedence=st.integers(-1, 1),
    taints=st.lists(patterns, min_size=1, max_size=2).map(tuple),
    namespaces=selectors,
    pods=selectors,
    mode=st.sampled_from(Mode),
    ignored=st.frozensets(st.sampled_from(Trait)),
)
traits = st.frozensets(st.sampled_from(Trait))
pods = st.builds(
    lambda namespace, labels: pod(namespace=namespace, labels=labels),
    st.sampled_from(NAMESPACES),
    st.sampled_from(LABELS),
)
steps = st.one_of(
    st.tuples(st.just("put"), policies),
    st.tuples(st.just("drop"), st.sampled_from(NAMES)),
    st.tuples(st.just("label"), st.sampled_from(NAMESPACES), st.sampled_from(LABELS)),
    st.tuples(st.just("forget"), st.sampled_from(NAMESPACES)),
    st.tuples(st.just("ask"), pods),
)


class Model:
    """The policies and namespaces as they are now, and the plainest way to find which decides."""

    def __init__(self) -> None:
        self.book = PolicyBook()
        self.version = 0
        self.policies: dict[str, Policy] = {}
        self.namespaces: dict[str, dict[str, str]] = {}

    def take(self, what: str, *facts: Any) -> tuple[TaintPattern, ...] | bool:
        """Let one thing happen."""
        match what, facts:
            case "put", (made,):
                self.version += 1
                self.policies[made.name] = made
                return self.book.put(seen(made, version=self.version))
            case "drop", (name,):
                self.policies.pop(name, None)
                return self.book.drop(name)
            case "label", (name, labels):
                self.namespaces[name] = labels
                return self.book.see_namespace(name, labels)
            case "forget", (name,):
                self.namespaces.pop(name, None)
                return self.book.forget_namespace(name)
            case _:
                for taint in TAINTS:
                    self.book.decide(facts[0], taint)
                return False

    def expected(self, asked: Pod, taint: Taint) -> tuple[str, str]:
        """Return the name of the policy that decides, and why the pod is exempt."""
        for each in [*sorted(self.policies.values(), key=lambda made: (-made.precedence, made.name)), *DEFAULTS]:
            namespace = self.namespaces.get(asked.ref.namespace)
            if not any(pattern.matches(taint) for pattern in each.taints) or not each.pods.matches(asked.labels):
                continue
            if each.namespaces != EVERYTHING and namespace is None:
                return each.name, "namespace-unknown"
            if each.namespaces == EVERYTHING or each.namespaces.matches(namespace or {}):
                return each.name, "policy" if each.mode is Mode.IGNORE else ""
        raise AssertionError(taint)


def answers(book: PolicyBook) -> dict[tuple[str, int, Taint], tuple[Policy, str]]:
    found = {}
    for namespace in NAMESPACES:
        for index, labels in enumerate(LABELS):
            for taint in TAINTS:
                decision = book.decide(pod(namespace=namespace, labels=labels), taint)
                found[namespace, index, taint] = (decision.policy, decision.exempt)
    return found


@given(st.lists(policies), st.randoms())
def test_the_order_of_policies_is_total_and_that_of_their_arrival_does_not_matter(
    made: list[Policy], random: Any
) -> None:
    unique = list({each.name: each for each in made}.values())
    shuffled = random.sample(unique, len(unique))
    first, second = PolicyBook(), PolicyBook()
    for book, ordered in ((first, unique), (second, shuffled)):
        for each in ordered:
            book.put(seen(each))
    assert first.ordered == second.ordered
    assert len({each.order for each in first.ordered}) == len(unique) + len(DEFAULTS)


@given(st.lists(steps, max_size=30))
def test_a_change_applies_at_once_and_what_is_kept_is_what_would_be_found_anew(story: list[tuple[Any, ...]]) -> None:
    model = Model()
    for step in story:
        model.take(*step)
        for namespace in NAMESPACES:
            for labels in LABELS:
                asked = pod(namespace=namespace, labels=labels)
                for taint in TAINTS:
                    decision = model.book.decide(asked, taint)
                    assert (decision.policy.name, decision.exempt) == model.expected(asked, taint)
                    assert decision.policy == model.policies.get(decision.policy.name, decision.policy)


@given(st.lists(steps, max_size=20))
def test_only_what_a_change_tells_of_has_to_be_judged_anew(story: list[tuple[Any, ...]]) -> None:
    model = Model()
    for step in story:
        before = answers(model.book)
        told = model.take(*step)
        changed = {asked for asked, answer in answers(model.book).items() if answer != before[asked]}
        for namespace, _, taint in changed:
            if isinstance(told, bool):
                assert told
                assert namespace == step[1]
            else:
                assert any(pattern.matches(taint) for pattern in told)


@given(st.lists(policies), pods, traits)
def test_exactly_one_policy_decides_and_it_is_explained_last(made: list[Policy], asked: Pod, found: Any) -> None:
    model = Model()
    for each in made:
        model.take("put", each)
    for taint in TAINTS:
        decision = model.book.decide(asked, taint, found)
        lines = model.book.explain(asked, taint, found)
        assert lines[-1] == str(decision)
        assert len(lines) == model.book.ordered.index(decision.policy) + 1
        exempt_by_trait = decision.exempt in {trait.value for trait in Trait}
        assert not exempt_by_trait or decision.exempt in found


@given(st.lists(policies), pods, traits)
def test_a_policy_that_is_superseded_decides_about_nothing(made: list[Policy], asked: Pod, found: Any) -> None:
    model = Model()
    for namespace in NAMESPACES:
        model.take("label", namespace, LABELS[0])
    for each in made:
        model.take("put", each)
    deciding = {model.book.decide(asked, taint, found).policy.name for taint in TAINTS}
    for each in model.policies.values():
        assert each.name not in deciding or model.book.superseded_by(each) == []
