"""How pods leave, by the policy that is in force for them."""

from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.core.answers import Answer
from taintkeeper.core.eviction_states import State
from taintkeeper.core.first_seen import UNREACHABLE
from taintkeeper.core.messages import (
    Cancelled,
    Delete,
    Evict,
    Evicted,
    Knowledge,
    NodeSeen,
    PodSeen,
    Rehearsed,
    Skipped,
)
from taintkeeper.core.objects import NO_SCHEDULE, Pod, Taint
from taintkeeper.core.policies import Mode, TaintPattern
from taintkeeper.core.policy_messages import NamespaceSeen, PolicyGone, VolumeGone, VolumeSeen, WritePolicyStatus
from taintkeeper.core.selectors import Selector
from taintkeeper.core.traits import Trait
from tests.unit.core.builders import FOO, HELD_BY_BUDGET, SEVERAL_BUDGETS, budget, lasting, no_execute, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always, in_turn
from tests.unit.core.policy_bench import policy, seen

TAINTED = NodeSeen(node("n1", FOO))
SILENT = NodeSeen(node("n1", no_execute(UNREACHABLE)))
ESCALATING: dict[str, Any] = {"mode": Mode.EVICT_THEN_DELETE, "blocked_seconds": 300.0}


def world(*events: Any, tainted: NodeSeen = TAINTED, **facts: Any) -> EvictionBench:
    """A tainted node with pod p1 and a policy with these facts."""
    return EvictionBench(seen(policy(**facts)), PodSeen(pod("p1")), tainted, *events)


def deletions(bench: EvictionBench) -> list[float]:
    return [at for at, _ in bench.of(Delete)]


@pytest.mark.reported("kubernetes/kubernetes#91465")
@pytest.mark.parametrize(("mode", "kind"), [(Mode.EVICT, Evict), (Mode.DELETE, Delete)])
def test_the_mode_says_how_a_pod_leaves(mode: Mode, kind: type[Evict | Delete]) -> None:
    bench = world(mode=mode)
    assert [type(effect) for _, effect in bench.log if isinstance(effect, Evict | Delete)] == [kind]


def test_a_deletion_asks_no_budget() -> None:
    bench = EvictionBench(seen(policy(mode=Mode.DELETE)), PodSeen(pod("p1")), api=always(HELD_BY_BUDGET))
    bench.see(budget(), node("n1", FOO))
    bench.run_until(600.0)
    assert (deletions(bench), bench.posts()) == ([0.0], [])


@pytest.mark.reported("kubernetes-sigs/karpenter#1776")
@pytest.mark.parametrize(
    ("answer", "budgets"),
    [(HELD_BY_BUDGET, ["b1"]), (SEVERAL_BUDGETS, ["b1", "b2"]), (HELD_BY_BUDGET, [])],
    ids=["one budget", "several budgets", "a budget that we do not see"],
)
def test_a_pod_that_budgets_hold_for_too_long_is_deleted_once(answer: Answer, budgets: list[str]) -> None:
    bench = EvictionBench(seen(policy(**ESCALATING)), PodSeen(pod("p1")), api=always(answer))
    bench.see(*(budget(name) for name in budgets), node("n1", FOO))
    bench.run_until(299.0)
    assert (deletions(bench), len(bench.posts()) > 3) == ([], True)
    bench.run_until(1000.0)
    assert deletions(bench) == [300.0]
    ((_, report),) = bench.of(Evicted)
    assert (report.deleted, report.blocked_seconds) == (True, 300.0)


@pytest.mark.parametrize("blocked_seconds", [0.0, 300.0])
def test_a_pod_that_no_budget_holds_is_never_deleted_for_that(blocked_seconds: float) -> None:
    bench = world(mode=Mode.EVICT_THEN_DELETE, blocked_seconds=blocked_seconds)
    bench.run_until(1000.0)
    assert (bench.times(), deletions(bench)) == ([0.0], [])


def test_a_policy_without_patience_still_asks_the_budget_first() -> None:
    bench = held(PodSeen(pod("p2")), mode=Mode.EVICT_THEN_DELETE, blocked_seconds=0.0)
    bench.run_until(100.0)
    assert (len(bench.posts()), deletions(bench)) == (1, [0.0, 0.0])


def held(*events: Any, **facts: Any) -> EvictionBench:
    """A world in which a budget allows nothing; with a policy only where facts are given."""
    policies = [seen(policy(**facts))] if facts else []
    bench = EvictionBench(*policies, PodSeen(pod("p1")), api=always(HELD_BY_BUDGET))
    bench.see(budget(), node("n1", FOO))
    bench.tell(*events)
    return bench


