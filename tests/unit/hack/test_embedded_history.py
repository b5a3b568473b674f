"""What the server remembers of the past, and what it says once it has forgotten."""

import pytest

from testbed.client import ApiError, Kube
from testbed.embedded import EmbeddedCluster
from testbed.embedded.failures import Failure
from testbed.embedded.resources import NODES
from testbed.embedded.store import Change, History, Record


def change(version: int) -> Change:
    return Change("ADDED", Record(NODES, {"metadata": {}}, version))


def test_a_reader_gets_every_change_once() -> None:
    history = History(limit=10)
    history.append(change(1))
    position = history.position_after(0)

    first = history.read(position)
    history.append(change(5))
    second = history.read(position + len(first))

    assert [each.record.version for each in first] == [1]
    assert [each.record.version for each in second] == [5]


def test_a_version_between_two_changes_resumes_at_the_later_one() -> None:
    history = History(limit=10)
    for version in (3, 7, 9):
        history.append(change(version))

    assert [each.record.version for each in history.read(history.position_after(5))] == [7, 9]


def test_old_changes_are_forgotten_beyond_the_limit() -> None:
    history = History(limit=2)
    for version in range(1, 6):
        history.append(change(version))

    assert history.oldest == 3
    with pytest.raises(Failure) as failed:
        history.position_after(2)
    assert (failed.value.code, failed.value.reason) == (410, "Expired")


def test_a_reader_that_is_too_slow_is_told_so() -> None:
    history = History(limit=2)
    position = history.position_after(0)
    for version in range(1, 6):
        history.append(change(version))

    with pytest.raises(Failure) as failed:
        history.read(position)
    assert failed.value.code == 410


async def test_a_half_read_list_expires_and_can_be_read_on_as_it_is_now(embedded: EmbeddedCluster, kube: Kube) -> None:
    for name in "abc":
        await kube.create("nodes", {"metadata": {"name": name}})
    first = await kube.request("GET", "/api/v1/nodes", params={"limit": "1"})
    embedded.forget_history()
    await kube.delete("nodes", "", "b")

    params = {"limit": "5", "continue": first.body["metadata"]["continue"]}
    expired = await kube.request("GET", "/api/v1/nodes", params=params)
    rest = {"limit": "5", "continue": expired.body["metadata"]["continue"]}
    remainder = await kube.request("GET", "/api/v1/nodes", params=rest)

    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    assert [each["metadata"]["name"] for each in remainder.body["items"]] == ["c"]


async def test_a_watch_resumed_after_the_history_is_forgotten_gets_410(embedded: EmbeddedCluster, kube: Kube) -> None:
    node = await kube.create("nodes", {"metadata": {"name": "a"}})
    await kube.create("nodes", {"metadata": {"name": "b"}})
    embedded.forget_history()

    version = node["metadata"]["resourceVersion"]
    async with kube.watch("/api/v1/nodes", resourceVersion=version, timeoutSeconds="2") as events:
        seen = [event async for event in events]

    assert [(each["type"], each["object"]["code"]) for each in seen] == [("ERROR", 410)]


async def test_a_dry_run_is_refused_rather_than_carried_out(kube: Kube) -> None:
    body = {"metadata": {"name": "a"}}

    answer = await kube.request("POST", "/api/v1/nodes", body, params={"dryRun": "All"})

    assert answer.status == 400
    with pytest.raises(ApiError):
        await kube.get("nodes", "", "a")
