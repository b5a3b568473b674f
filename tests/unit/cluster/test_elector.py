"""A candidate at work in its own thread, against the embedded control plane."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from taintkeeper.cluster.clock import AWAKE_CLOCK
from taintkeeper.cluster.credentials import Kubeconfig
from taintkeeper.cluster.elector import Elector, awake_clock
from taintkeeper.cluster.lease_lock import LeaseLock
from taintkeeper.core.election import Terms
from testbed.client import Kube
from testbed.embedded import EmbeddedCluster
from testbed.embedded.access import Denial
from testbed.embedded.faults import Fault, Loss
from tests.unit.cluster.scripted_api import LOST, Answer, Late, ScriptedApi, reply

HOME = "default"
SECONDS = 10.0
BLOCKED_SECONDS = 2.5
"""Longer than the lease below."""


class Skewed:
    """A clock that a test sets forward, as a machine's does that has slept."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return awake_clock() + self.ahead


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


@asynccontextmanager
async def candidate(
    cluster: EmbeddedCluster, name: str = "a_1", clock: Callable[[], float] = awake_clock
) -> AsyncIterator[tuple[Elector, list[str]]]:
    """Run a candidate with short times; yield it and why it lost the Lease. It gives the Lease back at the end."""
    lost: list[str] = []
    elector = Elector(
        Terms(name, lease_seconds=2, renew_seconds=1.5, retry_seconds=0.2),
        (HOME, "lock"),
        lambda: Kubeconfig(str(cluster.kubeconfig_for(HOME, "elector")), None),
        observe=lambda *_: None,
        lost=lost.append,
        clock=clock,
    )
    elector.start()
    try:
        yield elector, lost
    finally:
        await elector.stop(release=True)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - what it waits for happens in other threads
            await asyncio.sleep(0.01)


def spec(cluster: EmbeddedCluster) -> dict[str, Any]:
    leases = [each for each in cluster.objects("leases", HOME) if each["metadata"]["name"] == "lock"]
    return dict(leases[0]["spec"]) if leases else {}


async def test_the_only_candidate_leads_and_gives_the_lease_back_when_it_ends(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, lost):
        assert not elector.leads()
        await elector.until_elected()
        assert elector.leads()
        assert spec(embedded)["holderIdentity"] == "a_1"
        assert elector.record is not None
    assert not elector.leads()
    assert lost == []
    assert (spec(embedded)["holderIdentity"], spec(embedded)["leaseDurationSeconds"]) == ("", 1)