def test_each_pod_behind_a_closed_budget_is_deleted_at_its_time() -> None:
    bench = held(PodSeen(pod("p2")), **ESCALATING)
    bench.run_until(1000.0)
    assert sorted((at, effect.pod.name) for at, effect in bench.of(Delete)) == [(300.0, "p1"), (300.0, "p2")]


def test_without_such_a_policy_a_blocked_pod_is_never_deleted() -> None:
    bench = held()
    bench.run_until(7200.0)
    assert deletions(bench) == []


@pytest.mark.reported("kubernetes/kubernetes#20641")
def test_pods_of_unreachable_nodes_are_deleted_after_five_minutes_by_default() -> None:
    bench = EvictionBench(PodSeen(pod("p1")), api=always(HELD_BY_BUDGET))
    bench.see(budget(), SILENT.node)
    bench.run_until(1000.0)
    assert deletions(bench) == [300.0]


def test_a_node_that_becomes_unreachable_does_not_hold_its_blocked_pods_for_ever() -> None:
    bench = held()
    bench.run_until(1000.0)
    bench.taint(FOO, no_execute(UNREACHABLE, 1000.0))
    bench.run_until(2000.0)
    assert deletions(bench) == [1300.0]


def test_the_node_is_looked_at_before_a_pod_is_deleted() -> None:
    bench = held(**ESCALATING)
    bench.run_until(299.0)
    bench.hidden["n1"] = node("n1")
    bench.run_until(1000.0)
    assert deletions(bench) == []
    assert len(bench.of(Cancelled)) == 1


@pytest.mark.parametrize(
    ("own", "by_policy", "grace"),
    [(30, None, None), (0, None, 1), (30, 5, 5), (0, 5, 5)],
    ids=["the pod's own", "never none at all", "the policy's", "the policy's instead of none"],
)
def test_a_deletion_is_never_forced(own: int, by_policy: int | None, grace: int | None) -> None:
    made = policy(mode=Mode.DELETE, grace_seconds=by_policy)
    bench = EvictionBench(seen(made), PodSeen(pod("p1", grace=own)), TAINTED)
    assert [effect.grace for _, effect in bench.of(Delete)] == [grace]


def test_the_grace_of_a_policy_holds_for_evictions_too() -> None:
    assert [effect.grace for _, effect in world(grace_seconds=5).of(Evict)] == [5]


@pytest.mark.parametrize(
    ("facts", "traits", "reason"),
    [
        pytest.param({"mode": Mode.IGNORE}, [], "policy", id="mode Ignore"),
        pytest.param(
            {},
            [Trait.ANNOTATED],
            "annotation",
            id="annotation",
            marks=pytest.mark.reported("kubernetes/kubernetes#119886"),
        ),
        pytest.param(
            {"ignored": frozenset({Trait.UNMANAGED})},
            [Trait.UNMANAGED],
            "unmanaged",
            id="no controller",
            marks=pytest.mark.reported("kubernetes/kubernetes#97832"),
        ),
        pytest.param(
            {"ignored": frozenset({Trait.LOCAL_STORAGE})},
            [Trait.LOCAL_STORAGE],
            "local-storage",
            id="data on the node",
            marks=pytest.mark.reported("kubernetes/kubernetes#115779"),
        ),
    ],
)
def test_a_pod_that_is_exempt_stays_and_is_told_once_with_the_reason(
    facts: dict[str, Any], traits: list[Trait], reason: str
) -> None:
    bench = EvictionBench(seen(policy(**facts)), PodSeen(pod("p1", traits=frozenset(traits))), TAINTED)
    bench.run_until(3600.0)
    assert bench.posts() == []
    assert [effect.reason for _, effect in bench.of(Skipped)] == [reason]
    assert bench.of(Cancelled) == []
    assert bench.count(State.SKIPPED) == 1


def test_the_annotation_applies_at_once_in_both_directions() -> None:
    bench = EvictionBench(PodSeen(pod("p1", lasting("foo", 60))), TAINTED)
    bench.run_until(30.0)
    bench.see(pod("p1", lasting("foo", 60), traits=frozenset({Trait.ANNOTATED})))
    bench.run_until(100.0)
    assert bench.posts() == []
    assert [at for at, _ in bench.of(Cancelled)] == [30.0]
    bench.see(pod("p1", lasting("foo", 60)))
    bench.run_until(200.0)
    assert bench.times() == [100.0]


def test_a_dry_run_tells_once_what_it_would_do_and_does_nothing() -> None:
    bench = EvictionBench(seen(policy(dry_run=True)), PodSeen(pod("p1", lasting("foo", 60))), TAINTED)
    bench.run_until(50.0)
    bench.see(pod("p1", lasting("foo", 60), labels={"changed": "yes"}))
    bench.run_until(3600.0)
    bench.see(pod("p1", lasting("foo", 60), labels={"changed": "again"}))
    bench.run_until(7200.0)
    assert bench.posts() == []
    assert [at for at, _ in bench.of(Rehearsed)] == [60.0]


