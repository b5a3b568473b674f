"""The server misbehaves exactly as told, and writes down what it was asked."""

import asyncio
import time
from typing import Any

import aiohttp
import pytest

from testbed.client import ApiError, Kube, until
from testbed.embedded import Denial, EmbeddedCluster, Fault, Loss, RequestKind
from testbed.embedded.actors.kubelets import Kubelets
from testbed.embedded.samples import sample_nodes, sample_pods

NODES = "/api/v1/nodes"


async def test_a_fault_answers_in_place_of_the_server_as_often_as_told(embedded: EmbeddedCluster, kube: Kube) -> None:
    fault = embedded.faults.add(Fault(method="GET", path="/nodes$", status=429, headers={"Retry-After": "3"}, times=2))

    answers = [await kube.request("GET", NODES) for _ in range(3)]

    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "3"
    assert answers[0].body["reason"] == "TooManyRequests"
    assert fault.hits == 2


async def test_a_fault_can_say_anything(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.faults.add(Fault(status=403, body={"reason": "Forbidden", "details": {"causes": []}}))

    answer = await kube.request("GET", NODES)

    assert (answer.status, answer.body) == (403, {"reason": "Forbidden", "details": {"causes": []}})


async def test_a_fault_leaves_other_requests_alone(embedded: EmbeddedCluster, kube: Kube) -> None:
    fault = embedded.faults.add(Fault(method="POST", path="/eviction$", status=500))

    assert (await kube.request("GET", NODES)).status == 200
    assert (await kube.evict("default", "p")).status == 500
    embedded.faults.remove(fault)
    assert (await kube.evict("default", "p")).status == 404


async def test_cleared_faults_are_over(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.faults.add(Fault(status=503))
    embedded.faults.clear()

    assert (await kube.request("GET", NODES)).status == 200


async def test_a_delayed_request_is_carried_out_late(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.faults.add(Fault(method="POST", delay_seconds=0.2))

    start = time.monotonic()
    await kube.create("nodes", {"metadata": {"name": "late"}})

    assert time.monotonic() - start >= 0.2
    assert [node["metadata"]["name"] for node in embedded.objects("nodes")] == ["late"]


@pytest.mark.parametrize(("loss", "created"), [(Loss.BEFORE, []), (Loss.AFTER, ["lost"])])
async def test_a_lost_connection_may_or_may_not_have_had_an_effect(
    embedded: EmbeddedCluster, kube: Kube, loss: Loss, created: list[str]
) -> None:
    embedded.faults.add(Fault(method="POST", loss=loss))

    with pytest.raises(aiohttp.ClientError):
        await kube.create("nodes", {"metadata": {"name": "lost"}})

    assert [node["metadata"]["name"] for node in embedded.objects("nodes")] == created
    assert embedded.requests == {RequestKind("POST", "nodes", "", 0): 1}


async def collect(kube: Kube, seen: list[Any], **params: str) -> None:
    async with kube.watch(NODES, **params) as events:
        async for event in events:
            kind = event["type"]
            seen.append(kind)


async def watching(embedded: EmbeddedCluster) -> None:
    await until(lambda: embedded.requests[RequestKind("WATCH", "nodes", "", 200)] > 0)
    await asyncio.sleep(0.05)


async def test_cut_watches_end(embedded: EmbeddedCluster, kube: Kube) -> None:
    seen: list[str] = []
    task = asyncio.create_task(collect(kube, seen))
    await watching(embedded)

    assert embedded.cut_watches("pods") == 0
    assert embedded.cut_watches("nodes") == 1
    await asyncio.wait_for(task, 5)

    assert seen == []


async def test_watches_cut_abruptly_end_in_an_error(embedded: EmbeddedCluster, kube: Kube) -> None:
    task = asyncio.create_task(collect(kube, []))
    await watching(embedded)

    embedded.cut_watches(abruptly=True)

    with pytest.raises(aiohttp.ClientError):
        await asyncio.wait_for(task, 5)


async def test_an_injected_error_is_the_last_event_of_a_watch(embedded: EmbeddedCluster, kube: Kube) -> None:
    seen: list[str] = []
    task = asyncio.create_task(collect(kube, seen))
    await watching(embedded)

    embedded.inject_watch_error(410, "nodes")
    await asyncio.wait_for(task, 5)

    assert seen == ["ERROR"]


async def test_a_frozen_watch_is_silent_and_catches_up_when_thawed(embedded: EmbeddedCluster, kube: Kube) -> None:
    seen: list[str] = []
    task = asyncio.create_task(collect(kube, seen, allowWatchBookmarks="true"))
    await watching(embedded)

    embedded.freeze_watches("nodes")
    await kube.create("nodes", {"metadata": {"name": "a"}})
    await asyncio.sleep(0.4)
    while_frozen = list(seen)
    embedded.thaw_watches("nodes")
    await asyncio.sleep(0.1)
    task.cancel()

    assert "ADDED" not in while_frozen
    assert "ADDED" in seen


async def test_bookmarks_come_as_often_as_configured(kube: Kube) -> None:
    seen: list[str] = []
    await collect(kube, seen, allowWatchBookmarks="true", timeoutSeconds="1")

    assert set(seen) == {"BOOKMARK"}
    assert 3 <= len(seen) <= 6


async def test_an_old_server_refuses_initial_events(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.refuse_initial_events()
    params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

    with pytest.raises(ApiError) as refused:
        await collect(kube, [], **params)
    embedded.refuse_initial_events(refuse=False)
    await collect(kube, [], **params, timeoutSeconds="1")

    assert refused.value.status == 422
    assert "WatchList" in refused.value.body["message"]


async def test_a_rotated_token_is_refused_and_the_new_one_works(embedded: EmbeddedCluster) -> None:
    kubeconfig = embedded.kubeconfig_for("default", "operator")
    async with Kube(kubeconfig) as before:
        assert (await before.request("GET", NODES)).status == 200
        embedded.rotate_token(kubeconfig)
        answer = await before.request("GET", NODES)
    async with Kube(kubeconfig) as after:
        assert (await after.request("GET", NODES)).status == 200

    assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")


async def test_what_is_denied_is_forbidden_and_reviewed_as_such(embedded: EmbeddedCluster, kube: Kube) -> None:
    denial = Denial(verb="create", resource="pods", subresource="eviction")
    embedded.access.deny(denial)
    attributes = {"verb": "create", "resource": "pods", "subresource": "eviction", "namespace": "default"}
    review = {"spec": {"resourceAttributes": attributes}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    async with Kube(embedded.kubeconfig_for("default", "operator")) as operator:
        refused = await operator.evict("default", "p")
        reviewed = await operator.request("POST", reviews, review)
        embedded.access.allow(denial)
        allowed = await operator.evict("default", "p")

    assert refused.status == 403
    assert refused.body["message"] == (
        'pods "p" is forbidden: User "system:serviceaccount:default:operator" cannot create resource "pods/eviction" '
        'in API group "" in the namespace "default"'
    )
    assert reviewed.body["status"]["allowed"] is False
    assert allowed.status == 404
    assert (await kube.evict("default", "p")).status == 404


async def test_evictions_are_written_down_with_their_answers(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.seed(sample_pods(1, 1))
    uid = embedded.objects("pods")[0]["metadata"]["uid"]

    await kube.evict("default", "pod-1", uid)
    await kube.evict("default", "pod-2")

    calls = [(call.namespace, call.name, call.uid, call.code) for call in embedded.evictions]
    assert calls == [("default", "pod-1", uid, 201), ("default", "pod-2", "", 404)]
    embedded.clear_journal()
    assert not embedded.evictions
    assert not embedded.requests


async def test_what_an_actor_fails_with_comes_out_when_the_cluster_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Kubelets, "look", fail)
    cluster = EmbeddedCluster().start()
    cluster.add_nodes(1)

    with pytest.raises(ExceptionGroup) as failed:
        cluster.stop()

    assert failed.group_contains(ZeroDivisionError)


async def test_a_cluster_stops_with_watches_and_requests_under_way() -> None:
    with EmbeddedCluster() as cluster:
        cluster.seed(sample_nodes(3))
        async with Kube(cluster.kubeconfig) as kube:
            tasks = [asyncio.create_task(collect(kube, [])) for _ in range(5)]
            await watching(cluster)
            start = time.monotonic()
            await asyncio.to_thread(cluster.stop)
            assert time.monotonic() - start < 1
            await asyncio.gather(*tasks, return_exceptions=True)
