"""Judging by an audit log: what is right passes, and whatever is wrong in it is found by its rule alone."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from crash.facts import read
from crash.judging import RULES, STEADY_SECONDS, Term, terms

Event = dict[str, Any]

NAMESPACE = "crash"
LEASE_SECONDS = 3
BEGIN = 1_800_000_000.0
END = 100.0
TAKES = 0.01
"""How long every request takes, in seconds."""


def stamp(at: float, digits: int = 6) -> str:
    return datetime.fromtimestamp(BEGIN + at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[: 20 + digits].rstrip(".") + "Z"


def event(at: float, verb: str, resource: str, by: str = "admin", status: int = 201, **rest: Any) -> Event:
    namespace = {} if resource == "nodes" else {"namespace": NAMESPACE}
    resource, _, subresource = resource.partition("/")
    about = {"resource": resource, "name": rest.pop("name", ""), **namespace}
    return {
        "verb": verb,
        "user": {"username": by if by == "admin" else f"system:serviceaccount:{NAMESPACE}:{by}"},
        "objectRef": about | ({"subresource": subresource} if subresource else {}),
        "responseStatus": {"code": status},
        "requestReceivedTimestamp": stamp(at),
        "stageTimestamp": stamp(at + TAKES),
        **rest,
    }


def made(at: float, name: str, seconds: float | None = 0.0, *, uid: str = "", app: str = "free") -> Event:
    timed = {} if seconds is None else {"tolerationSeconds": seconds}
    tolerations = [] if seconds == 0.0 else [{"key": "maintenance", "operator": "Exists", **timed}]
    metadata = {"name": name, "uid": uid or name, "labels": {"app": app}}
    pod = {"metadata": metadata, "spec": {"nodeName": "n1", "tolerations": tolerations}}
    return event(at, "create", "pods", name=name, responseObject=pod)


def tainted(at: float, *, timed: bool = True, taints: bool = True, by: str = "admin") -> Event:
    taint = {"key": "maintenance", "effect": "NoExecute"} | ({"timeAdded": stamp(at, 0)} if timed else {})
    node = {"metadata": {"name": "n1"}, "spec": {"taints": [taint]} if taints else {}}
    return event(at, "patch", "nodes", by, 200, name="n1", responseObject=node)


def evicted(at: float, name: str, *, by: str = "one", uid: str = "", status: int = 201) -> Event:
    body = {"deleteOptions": {"preconditions": {"uid": uid or name}}}
    return event(at, "create", "pods/eviction", by, status, name=name, requestObject=body)


def claimed(at: float, by: str = "one", holder: str | None = None, status: int = 200) -> Event:
    identity = f"{by}_7f3a" if holder is None else holder
    lease = {"spec": {"holderIdentity": identity, "leaseDurationSeconds": LEASE_SECONDS}}
    return event(at, "patch", "leases", by, status, name="taintkeeper", responseObject=lease)


def opened(at: float) -> Event:
    budget = {"spec": {"selector": {"matchLabels": {"app": "web"}}}}
    return event(at, "patch", "poddisruptionbudgets", status=200, name="web", responseObject=budget)


def led(by: str, begin: float, end: float) -> list[Event]:
    return [claimed(begin + step, by) for step in range(int(end - begin) + 1)]


LED = [*led("one", 0, 20), *led("two", 24, END)]
"""One leads until it is killed at 20, another from the end of its lease on."""
STORY = [*LED, made(1, "a"), made(1, "b", 30), made(1, "c", None), tainted(10)]
RIGHT = [*STORY, evicted(10.1, "a"), evicted(40.0, "b", by="two")]


def judge(log: list[Event]) -> dict[str, list[str]]:
    facts = read([json.dumps(each) for each in log], NAMESPACE)
    return {what: found for what, rule in RULES.items() if (found := rule(facts))}


def without(*events: Event) -> list[Event]:
    return [each for each in RIGHT if each not in events]


def test_what_is_right_passes() -> None:
    assert judge(RIGHT) == {}


def test_a_pod_evicted_before_its_time_is_found() -> None:
    log = [*without(RIGHT[-1]), evicted(39.9, "b", by="two")]
    assert judge(log) == {"evicted before its time": ["two: evict b, which was due 0.100 s later"]}


@pytest.mark.parametrize("verb", ["evict", "delete"])
def test_a_pod_that_tolerates_for_ever_and_goes_is_found(verb: str) -> None:
    gone = evicted(50, "c", by="two")
    if verb == "delete":
        body = gone["requestObject"]["deleteOptions"]
        gone = event(50, "delete", "pods", "two", 200, name="c", requestObject=body)
    found = {"evicted before its time": [f"two: {verb} c, which has no reason to leave"]}
    assert judge([*RIGHT, gone]) == found


def test_an_eviction_after_the_taint_is_gone_is_found_unless_they_missed_each_other() -> None:
    removed = tainted(35.0, taints=False)
    log = [*without(RIGHT[-1]), made(1, "d", 25), removed]
    assert judge([*log, evicted(35.5, "d", by="two")]) == {}
    found = {"evicted before its time": ["two: evict b, which has no reason to leave"]}
    assert judge([*log, evicted(40.0, "b", by="two")]) == found


def test_a_countdown_begins_with_the_pod_where_that_is_later_than_the_taint() -> None:
    late = made(50.0, "d", 30)
    assert judge([*RIGHT, late, evicted(80.1, "d", by="two")]) == {}
    found = {"evicted before its time": ["two: evict d, which was due 1.000 s later"]}
    assert judge([*RIGHT, late, evicted(79.0, "d", by="two")]) == found


def test_a_pod_evicted_twice_is_found_and_a_later_pod_of_its_name_is_another() -> None:
    again = made(15, "a", uid="a-2")
    assert judge([*RIGHT, again, evicted(16, "a", uid="a-2")]) == {}
    assert judge([*RIGHT, evicted(16, "a")]) == {"evicted twice": ["a was evicted 2 times"]}


def test_a_refused_eviction_may_be_tried_again() -> None:
    assert judge([*RIGHT, evicted(10.05, "a", status=429), evicted(39, "a", by="two", status=404)]) == {}


def ended(at: float, name: str) -> Event:
    return event(at, "delete", "pods", status=200, name=name, responseObject={"metadata": {"uid": name}})


def test_an_eviction_whose_sender_was_killed_counts_if_the_pod_left() -> None:
    unheard = evicted(10.2, "a", status=504)
    log = [*without(RIGHT[-2]), unheard]
    assert judge([*log, ended(11, "a")]) == {}
    assert judge(log) == {"forgotten": ["a was never evicted"]}
    assert judge([*log, evicted(11, "a"), ended(12, "a")]) == {}
    early = evicted(39.9, "b", by="two", status=504)
    assert "evicted before its time" in judge([*without(RIGHT[-1]), early, ended(40, "b")])


def test_a_pod_that_is_forgotten_is_found() -> None:
    assert judge(without(RIGHT[-1])) == {"forgotten": ["b was never evicted"]}


def test_a_countdown_that_a_restart_began_anew_is_found() -> None:
    log = [*led("one", 0, 30), *led("two", 34, END), made(1, "b", 30), tainted(10), evicted(34.0 + 30.0, "b", by="two")]
    assert judge(log) == {"forgotten": [f"b was evicted {64.0 - 40.0 - STEADY_SECONDS:.1f} s late"]}


def test_nobody_is_late_while_nobody_leads() -> None:
    log = [*led("one", 0, 20), *led("two", 60, END), *RIGHT[len(LED) : -1], evicted(60.1, "b", by="two")]
    assert judge(log) == {}


def test_a_taint_without_a_time_counts_from_when_a_leader_has_seen_it() -> None:
    untimed = [each if each is not STORY[-1] else tainted(19.0, timed=False) for each in STORY]
    first = evicted(19.1, "a")
    seen = 24.0 + TAKES + STEADY_SECONDS
    assert judge([*untimed, first, evicted(seen + 30.0, "b", by="two")]) == {}
    assert "forgotten" in judge([*untimed, first, evicted(seen + 30.0 + STEADY_SECONDS + 1.0, "b", by="two")])
    assert "evicted before its time" in judge([*untimed, first, evicted(48.9, "b", by="two")])


def test_a_pod_behind_a_budget_must_go_once_that_is_opened() -> None:
    web = [*RIGHT, made(1, "w", app="web"), opened(2), opened(50)]
    assert judge([*web, evicted(55.0, "w", by="two")]) == {}
    assert judge(web) == {"forgotten": ["w was never evicted"]}


@pytest.mark.parametrize(
    ("at", "by"),
    [(12.0, "two"), (23.5, "one"), (23.5, "two"), (30.0, "one")],
    ids=["before its term", "after the end of its lease", "before its claim", "after another's claim"],
)
def test_an_eviction_by_a_process_that_does_not_lead_is_found(at: float, by: str) -> None:
    log = [*without(RIGHT[-2]), evicted(at, "a", by=by)]
    assert judge(log).pop("by a process that did not lead") == [f"{by}: evict a, and did not lead"]


def test_a_write_of_a_node_by_a_process_that_does_not_lead_is_found() -> None:
    found = {"by a process that did not lead": ["one: write n1, and did not lead"]}
    assert judge([*RIGHT, tainted(30.0, by="one")]) == found


def test_an_eviction_without_a_uid_is_found() -> None:
    nameless = event(11, "create", "pods/eviction", "one", 409, name="a", requestObject={})
    assert judge([*RIGHT, nameless]) == {"without saying which pod": ["one: evict a without a UID that is known"]}


def test_a_story_that_ends_before_anything_can_be_told_is_no_proof() -> None:
    assert judge(LED) == {"cannot be judged": ["nobody was evicted"]}
    log = [each for each in RIGHT if each["requestReceivedTimestamp"] < stamp(22.0)]
    short = [*log, made(1, "d", 10), event(22.0, "create", "pods", name="x", status=409)]
    assert judge(short) == {"cannot be judged": ["d was due, and nobody led for long enough to tell"]}


def test_terms_end_with_the_lease_or_with_the_next_claim_or_when_it_is_given_back() -> None:
    log = [
        claimed(0),
        claimed(2),
        claimed(9, "two"),
        claimed(10, "two", holder=""),
        claimed(10.5, "three"),
        claimed(11, "x"),
    ]
    claims = read([json.dumps(each) for each in [*log, claimed(11.5, "four", status=409)]], NAMESPACE).claims
    found = [
        Term(term.holder, *(round(at - BEGIN, 2) for at in (term.begins, term.renewed, term.ends)))
        for term in terms(claims)
    ]
    assert found == [
        Term("one", 0.01, 2.0, 5.0),
        Term("two", 9.01, 9.0, 10.0),
        Term("three", 10.51, 10.5, 11.0),
        Term("x", 11.01, 11.0, 14.0),
    ]