def test_a_dry_run_that_ends_evicts() -> None:
    bench = world(dry_run=True)
    bench.run_until(100.0)
    bench.tell(seen(policy(), version=2))
    assert bench.times() == [100.0]


@pytest.mark.reported("kubernetes/kubernetes#124243")
def test_a_policy_gives_a_toleration_to_pods_that_have_none() -> None:
    bench = EvictionBench(seen(policy(default_toleration_seconds=300.0)), PodSeen(pod("p1")), SILENT)
    bench.see(pod("p2", lasting(UNREACHABLE, 60)))
    bench.run_until(1000.0)
    assert bench.posts() == [(60.0, "p2"), (300.0, "p1")]


def test_a_policy_may_have_taints_for_the_scheduler_evict() -> None:
    drain = node("n1", Taint("drain", NO_SCHEDULE, time_added=0.0))
    bench = EvictionBench(PodSeen(pod("p1")), NodeSeen(drain))
    bench.run_until(10.0)
    assert bench.posts() == []
    bench.tell(seen(policy(taints=(TaintPattern("drain", effect=NO_SCHEDULE),))))
    assert bench.times() == [10.0]


def test_a_taint_for_the_scheduler_counts_from_when_it_was_first_seen_also_after_a_restart() -> None:
    pattern = (TaintPattern("drain", effect=NO_SCHEDULE),)
    waiting = PodSeen(pod("p1", lasting("drain", 60, effect=NO_SCHEDULE)))
    bench = EvictionBench(seen(policy(taints=pattern)), waiting)
    bench.run_until(10.0)
    bench.see(node("n1", Taint("drain", NO_SCHEDULE)))
    bench.run_until(30.0)
    bench.restart()
    bench.run_until(300.0)
    assert bench.times() == [70.0]


def test_no_more_pods_leave_a_node_at_once_than_the_policy_allows() -> None:
    bench = EvictionBench(
        seen(policy(max_concurrent_per_node=2)), *(PodSeen(pod(f"p{number}")) for number in range(5)), lingers=10.0
    )
    bench.see(pod("q", node="n2"), node("n1", FOO), node("n2", FOO))
    bench.run_until(100.0)
    times = [at for at, name in bench.posts() if name != "q"]
    assert times == [0.0, 0.0, 10.0, 10.0, 20.0]
    assert bench.times("q") == [0.0]


def test_pods_of_other_policies_do_not_wait_for_that() -> None:
    bench = EvictionBench(
        seen(policy(max_concurrent_per_node=1, pods=Selector((("app", "slow"),)))),
        *(PodSeen(pod(f"s{number}", labels={"app": "slow"})) for number in range(2)),
        *(PodSeen(pod(f"f{number}")) for number in range(3)),
        TAINTED,
        lingers=10.0,
    )
    bench.run_until(5.0)
    assert sorted(name for _, name in bench.posts() if name.startswith("f")) == ["f0", "f1", "f2"]


def test_a_policy_that_is_edited_while_pods_wait_applies_at_once() -> None:
    bench = held()
    bench.run_until(20.0)
    bench.tell(seen(policy(mode=Mode.DELETE), version=2))
    assert deletions(bench) == [20.0]


def test_a_policy_that_is_deleted_while_pods_wait_applies_no_longer() -> None:
    bench = held(**ESCALATING)
    bench.run_until(20.0)
    bench.tell(PolicyGone("p"))
    bench.run_until(1000.0)
    assert deletions(bench) == []


def test_a_policy_for_namespaces_waits_until_theirs_is_known() -> None:
    facts: dict[str, Any] = {"namespaces": Selector((("team", "a"),)), "mode": Mode.IGNORE}
    bench = world(**facts)
    bench.run_until(10.0)
    assert (bench.posts(), [effect.reason for _, effect in bench.of(Skipped)]) == ([], ["namespace-unknown"])
    bench.tell(NamespaceSeen("default", {"team": "b"}))
    assert bench.times() == [10.0]


def test_nothing_is_decided_by_a_namespace_before_everything_is_known() -> None:
    ignoring = seen(policy(namespaces=Selector((("team", "a"),)), mode=Mode.IGNORE))
    bench = EvictionBench(ignoring, PodSeen(pod("p1")), TAINTED, fresh=False)
    bench.tell(NamespaceSeen("default", {"team": "b"}), NamespaceSeen("default", {"team": "a"}))
    bench.tell(Knowledge(True))
    bench.run_until(10.0)
    assert bench.posts() == []
    bench.tell(Knowledge(False), NamespaceSeen("default", {"team": "b"}))
    bench.run_until(20.0)
    assert bench.posts() == []
    bench.tell(Knowledge(True))
    assert bench.times() == [20.0]


