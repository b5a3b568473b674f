"""What people read of evictions, word for word where tools rely on upstream's words."""

import logging
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.controllers.taint_eviction.metrics import EvictionMetrics
from taintkeeper.controllers.taint_eviction.reports import EvictionReports
from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.budgets import Budget
from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.messages import (
    BudgetMisconfigured,
    Cancelled,
    Evict,
    Evicted,
    EvictionEffect,
    EvictionFailed,
    FoundGone,
    Held,
    Paused,
    Rehearsed,
    Remember,
    Skipped,
    Stuck,
    Vacated,
)
from taintkeeper.core.objects import PodRef, Taint, Toleration
from taintkeeper.core.policies import Decision, Mode, Policy
from taintkeeper.core.traits import Trait
from tests.unit.core.builders import case, node

POD = PodRef("default", "p1", "p1-uid")
SUBJECT = Subject("Pod", "p1", "p1-uid", "default")
TAINT = Taint("foo", "NoExecute", "bar")
NOW = Deadline(TAINT, None, 0.0, 0.0)
LATER = Deadline(TAINT, Toleration("foo", "Exists", seconds=300), 0.0, 300.0)
EVICTED = Evicted(POD, "n1", NOW, 0.25, 201)
IGNORING = Decision(Policy("p", mode=Mode.IGNORE), "policy")
EXEMPT = Skipped(POD, "policy", replace(NOW, decision=IGNORING))


def failed(
    outcome: Outcome, status: int, message: str = "", budgets: tuple[str, ...] = (), retry_in: float = 5.0
) -> EvictionFailed:
    return EvictionFailed(POD, outcome, Answer(status, message=message), budgets, retry_in)


def told(effect: EvictionEffect) -> list[Notice]:
    notices: list[Notice] = []
    EvictionReports(notices.append).tell(effect)
    return notices


@pytest.mark.upstream("TestPodDeletionEvent")
@pytest.mark.parametrize(
    ("effect", "message"),
    [
        case("emitPodDeletionEvent", EVICTED, "Marking for deletion Pod default/p1"),
        case("emitCancelPodDeletionEvent", Cancelled(POD, LATER), "Cancelling deletion of Pod default/p1"),
    ],
)
def test_evictions_and_cancellations_are_told_in_upstreams_words(effect: EvictionEffect, message: str) -> None:
    assert told(effect) == [Notice(SUBJECT, "Normal", "TaintManagerEviction", message)]


def test_it_is_told_of_the_node_that_every_pod_was_told_to_leave() -> None:
    message = "Every pod that has to leave node n1 was told to; still terminating: 3"
    assert told(Vacated(node("n1"), 3)) == [
        Notice(Subject("Node", "n1", "n1-uid"), "Normal", "EvictionsIssued", message)
    ]


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(Held(POD, ("b1",)), id="held without a try"),
        pytest.param(failed(Outcome.BUDGET, 429, "Cannot evict pod", ("b1",)), id="held by the answer"),
    ],
)
def test_a_pod_that_is_held_is_told_with_the_budget_that_holds_it_in_the_same_words(effect: EvictionEffect) -> None:
    message = "Eviction of pod default/p1 is blocked by disruption budget default/b1"
    assert told(effect) == [Notice(SUBJECT, "Warning", "EvictionBlocked", message, "default/b1")]


def test_what_is_wrong_with_a_budget_is_part_of_the_message_and_does_not_make_it_another_event() -> None:
    (plain,), (explained,) = told(Held(POD, ("b1",))), told(Held(POD, ("b1",), ("b1: it wants too much",)))
    assert explained.message == f"{plain.message}; b1: it wants too much"
    assert explained.identity == plain.identity


def test_a_budget_that_never_allows_an_eviction_is_told_of_itself() -> None:
    found = Budget("default", "b1", None, uid="b1-uid")
    subject = Subject("PodDisruptionBudget", "b1", "b1-uid", "default", "policy/v1")
    message = "Pods have to leave, but are held: it wants too much"
    assert told(BudgetMisconfigured(found, "it wants too much")) == [
        Notice(subject, "Warning", "BudgetMisconfigured", message)
    ]


