"""Lists in pages and watches: the embedded server answers what a real one does, event for event."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from testbed.client import Kube
from tests.cluster.conformance import ABSENT, Row, World, cause, check, differ, failure

PODS = "/api/v1/namespaces/$ns/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
BUDGETS = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets"
NAMES = ["a", "b", "c", "d", "e"]
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
FAR_AWAY = "9000000000"


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


async def five_pods(world: World) -> None:
    for name in NAMES:
        await world.pod(name, labels={"app": "x", "even": "yes" if name in "bd" else "no"})


async def a_lease_and_a_budget(world: World) -> None:
    await world.kube.create("leases", {"metadata": {"name": "l", "namespace": world.namespace}})
    await world.pod()
    await world.budget(minAvailable=1)


def named(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}, "kind": ABSENT, "apiVersion": ABSENT} for name in names]


listed = partial(Row, method="GET", path=PODS, status=200)

LISTS = [
    listed(
        name="all in order, without their kind",
        given=five_pods,
        answer={"kind": "PodList", "apiVersion": "v1", "items": named(*NAMES), "metadata": {"continue": ABSENT}},
    ),
    listed(
        name="a page says how many remain",
        given=five_pods,
        params={"limit": "2"},
        answer={"items": named("a", "b"), "metadata": {"remainingItemCount": 3}},
    ),
    listed(
        name="a page of a selection does not",
        given=five_pods,
        params={"limit": "1", "labelSelector": "even=yes"},
        answer={"items": named("b"), "metadata": {"remainingItemCount": ABSENT}},
    ),
    listed(
        name="version 0 comes from the cache and has no pages",
        given=five_pods,
        params={"limit": "2", "resourceVersion": "0"},
        answer={"kind": "PodList", "metadata": {"continue": ABSENT}},
    ),
    listed(
        name="by label, one of a set",
        given=five_pods,
        params={"labelSelector": "even in (yes,perhaps),app,!missing,app!=y"},
        answer={"items": named("b", "d")},
    ),
    listed(
        name="by name",
        given=five_pods,
        params={"fieldSelector": "metadata.name=c"},
        answer={"items": named("c")},
    ),
    listed(
        name="by node, in all namespaces",
        given=five_pods,
        path="/api/v1/pods",
        params={"fieldSelector": "spec.nodeName=$node,status.phase!=Failed"},
        answer={"items": named(*NAMES)},
    ),
    listed(
        name="by a field that cannot be selected by",
        params={"fieldSelector": "spec.priority=1"},
        status=400,
        answer=failure("BadRequest"),
    ),
    listed(
        name="leases",
        given=a_lease_and_a_budget,
        path=LEASES,
        answer={"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": named("l")},
    ),
    listed(
        name="budgets, with what their status counts",
        given=a_lease_and_a_budget,
        path=BUDGETS,
        answer={
            "kind": "PodDisruptionBudgetList",
            "items": [
                {
                    "metadata": {"generation": 1},
                    "status": {
                        "expectedPods": 1,
                        "currentHealthy": 1,
                        "desiredHealthy": 1,
                        "disruptionsAllowed": 0,
                        "observedGeneration": 1,
                        "disruptedPods": ABSENT,
                        "conditions": [
                            {
                                "type": "DisruptionAllowed",
                                "status": "False",
                                "reason": "InsufficientPods",
                                "message": "",
                                "observedGeneration": 1,
                            }
                        ],
                    },
                }
            ],
        },
    ),
    listed(
        name="no namespace, no items",
        path="/api/v1/namespaces/$none/pods",
        answer={"items": []},
    ),
    listed(
        name="a version still to come",
        params={"resourceVersion": FAR_AWAY},
        status=504,
        answer=failure("Timeout", causes=[cause("ResourceVersionTooLarge")], retryAfterSeconds=1),
        headers={"Retry-After": "1"},
    ),
    listed(
        name="a version that is no number",
        params={"resourceVersion": "new"},
        status=400,
        answer=failure("BadRequest"),
    ),
    listed(
        name="a match without version",
        params={"resourceVersionMatch": "NotOlderThan"},
        status=422,
        answer=failure(
            "Invalid",
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden '
            "unless resourceVersion is provided",
        ),
    ),
    listed(
        name="a continue token that is none",
        params={"limit": "1", "continue": "none"},
        status=400,
        answer=failure("BadRequest"),
    ),
    listed(
        name="a watch for initial events that does not say how old they may be",
        params={"watch": "true", "sendInitialEvents": "true"},
        status=422,
        answer=failure(
            "Invalid",
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires '
            "setting resourceVersionMatch to NotOlderThan",
        ),
    ),
]


@pytest.mark.parametrize("row", LISTS, ids=lambda row: row.name)
async def test_a_list_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


async def test_pages_show_the_state_at_the_first_of_them(world: World) -> None:
    await five_pods(world)
    path = world.fill(PODS)
    first = (await world.kube.request("GET", path, params={"limit": "3"})).body
    await world.kube.delete("pods", world.namespace, "e", gracePeriodSeconds=0)
    await world.pod("f")

    token = first["metadata"]["continue"]
    second = (await world.kube.request("GET", path, params={"limit": "3", "continue": token})).body

    assert [each["metadata"]["name"] for each in second["items"]] == ["d", "e"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


async def observe(world: World, path: str, **params: str) -> list[dict[str, Any]]:
    """Return the events of a watch that is given two seconds."""
    async with world.kube.watch(world.fill(path), timeoutSeconds="2", **params) as events:
        return [event async for event in events]


def brief(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_a_watch_goes_on_from_the_version_it_is_given(world: World) -> None:
    before = await world.pod("a")
    await world.pod("b")
    await world.kube.delete("pods", world.namespace, "b", gracePeriodSeconds=0)

    events = await observe(world, PODS, resourceVersion=before["metadata"]["resourceVersion"])

    # The last change before the deletion is the mark that the pod is on its way.
    expected = ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert [brief(event) for event in events] == [(kind, "b") for kind in expected]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert events[0]["object"]["kind"] == "Pod"
    assert events[0]["object"]["apiVersion"] == "v1"
    assert events[2]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_an_object_enters_and_leaves_a_watch_with_its_labels(world: World) -> None:
    before = await world.pod("a", labels={"app": "x"})
    for app in ("y", "z", "x"):
        await world.kube.patch("pods", world.namespace, "a", {"metadata": {"labels": {"app": app}}})

    version = before["metadata"]["resourceVersion"]
    events = await observe(world, PODS, resourceVersion=version, labelSelector="app in (y,z)")

    assert [brief(event)[0] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"app": "z"}
    now = await world.kube.get("pods", world.namespace, "a")
    assert events[2]["object"]["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]


async def test_initial_events_end_with_a_bookmark(world: World) -> None:
    for name in ("b", "a"):
        await world.pod(name)

    events = await observe(world, PODS, **INITIAL)

    assert [brief(event) for event in events[:2]] == [("ADDED", "a"), ("ADDED", "b")]
    end = events[2]
    assert end["type"] == "BOOKMARK"
    assert differ({"kind": "Pod", "apiVersion": "v1"}, end["object"]) == []
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(end["object"]["metadata"]["resourceVersion"]) >= int(world.names["a_version"])


async def test_what_happens_after_the_initial_events_follows_their_end(world: World) -> None:
    await world.pod("a")
    async with world.kube.watch(world.fill(PODS), timeoutSeconds="10", **INITIAL) as events:
        assert brief(await anext(events)) == ("ADDED", "a")
        end = await anext(events)
        assert end["type"] == "BOOKMARK"
        await world.kube.patch("pods", world.namespace, "a", {"metadata": {"labels": {"more": "yes"}}})
        changed = await anext(events)

    assert brief(changed) == ("MODIFIED", "a")
    assert int(changed["object"]["metadata"]["resourceVersion"]) > int(end["object"]["metadata"]["resourceVersion"])


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_without_a_version_starts_with_what_is_there(world: World, version: str) -> None:
    await world.pod("a")

    events = await observe(world, PODS, **({"resourceVersion": version} if version else {}))

    assert [brief(event) for event in events] == [("ADDED", "a")]


async def test_a_watch_with_bookmarks_gets_one_before_it_ends(world: World) -> None:
    before = await world.pod("a")
    version = before["metadata"]["resourceVersion"]

    events = await observe(world, PODS, resourceVersion=version, allowWatchBookmarks="true")

    assert [event["type"] for event in events] in (["BOOKMARK"], [])
    assert all(int(event["object"]["metadata"]["resourceVersion"]) >= int(version) for event in events)
