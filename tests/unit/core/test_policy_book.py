"""Which policy decides about a pod and a taint."""

import pytest

from taintkeeper.core import policy_book
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint
from taintkeeper.core.policies import Mode, Policy, TaintPattern
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.traits import NO_TRAITS, Trait, Traits
from tests.unit.core.builders import FOO, FOREIGN, not_ready, pod, reported, unreachable
from tests.unit.core.policy_bench import MAINTENANCE, SCHEDULING, book, labels, policy, seen

DRAIN = Taint(MAINTENANCE, NO_SCHEDULE, "now")
PROD = {"stage": "prod"}


def deciding(made: PolicyBook, taint: Taint = FOO, **found: str) -> str:
    """Return the name of the policy that decides about a pod with these labels."""
    return made.decide(pod(labels=found), taint).policy.name


# Without any


@pytest.mark.parametrize(
    ("taint", "name", "mode"),
    [
        (unreachable(), "system:unreachable", Mode.EVICT_THEN_DELETE),
        (not_ready(), "system:default", Mode.EVICT),
        (FOO, "system:default", Mode.EVICT),
        (FOREIGN, "system:scheduling", Mode.IGNORE),
        (Taint("node.kubernetes.io/unreachable", NO_SCHEDULE), "system:scheduling", Mode.IGNORE),
        (Taint("a", "PreferNoSchedule"), "system:scheduling", Mode.IGNORE),
        (Taint("a", "SomethingNew"), "system:scheduling", Mode.IGNORE),
    ],
)
def test_without_any_policy_the_defaults_decide(taint: Taint, name: str, mode: Mode) -> None:
    decision = book().decide(pod(), taint)
    assert (decision.policy.name, decision.policy.mode) == (name, mode)


def test_the_defaults_come_last_whatever_the_precedence_of_a_policy() -> None:
    made = book(policy("low", precedence=-1_000_000_000))
    assert [each.name for each in made.ordered] == ["low", "system:unreachable", "system:default", "system:scheduling"]
    assert deciding(made, unreachable()) == "low"


# Precedence and selection


def test_the_highest_precedence_decides_and_of_equal_ones_the_first_by_name() -> None:
    made = book(policy("b"), policy("a"))
    assert deciding(made) == "a"
    made.put(seen(policy("c", precedence=1)))
    assert deciding(made) == "c"


def test_a_policy_decides_only_about_pods_that_it_selects() -> None:
    made = book(policy("web", precedence=1, pods=labels(app="web")), policy("all"))
    assert deciding(made, app="web") == "web"
    assert deciding(made, app="db") == "all"
    assert deciding(made) == "all"


def test_a_policy_decides_only_about_namespaces_that_it_selects() -> None:
    made = book(policy("prod", namespaces=labels(stage="prod")), default=PROD, other={})
    assert deciding(made) == "prod"
    assert made.decide(pod(namespace="other"), FOO).policy.name == "system:default"


def test_both_selectors_must_match() -> None:
    made = book(policy("both", namespaces=labels(stage="prod"), pods=labels(app="web")), default=PROD, other={})
    assert deciding(made, app="web") == "both"
    assert deciding(made, app="db") == "system:default"
    assert made.decide(pod(namespace="other", labels={"app": "web"}), FOO).policy.name == "system:default"


@pytest.mark.reported("kubernetes/kubernetes#20641")
@pytest.mark.parametrize(("taint", "name"), [(not_ready(), "gentle"), (unreachable(), "hard")])
def test_each_taint_has_a_mode_of_its_own(taint: Taint, name: str) -> None:
    made = book(
        policy("gentle", taints=(TaintPattern(not_ready().key),)),
        policy("hard", taints=(TaintPattern(unreachable().key),), mode=Mode.DELETE),
    )
    assert deciding(made, taint) == name


# Namespaces


def test_a_pod_waits_until_its_namespace_has_been_seen() -> None:
    made = book(policy("prod", namespaces=labels(stage="prod")))
    assert made.decide(pod(), FOO).exempt == "namespace-unknown"
    assert made.see_namespace("default", PROD)
    assert made.decide(pod(), FOO).exempt == ""
    assert made.forget_namespace("default")
    assert made.decide(pod(), FOO).exempt == "namespace-unknown"