@pytest.mark.parametrize(
    ("budgets", "names"),
    [(("b1", "b2"), "default/b1, default/b2"), ((), "unknown")],
    ids=["two budgets", "a budget that we do not see yet"],
)
def test_every_budget_is_named(budgets: tuple[str, ...], names: str) -> None:
    (notice,) = told(failed(Outcome.BUDGET, 429, budgets=budgets))
    assert notice.message == f"Eviction of pod default/p1 is blocked by disruption budget {names}"


@pytest.mark.reported("kubernetes/kubernetes#75957")
def test_several_budgets_over_one_pod_are_named() -> None:
    (notice,) = told(failed(Outcome.SEVERAL_BUDGETS, 500, "This pod has more than one", ("b1", "b2")))
    assert (notice.type, notice.reason) == ("Warning", "EvictionFailed")
    assert notice.message == (
        "Cannot evict pod default/p1: the Eviction API supports one disruption budget a pod, this one has b1, b2"
    )


@pytest.mark.parametrize(
    ("outcome", "status", "text", "why"),
    [
        (Outcome.FORBIDDEN, 403, "RBAC says no", "RBAC says no"),
        (Outcome.TRANSIENT, 500, "webhook down", "webhook down"),
        (Outcome.TRANSIENT, 0, "connection lost", "connection lost"),
        (Outcome.TRANSIENT, 0, "", "no answer"),
        (Outcome.TRANSIENT, 503, "", "an answer without a message"),
        (Outcome.NAMESPACE_TERMINATING, 403, "namespace goes", "namespace goes"),
        (Outcome.UNEXPECTED, 418, "teapot", "teapot"),
    ],
)
def test_other_refusals_are_told_with_what_the_server_said(
    outcome: Outcome, status: int, text: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = f"Cannot evict pod default/p1: {why}"
    assert told(failed(outcome, status, text)) == [
        Notice(SUBJECT, "Warning", "EvictionFailed", message, key=outcome.value)
    ]
    assert caplog.messages == [
        f"pod default/p1 cannot be evicted ({outcome.value}, status {status}), next try in 5 s: {why}"
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(
            failed(Outcome.TRANSIENT, 500, "request 1 failed"),
            failed(Outcome.TRANSIENT, 502, "request 2 failed"),
            True,
            id="other words of the server",
        ),
        pytest.param(failed(Outcome.TRANSIENT, 500), failed(Outcome.FORBIDDEN, 403), False, id="another outcome"),
        pytest.param(
            failed(Outcome.SEVERAL_BUDGETS, 500, budgets=("b1", "b2")),
            failed(Outcome.SEVERAL_BUDGETS, 500, budgets=("b1", "b3")),
            False,
            id="other budgets",
        ),
    ],
)
def test_refusals_of_one_kind_are_one_event_that_counts(one: EvictionFailed, other: EvictionFailed, same: bool) -> None:
    assert (told(one)[0].identity == told(other)[0].identity) is same


def test_a_pause_is_told_with_its_cause() -> None:
    message = (
        "Eviction of pod default/p1 because of taint foo=bar:NoExecute is paused "
        "while most of its node's zone is not ready"
    )
    assert told(Paused(POD, "n1", LATER)) == [Notice(SUBJECT, "Normal", "EvictionPaused", message)]


@pytest.mark.reported("kubernetes-sigs/karpenter#3218")
def test_a_pod_that_was_deleted_for_its_budgets_is_told_loudly_after_upstreams_words() -> None:
    marked, escalated = told(replace(EVICTED, deleted=True, blocked_seconds=301.2))
    assert marked.message == "Marking for deletion Pod default/p1"
    message = "Deleted pod default/p1, which disruption budgets had held for 301 s, by policy system:default"
    assert escalated == Notice(SUBJECT, "Warning", "EvictionEscalated", message)


