"""Which taints act on a pod, and how long it tolerates them."""

import pytest

from taintkeeper.core.acting import acting, deletes_at, toleration_for
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from taintkeeper.core.policies import Decision, Mode, Policy
from taintkeeper.core.traits import Trait
from tests.unit.core.builders import BAR, FOO, FOREIGN, lasting, pod
from tests.unit.core.policy_bench import MAINTENANCE, SCHEDULING, book, labels, policy

DRAIN = Taint(MAINTENANCE, NO_SCHEDULE)
FOO_1 = Taint("foo", NO_EXECUTE, "1")


def test_without_policies_only_no_execute_acts() -> None:
    found = acting([FOREIGN, FOO, DRAIN, BAR], pod(), book())
    assert [(taint, decision.policy.name) for taint, decision in found] == [
        (FOO, "system:default"),
        (BAR, "system:default"),
    ]


def test_a_taint_for_the_scheduler_acts_on_the_pods_that_a_policy_has_leave_by_it() -> None:
    made = book(policy(taints=(SCHEDULING,), pods=labels(app="web")))
    assert [taint for taint, _ in acting([FOREIGN, DRAIN], pod(labels={"app": "web"}), made)] == [DRAIN]
    assert acting([FOREIGN, DRAIN], pod(labels={"app": "db"}), made) == []


def test_no_execute_acts_even_where_the_policy_ignores_it_so_that_the_pod_can_be_counted() -> None:
    made = book(policy(mode=Mode.IGNORE))
    assert [(taint, decision.exempt) for taint, decision in acting([FOO], pod(), made)] == [(FOO, "policy")]


def test_a_pod_that_is_exempt_is_told_so_for_a_taint_for_the_scheduler_too() -> None:
    made = book(policy(taints=(SCHEDULING,)))
    found = acting([DRAIN], pod(traits=frozenset({Trait.ANNOTATED})), made)
    assert [decision.exempt for _, decision in found] == ["annotation"]


@pytest.mark.parametrize(
    ("tolerations", "taint", "seconds", "expected"),
    [
        pytest.param([], FOO, 300.0, lasting("foo", 300), id="no toleration"),
        pytest.param([lasting("bar", 5)], FOO, 300.0, lasting("foo", 300), id="a toleration of another key"),
        pytest.param([lasting("foo", 5)], FOO, 300.0, lasting("foo", 5), id="a toleration of its own"),
        pytest.param([lasting("foo")], FOO, 300.0, lasting("foo"), id="tolerated for ever"),
        pytest.param([], FOO, None, None, id="a policy that gives none"),
        pytest.param([], FOO, 0.0, lasting("foo", 0), id="no time at all"),
        pytest.param(
            [Toleration("foo", "Equal", "2", NO_EXECUTE)], FOO_1, 300.0, None, id="the key is tolerated, its value not"
        ),
        pytest.param(
            [Toleration("", "Exists", effect=NO_EXECUTE)],
            FOO,
            300.0,
            Toleration("", "Exists", effect=NO_EXECUTE),
            id="everything is tolerated",
        ),
        pytest.param([Toleration("foo", "Lt", "x")], FOO_1, 300.0, None, id="the key is tolerated for any effect"),
        pytest.param(
            [lasting("foo", effect=NO_SCHEDULE)], FOO, 300.0, lasting("foo", 300), id="tolerated for another effect"
        ),
        pytest.param([], DRAIN, 60.0, lasting(MAINTENANCE, 60, effect=NO_SCHEDULE), id="a taint for the scheduler"),
    ],
)
def test_a_policy_gives_a_toleration_to_pods_without_one_for_the_key(
    tolerations: list[Toleration], taint: Taint, seconds: float | None, expected: Toleration | None
) -> None:
    given = policy(default_toleration_seconds=seconds)
    assert toleration_for(pod("p1", *tolerations), taint, given) == expected


EVICT = policy("evict")
LATER = policy("later", mode=Mode.EVICT_THEN_DELETE, blocked_seconds=100.0)
LATEST = policy("latest", mode=Mode.EVICT_THEN_DELETE)
DELETE = policy("delete", mode=Mode.DELETE)
ONLY_TOLD = policy("told", mode=Mode.DELETE, dry_run=True)


@pytest.mark.parametrize(
    ("ways", "at"),
    [
        pytest.param([], None, id="no taint"),
        pytest.param([(0.0, EVICT)], None, id="eviction is never given up"),
        pytest.param([(0.0, LATER)], 1100.0, id="blocked for long enough"),
        pytest.param([(0.0, LATEST), (0.0, LATER)], 1100.0, id="the first of two"),
        pytest.param([(0.0, EVICT), (1500.0, LATER)], 1600.0, id="by a taint that comes due later"),
        pytest.param([(0.0, EVICT), (1500.0, DELETE)], 1500.0, id="deleted when that taint comes due"),
        pytest.param([(0.0, EVICT), (float("inf"), LATER)], float("inf"), id="never due"),
        pytest.param([(0.0, ONLY_TOLD)], None, id="a dry run"),
    ],
)
def test_a_blocked_pod_is_deleted_by_the_first_policy_that_loses_its_patience(
    ways: list[tuple[float, Policy]], at: float | None
) -> None:
    assert deletes_at([(due, Decision(each)) for due, each in ways], 1000.0) == at


@pytest.mark.parametrize(("by", "at"), [(EVICT, None), (LATER, None), (DELETE, 5.0)])
def test_a_pod_that_is_not_blocked_is_deleted_only_where_no_budget_is_asked(by: Policy, at: float | None) -> None:
    assert deletes_at([(5.0, Decision(by))], None) == at


def test_an_exempt_pod_is_not_deleted_however_long_it_is_blocked() -> None:
    assert deletes_at([(0.0, Decision(DELETE, Trait.ANNOTATED))], 1000.0) is None