@pytest.mark.reported("kubernetes/kubernetes#115779")
def test_a_pod_with_a_claim_bound_to_a_local_volume_has_its_data_on_the_node() -> None:
    keeping = seen(policy(ignored=frozenset({Trait.LOCAL_STORAGE})))
    volume = VolumeSeen("pv", ("default", "data"))
    bench = EvictionBench(keeping, volume, PodSeen(pod("p1", claims=("data",))), TAINTED)
    bench.run_until(10.0)
    assert (bench.posts(), [effect.reason for _, effect in bench.of(Skipped)]) == ([], ["local-storage"])
    bench.tell(VolumeSeen("pv", None))
    assert bench.times() == [10.0]


def test_a_claim_that_is_bound_while_its_pod_waits_counts_at_once() -> None:
    keeping = seen(policy(ignored=frozenset({Trait.LOCAL_STORAGE})))
    bench = EvictionBench(keeping, PodSeen(pod("p1", lasting("foo", 60), claims=("data",))), TAINTED)
    bench.run_until(10.0)
    bench.tell(VolumeSeen("pv", ("default", "data")))
    bench.run_until(100.0)
    assert bench.posts() == []
    bench.tell(VolumeGone("pv"))
    assert bench.times() == [100.0]


def test_the_status_of_a_policy_tells_its_numbers() -> None:
    bench = EvictionBench(seen(policy()), PodSeen(pod("p1")), PodSeen(pod("p2", lasting("foo", 600))), TAINTED)
    bench.run_until(60.0)
    statuses = [effect.status for _, effect in bench.of(WritePolicyStatus)]
    assert (statuses[-1].pending, statuses[-1].evicted) == (1, 1)


@pytest.mark.parametrize(
    ("facts", "about", "numbers"),
    [
        pytest.param({}, pod("p1"), (1, 0, 0, 0), id="counting"),
        pytest.param({"mode": Mode.IGNORE}, pod("p1"), (0, 0, 1, 0), id="exempt"),
        pytest.param({"dry_run": True}, pod("p1"), (1, 0, 0, 0), id="would leave"),
        pytest.param({}, pod("p1", mirror=True), (0, 0, 0, 0), id="a mirror pod stays anyway"),
        pytest.param({}, pod("p1", phase="Succeeded"), (0, 0, 0, 0), id="a pod that has ended stays anyway"),
        pytest.param({}, replace(pod("p1"), deleting=True), (0, 0, 0, 0), id="told to leave by somebody else"),
    ],
)
def test_each_pod_counts_as_what_its_policy_makes_of_it(
    facts: dict[str, Any], about: Pod, numbers: tuple[int, ...]
) -> None:
    waiting = [lasting("foo", 600)] if numbers[0] and not facts else []
    bench = EvictionBench(seen(policy(**facts)), PodSeen(replace(about, tolerations=tuple(waiting))), TAINTED)
    bench.run_until(60.0)
    assert told_numbers(bench) == numbers


def test_a_pod_that_was_told_to_leave_is_pending_no_longer() -> None:
    bench = EvictionBench(seen(policy()), PodSeen(pod("p1")), TAINTED, lingers=300.0)
    bench.run_until(60.0)
    assert told_numbers(bench) == (0, 0, 0, 1)


def test_a_pod_that_its_budgets_hold_is_blocked_and_pending() -> None:
    bench = held(mode=Mode.EVICT)
    bench.run_until(60.0)
    assert told_numbers(bench) == (1, 1, 0, 0)


def told_numbers(bench: EvictionBench) -> tuple[int, ...]:
    """Return what the status told last: pending, blocked, exempt, evicted."""
    status = bench.of(WritePolicyStatus)[-1][1].status
    return status.pending, status.blocked, status.exempt, status.evicted


def test_a_deletion_that_is_refused_is_tried_again_as_one() -> None:
    bench = EvictionBench(seen(policy(mode=Mode.DELETE)), PodSeen(pod("p1")))
    bench.deletion_api = in_turn(Answer(500), Answer(500), Answer(200))
    bench.tell(TAINTED)
    bench.run_until(60.0)
    assert (len(deletions(bench)), bench.posts()) == (3, [])
    assert len(bench.of(Evicted)) == 1


def test_what_is_terminating_is_not_deleted_again() -> None:
    bench = EvictionBench(seen(policy(mode=Mode.DELETE)), PodSeen(replace(pod("p1"), deleting=True)), TAINTED)
    bench.run_until(60.0)
    assert deletions(bench) == []