def test_an_unknown_namespace_matters_only_where_a_policy_asks_for_its_labels() -> None:
    asks = policy("asks", namespaces=labels(stage="prod"), pods=labels(app="web"), taints=(TaintPattern("foo"),))
    made = book(asks, policy("first", precedence=1, pods=labels(tier="x")))
    assert made.decide(pod(labels={"app": "web"}), FOO).exempt == "namespace-unknown"
    assert made.decide(pod(labels={"app": "db"}), FOO).exempt == ""
    assert made.decide(pod(labels={"app": "web"}), unreachable()).exempt == ""
    assert deciding(made, app="web", tier="x") == "first"


def test_a_namespace_with_other_labels_has_its_pods_judged_anew_if_any_policy_asks() -> None:
    made = book(policy("prod", namespaces=labels(stage="prod")), default=PROD)
    assert deciding(made) == "prod"
    assert not made.see_namespace("default", dict(PROD))
    assert made.see_namespace("default", {"stage": "test"})
    assert deciding(made) == "system:default"
    assert not made.forget_namespace("another")
    nobody_asks = book(policy("all"))
    assert not nobody_asks.see_namespace("default", PROD)
    assert not nobody_asks.forget_namespace("default")


# Changes


def test_a_change_tells_which_taints_are_to_be_judged_anew() -> None:
    made = PolicyBook()
    assert made.put(seen(policy(taints=(TaintPattern("a"),)))) == (TaintPattern("a"),)
    assert made.put(seen(policy(taints=(TaintPattern("a"),)), version=2)) == ()
    changed = policy(taints=(TaintPattern("a"), TaintPattern("b")))
    assert made.put(seen(changed, version=3)) == (TaintPattern("a"), TaintPattern("b"))
    assert made.drop("p") == (TaintPattern("a"), TaintPattern("b"))
    assert made.drop("p") == ()


def test_a_change_applies_at_once_to_pods_that_were_asked_about_before() -> None:
    made = book(policy("p", pods=labels(app="web")))
    waiting = pod(labels={"app": "web"})
    assert made.decide(waiting, FOO).policy.mode is Mode.EVICT
    made.put(seen(policy("p", pods=labels(app="web"), mode=Mode.DELETE), version=2))
    assert made.decide(waiting, FOO).policy.mode is Mode.DELETE
    made.drop("p")
    assert made.decide(waiting, FOO).policy.name == "system:default"


def test_nonsense_leaves_the_last_good_version_in_force() -> None:
    made = book(policy(mode=Mode.DELETE))
    assert made.put(seen(None, version=2, fault="spec.mode: 'Force' is none")) == ()
    assert made.decide(pod(), FOO).policy.mode is Mode.DELETE
    entry = made.entry("p")
    assert entry is not None
    assert entry.seen.fault == "spec.mode: 'Force' is none"
    made.put(seen(policy(mode=Mode.EVICT), version=3))
    assert made.decide(pod(), FOO).policy.mode is Mode.EVICT


def test_nonsense_without_a_good_version_before_has_no_effect() -> None:
    made = PolicyBook()
    assert made.put(seen(None, fault="x")) == ()
    assert deciding(made) == "system:default"
    entry = made.entry("p")
    assert entry is not None
    assert entry.policy is None


def test_a_policy_of_the_same_name_takes_over_nothing_from_one_that_is_gone() -> None:
    made = book(policy(mode=Mode.DELETE))
    assert made.put(seen(None, version=2, uid="another", fault="x")) == (TaintPattern(),)
    assert deciding(made) == "system:default"


def test_an_older_state_of_a_policy_is_passed_over() -> None:
    made = PolicyBook()
    made.put(seen(policy(mode=Mode.DELETE), version=10))
    assert made.put(seen(policy(), version=9)) == ()
    assert made.decide(pod(), FOO).policy.mode is Mode.DELETE


# Exempt pods

ALL_TRAITS: Traits = frozenset(Trait)


@pytest.mark.parametrize(
    ("ignored", "traits", "exempt"),
    [
        pytest.param(NO_TRAITS, NO_TRAITS, "", id="a pod without anything special"),
        pytest.param(NO_TRAITS, ALL_TRAITS - {Trait.ANNOTATED}, "", id="a policy that ignores nobody"),
        pytest.param({Trait.UNMANAGED}, {Trait.DAEMON_SET}, "", id="another trait"),
        reported("kubernetes/kubernetes#119886", "annotated", NO_TRAITS, {Trait.ANNOTATED}, "annotation"),
        reported("kubernetes/kubernetes#97832", "unmanaged", {Trait.UNMANAGED}, {Trait.UNMANAGED}, "unmanaged"),
        reported(
            "kubernetes/kubernetes#115779",
            "with data on the node",
            {Trait.LOCAL_STORAGE},
            {Trait.LOCAL_STORAGE},
            "local-storage",
        ),
        pytest.param({Trait.DAEMON_SET}, {Trait.DAEMON_SET}, "daemon-set", id="of a DaemonSet"),
        pytest.param(ALL_TRAITS, ALL_TRAITS, "annotation", id="the annotation comes first"),
    ],
)
def test_a_pod_is_exempt_by_what_it_is(ignored: Traits, traits: Traits, exempt: str) -> None:
    made = book(policy(ignored=frozenset(ignored)))
    decision = made.decide(pod(), FOO, frozenset(traits))
    assert (decision.policy.name, decision.exempt) == ("p", exempt)