@pytest.mark.reported("kubernetes/kubernetes#97832")
@pytest.mark.reported("kubernetes/kubernetes#115779")
@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("policy", "policy p has the mode Ignore"),
        (Trait.ANNOTATED, 'the pod has the annotation taintkeeper.io/evict: "false"'),
        (Trait.UNMANAGED, "policy p ignores pods that no controller would replace"),
        (Trait.LOCAL_STORAGE, "policy p ignores pods with data on the node"),
    ],
)
def test_a_pod_that_is_exempt_is_told_with_the_reason(reason: str, why: str) -> None:
    exempt = replace(NOW, decision=replace(IGNORING, exempt=reason))
    message = f"Pod default/p1 is not evicted because of taint foo=bar:NoExecute: {why}"
    assert told(Skipped(POD, reason, exempt)) == [Notice(SUBJECT, "Normal", "EvictionSkipped", message)]


@pytest.mark.reported("kubernetes/kubernetes#55713")
def test_a_pod_that_does_not_go_away_is_told_with_the_way_out() -> None:
    (notice,) = told(Stuck(POD, "n1", 300.4))
    assert (notice.type, notice.reason, notice.key) == ("Warning", "PodStuckTerminating", "n1")
    assert notice.message == (
        "Pod default/p1 is still terminating, 300 s after its grace period. It is never deleted by force here: if node "
        "n1 is off for good, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, and its pods are"
    )


@pytest.mark.reported("kubereboot/kured#1269")
@pytest.mark.parametrize(
    "text",
    [
        'Internal error occurred: failed calling webhook "guard.example.com": Post "https://x": connection refused',
        'admission webhook "guard.example.com" denied the request: not today',
    ],
    ids=["down", "refuses"],
)
def test_a_webhook_that_holds_pods_is_counted_by_its_name(text: str) -> None:
    registry = CollectorRegistry()
    EvictionMetrics(registry).count(failed(Outcome.TRANSIENT, 500, text))
    assert registry.get_sample_value("taintkeeper_webhook_refusals_total", {"webhook": "guard.example.com"}) == 1.0


def test_deletions_and_escalations_are_counted_beside_evictions() -> None:
    registry = CollectorRegistry()
    metrics = EvictionMetrics(registry)
    for effect in (EVICTED, replace(EVICTED, deleted=True), replace(EVICTED, deleted=True, blocked_seconds=301.2)):
        metrics.count(effect)
    code = {"code": "201", "outcome": "accepted"}
    assert registry.get_sample_value("taintkeeper_eviction_requests_total", code) == 1.0
    assert registry.get_sample_value("taintkeeper_pod_deletions_total", code) == 2.0
    assert registry.get_sample_value("taintkeeper_evictions_escalated_total") == 1.0


def test_what_leaves_is_counted_by_its_policy() -> None:
    registry = CollectorRegistry()
    metrics = EvictionMetrics(registry)
    other = replace(NOW, decision=Decision(Policy("p", dry_run=True)))
    for effect in (EVICTED, replace(EVICTED, deleted=True), Rehearsed(POD, "n1", other)):
        metrics.count(effect)
    counted = {
        (sample.labels["policy"], sample.labels["how"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "taintkeeper_policy_evictions_total"
    }
    assert counted == {("system:default", "evicted"): 1, ("system:default", "deleted"): 1, ("p", "dry-run"): 1}


def test_the_text_of_a_refusal_that_goes_on_stays_the_same_so_that_its_events_can_be_counted() -> None:
    early, late = (told(failed(Outcome.TRANSIENT, 500, "down", retry_in=retry_in)) for retry_in in (1.0, 60.0))
    assert early == late


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(failed(Outcome.TRANSIENT, 409), id="a conflict with another write"),
        pytest.param(failed(Outcome.THROTTLED, 429), id="an API server that asks to slow down"),
        pytest.param(FoundGone(POD, Answer(404)), id="a pod that is gone"),
        pytest.param(Skipped(POD, "mirror", NOW), id="a pod that is never evicted"),
        pytest.param(Evict(POD, NOW), id="an eviction that is still to be sent"),
        pytest.param(Remember("n1", "n1-uid", {}), id="a memory that is still to be written"),
    ],
)
def test_some_things_are_no_pods_owners_business(effect: EvictionEffect) -> None:
    assert told(effect) == []