async def test_another_waits_until_the_lease_is_given_back(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    async with candidate(embedded, "b_1") as (second, _):
        await second.until_elected()
        async with candidate(embedded, "a_1") as (first, _):
            await until(lambda: first.record)
            assert not first.leads()
            await second.stop(release=True)
            await first.until_elected()
    assert spec(embedded)["leaseTransitions"] == 1
    assert caplog.messages.count("standing by: b_1 leads") == 1
    assert caplog.messages.count("leading as a_1") == 1


async def test_a_lease_is_kept_where_a_write_may_still_be_under_way(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, _):
        await elector.until_elected()
        await elector.stop(release=False)
        assert not elector.leads()
    assert spec(embedded)["holderIdentity"] == "a_1"


async def test_a_busy_event_loop_does_not_keep_the_lease_from_being_renewed(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, lost):
        await elector.until_elected()
        before, until_then = spec(embedded)["renewTime"], time.monotonic() + BLOCKED_SECONDS
        led = set()
        while time.monotonic() < until_then:
            led.add(elector.leads())
        assert led == {True}
        assert lost == []
        assert spec(embedded)["renewTime"] > before


@pytest.mark.parametrize(
    "fault",
    [Fault(method="PATCH", loss=Loss.BEFORE), Fault(method="PATCH", status=500), Fault(delay_seconds=60.0)],
    ids=["no connection", "500", "no answer"],
)
@pytest.mark.reported("kopf peering")
async def test_who_cannot_renew_leads_no_longer_before_the_lease_is_over(
    fault: Fault, embedded: EmbeddedCluster
) -> None:
    async with candidate(embedded, "a_1") as (leader, lost):
        await leader.until_elected()
        async with candidate(embedded, "b_1") as (other, _):
            await until(lambda: other.record)
            embedded.faults.add(fault)
            await until(lambda: not leader.leads())
            assert spec(embedded)["holderIdentity"] == "a_1"
            assert not other.leads()
            embedded.faults.clear()
            await until(lambda: lost)
            await other.until_elected()
    assert lost == ["it could not be renewed for 1.5 s"]


async def test_whoever_slept_past_the_end_has_lost_the_lease_at_once(embedded: EmbeddedCluster) -> None:
    clock = Skewed()
    async with candidate(embedded, clock=clock) as (elector, lost):
        await elector.until_elected()
        clock.ahead = 1.5
        assert not elector.leads()
        await until(lambda: lost)
    assert lost == ["it could not be renewed for 1.5 s"]


async def test_a_lost_answer_does_not_cost_the_lease(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, lost):
        await elector.until_elected()
        fault = embedded.faults.add(Fault(method="PATCH", loss=Loss.AFTER, times=3))
        await until(lambda: fault.hits == 3)
        renewed = spec(embedded)["renewTime"]
        await until(lambda: spec(embedded)["renewTime"] > renewed)
        assert elector.leads()
        assert lost == []


async def test_who_is_put_out_by_hand_stops_at_once(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, lost), Kube(embedded.kubeconfig) as kube:
        await elector.until_elected()
        await kube.patch("leases", HOME, "lock", {"spec": {"holderIdentity": "somebody"}})
        await until(lambda: lost)
        assert not elector.leads()
    assert lost == ["it is held by somebody"]
    assert spec(embedded)["holderIdentity"] == "somebody"


async def test_what_others_keep_in_the_lease_stays(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, _), Kube(embedded.kubeconfig) as kube:
        await elector.until_elected()
        await kube.patch("leases", HOME, "lock", {"metadata": {"labels": {"owner": "them"}}})
        renewed = spec(embedded)["renewTime"]
        await until(lambda: spec(embedded)["renewTime"] > renewed)
        assert (await kube.get("leases", HOME, "lock"))["metadata"]["labels"] == {"owner": "them"}


async def test_why_nobody_can_lead_is_said_once(embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture) -> None:
    denial = Denial(verb="get", resource="leases", group="coordination.k8s.io")
    embedded.access.deny(denial)
    async with candidate(embedded) as (elector, _):
        await until(lambda: elector.trouble)
        asked = sum(embedded.requests.values())
        await until(lambda: sum(embedded.requests.values()) > asked + 3)
        trouble = elector.trouble
        assert trouble is not None
        assert trouble.startswith("the Lease default/lock cannot be read: 403: ")
        assert caplog.messages.count(trouble) == 1
        embedded.access.allow(denial)
        await elector.until_elected()
        assert elector.trouble is None


async def test_it_ends_soon_though_the_api_server_does_not_answer(embedded: EmbeddedCluster) -> None:
    async with candidate(embedded) as (elector, _):
        await elector.until_elected()
        embedded.faults.add(Fault(delay_seconds=60.0))
        async with asyncio.timeout(SECONDS):
            await elector.stop(release=True)
        assert not any(thread.name == "elector" for thread in threading.enumerate())
    embedded.faults.clear()


async def test_one_that_is_stopped_before_it_has_begun_ends(embedded: EmbeddedCluster) -> None:
    stopping = threading.Event()

    def login() -> Kubeconfig:
        stopping.wait(SECONDS)
        return Kubeconfig(str(embedded.kubeconfig), None)

    elector = Elector(Terms("a_1", 3, 2.0, 0.2), (HOME, "lock"), login, observe=lambda *_: None, lost=pytest.fail)
    elector.start()
    ending = asyncio.create_task(elector.stop(release=True))
    await until(elector._stopped.is_set)
    stopping.set()
    await ending
    assert not elector._thread.is_alive()


async def test_an_error_of_our_own_loses_the_lease(embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async with candidate(embedded) as (elector, lost):
        await elector.until_elected()

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a fault")

        monkeypatch.setattr(elector._election, "claimed", broken)
        await until(lambda: lost)
        assert not elector.leads()
    assert lost == ["internal error: ZeroDivisionError('a fault')"]


async def test_one_that_was_never_started_can_be_stopped() -> None:
    elector = Elector(
        Terms("a_1", 3, 2.0, 0.2), (HOME, "lock"), pytest.fail, observe=lambda *_: None, lost=lambda _: None
    )
    await elector.stop(release=True)


def test_the_clock_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_gettime", {AWAKE_CLOCK: 7.0}.__getitem__)
    assert awake_clock() == 7.0


OURS = reply(
    200,
    {
        "metadata": {"name": "lock", "uid": "u1", "resourceVersion": "7"},
        "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 15},
    },
)
NEVER_ANSWERED = Late(3600.0, OURS)


def scripted(
    *script: Answer, retry_seconds: float = 2.0, forever: Answer = NEVER_ANSWERED
) -> tuple[Elector, LeaseLock]:
    """Return a candidate in virtual time, without its thread, whose requests get these answers."""
    terms = Terms("a_1", lease_seconds=15, renew_seconds=10.0, retry_seconds=retry_seconds)
    clock = asyncio.get_running_loop().time
    elector = Elector(terms, (HOME, "lock"), pytest.fail, observe=lambda *_: None, lost=pytest.fail, clock=clock)
    return elector, LeaseLock(ScriptedApi(*script, forever=forever), HOME, "lock", terms)


@pytest.mark.looptime
@pytest.mark.parametrize("retry_seconds", [2.0, 3.0, 9.0])
@pytest.mark.parametrize("answer", [NEVER_ANSWERED, LOST], ids=["no answer", "no connection"])
async def test_a_leader_notices_at_the_deadline_that_it_could_not_renew(answer: Answer, retry_seconds: float) -> None:
    elector, lock = scripted(OURS, OURS, retry_seconds=retry_seconds, forever=answer)
    await elector._campaign(lock)
    assert elector._election.ended == "it could not be renewed for 10 s"
    assert asyncio.get_running_loop().time() == 10.0


@pytest.mark.looptime
async def test_a_request_without_an_answer_is_given_up_in_time_for_another() -> None:
    elector, lock = scripted()
    asking = asyncio.create_task(elector._campaign(lock))
    await asyncio.sleep(5.1)
    assert elector.trouble == "the Lease default/lock cannot be read: TimeoutError"
    asking.cancel()


@pytest.mark.looptime
async def test_giving_the_lease_back_holds_nobody_up_for_long(caplog: pytest.LogCaptureFixture) -> None:
    elector, lock = scripted(OURS)
    elector._release = True
    await elector._leave(lock)
    assert asyncio.get_running_loop().time() == 2.0
    assert "the Lease could not be given back, others wait until it is over: TimeoutError" in caplog.messages