def test_a_pod_that_one_policy_exempts_is_not_left_to_the_next() -> None:
    made = book(policy("a", ignored=frozenset({Trait.UNMANAGED})), policy("b"))
    assert made.decide(pod(), FOO, frozenset({Trait.UNMANAGED})).exempt == "unmanaged"


def test_a_policy_with_the_mode_ignore_exempts_its_pods() -> None:
    made = book(policy(mode=Mode.IGNORE, pods=labels(app="db")))
    assert made.decide(pod(labels={"app": "db"}), FOO).exempt == "policy"
    assert made.decide(pod(labels={"app": "web"}), FOO).exempt == ""


# Which taints act


def test_a_taint_acts_when_it_is_no_execute_or_a_policy_has_it_act() -> None:
    made = book(
        policy("p", taints=(SCHEDULING,)),
        policy("i", taints=(TaintPattern("quiet", None, NO_SCHEDULE),), mode=Mode.IGNORE),
    )
    assert made.acts(FOO)
    assert made.acts(DRAIN)
    assert not made.acts(FOREIGN)
    assert not made.acts(Taint("quiet", NO_SCHEDULE))
    assert not made.acts(Taint(MAINTENANCE, "PreferNoSchedule"))
    made.drop("p")
    assert not made.acts(DRAIN)


# Explaining


def test_it_is_told_why_each_policy_does_not_decide_up_to_the_one_that_does() -> None:
    made = book(
        policy("a", taints=(TaintPattern("bar"),)),
        policy("b", pods=labels(app="db")),
        policy("c", namespaces=labels(stage="test")),
        policy("d", mode=Mode.EVICT_THEN_DELETE),
        policy("e"),
        default=PROD,
    )
    assert made.explain(pod(labels={"app": "web"}), FOO) == [
        "policy a is not for the taint foo:NoExecute",
        "policy b selects other pods",
        "policy c selects other namespaces",
        "policy d, mode EvictThenDelete",
    ]


# Superseded


@pytest.mark.parametrize(
    ("others", "names"),
    [
        ([], []),
        ([policy("a")], ["a"]),
        ([policy("z")], []),
        ([policy("z", precedence=1)], ["z"]),
        ([policy("a", taints=(TaintPattern("x"),))], []),
        ([policy("a", taints=(TaintPattern("x"),)), policy("b", taints=(TaintPattern("y"),))], ["a", "b"]),
        ([policy("a", pods=labels(app="web"))], ["a"]),
        ([policy("a", pods=labels(app="db"))], []),
        ([policy("a", namespaces=labels(stage="prod"))], []),
    ],
)
def test_a_policy_is_superseded_when_others_leave_it_nothing(others: list[Policy], names: list[str]) -> None:
    mine = policy("m", taints=(TaintPattern("x"), TaintPattern("y", "1")), pods=labels(app="web"))
    assert book(mine, *others).superseded_by(mine) == names


# What is kept


def test_what_is_kept_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_book, "MOST_ANSWERS", 10)
    made = book(policy(pods=labels(app="7")))
    for index in range(100):
        assert deciding(made, app=str(index)) == ("p" if index == 7 else "system:default")
        deciding(made, Taint(f"key-{index}", NO_EXECUTE))
    assert len(made._answers) <= 10
    assert len(made._candidates) <= 10


def test_labels_that_took_the_place_of_others_in_memory_are_not_taken_for_them() -> None:
    made = book(policy(pods=labels(app="web")))
    for index in range(1000):
        app = "web" if index % 2 else "db"
        assert deciding(made, app=app) == ("p" if index % 2 else "system:default")


def test_pods_that_share_their_labels_share_their_answer() -> None:
    made = book(policy(pods=labels(app="web")))
    shared = {"app": "web"}
    first = made.decide(pod("p1", labels=shared), FOO)
    assert made.decide(pod("p2", labels=shared), Taint("foo", NO_EXECUTE, time_added=7.0)) is first