@pytest.mark.parametrize(
    ("effect", "line"),
    [
        (
            EVICTED,
            "pod default/p1 on node n1 evicted, 0.250 s after it was due: taint foo=bar:NoExecute is not tolerated; "
            "policy system:default, mode Evict",
        ),
        (
            Evicted(POD, "n1", LATER, 0.0, 201),
            "pod default/p1 on node n1 evicted, 0.000 s after it was due: "
            "taint foo=bar:NoExecute is tolerated for 300 s only; policy system:default, mode Evict",
        ),
        (Cancelled(POD, LATER), "pod default/p1 stays: its eviction because of taint foo=bar:NoExecute is cancelled"),
        (Held(POD, ("b1",)), "pod default/p1 is held by disruption budget default/b1"),
        (FoundGone(POD, Answer(404, message="not found")), "pod default/p1 is gone already: not found"),
        (FoundGone(POD, Answer(404)), "pod default/p1 is gone already: 404"),
        (
            replace(EVICTED, deleted=True),
            "pod default/p1 on node n1 deleted, 0.250 s after it was due: taint foo=bar:NoExecute is not tolerated; "
            "policy system:default, mode Evict",
        ),
        (
            Rehearsed(POD, "n1", LATER),
            "pod default/p1 on node n1 would be evicted now: taint foo=bar:NoExecute is tolerated for 300 s only; "
            "policy system:default, mode Evict",
        ),
        (Skipped(POD, "mirror", NOW), "pod default/p1 is not evicted: mirror"),
        (EXEMPT, "Pod default/p1 is not evicted because of taint foo=bar:NoExecute: policy p has the mode Ignore"),
    ],
    ids=[
        "at once",
        "after a time",
        "cancelled",
        "held",
        "gone",
        "another",
        "deleted",
        "rehearsed",
        "skipped",
        "exempt",
    ],
)
def test_the_log_says_what_was_decided_and_why(
    effect: EvictionEffect, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "taintkeeper"):
        told(effect)
    assert caplog.messages == [line]


@pytest.mark.parametrize(
    ("effect", "name", "labels"),
    [
        pytest.param(
            EVICTED, "taintkeeper_eviction_requests_total", {"code": "201", "outcome": "accepted"}, id="calls"
        ),
        pytest.param(EVICTED, "taint_eviction_controller_pod_deletions_total", {}, id="upstream's count"),
        pytest.param(EVICTED, "taintkeeper_eviction_lateness_seconds_count", {}, id="lateness"),
        pytest.param(EVICTED, "taint_eviction_controller_pod_deletion_duration_seconds_count", {}, id="duration"),
        *(
            pytest.param(
                failed(outcome, status),
                "taintkeeper_eviction_requests_total",
                {"code": str(status), "outcome": outcome.value},
                id=outcome.value,
            )
            for outcome, status in (
                *((Outcome.BUDGET, 429), (Outcome.THROTTLED, 429), (Outcome.FORBIDDEN, 403), (Outcome.TRANSIENT, 0)),
                *((Outcome.NAMESPACE_TERMINATING, 403), (Outcome.SEVERAL_BUDGETS, 500)),
            )
        ),
        pytest.param(
            FoundGone(POD, Answer(404)),
            "taintkeeper_eviction_requests_total",
            {"code": "404", "outcome": "gone"},
            id="gone",
        ),
        pytest.param(Cancelled(POD, LATER), "taintkeeper_evictions_cancelled_total", {}, id="cancelled"),
        pytest.param(Skipped(POD, "mirror", NOW), "taintkeeper_pods_skipped_total", {"reason": "mirror"}, id="skipped"),
    ],
)
def test_every_effect_is_counted_once(effect: EvictionEffect, name: str, labels: dict[str, str]) -> None:
    registry = CollectorRegistry()
    EvictionMetrics(registry).count(effect)
    assert registry.get_sample_value(name, labels) == 1.0


@pytest.mark.parametrize(
    "name", ["taintkeeper_eviction_lateness_seconds", "taint_eviction_controller_pod_deletion_duration_seconds"]
)
def test_lateness_is_in_seconds(name: str) -> None:
    registry = CollectorRegistry()
    EvictionMetrics(registry).count(EVICTED)
    assert registry.get_sample_value(f"{name}_sum") == 0.25
