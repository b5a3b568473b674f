"""Who we are, and whether we may act."""

import os
import platform

import pytest

from taintkeeper.cluster.client import Observer
from taintkeeper.cluster.elector import awake_clock
from taintkeeper.cluster.events import Notice
from taintkeeper.leadership import Leadership, end_process, own_pod
from taintkeeper.settings import parse_settings
from tests.unit.core.election_bench import held


def observe(*_: object) -> None:
    """Take no note of any request."""


OBSERVE: Observer = observe


def made(**flags: str) -> Leadership:
    told: list[Notice] = []
    given: dict[str, str | None] = {name.replace("_", "-"): text for name, text in flags.items()}
    return Leadership(parse_settings(given, {}), observe=OBSERVE, send=told.append)


@pytest.mark.parametrize(
    "flags", [{}, {"leader_elect": "false"}, {"leader_elect": "true", "dry_run": "true"}], ids=["", "off", "dry run"]
)
async def test_who_takes_part_in_no_election_leads_at_any_time(flags: dict[str, str]) -> None:
    leadership = made(**flags)
    assert not leadership.elected
    assert leadership.leads()
    await leadership.acquire()
    assert leadership.leads()
    assert not leadership.standby
    assert (leadership.checks(), leadership.permissions) == ({}, ())
    leadership.resign()
    await leadership.end(release=True)


async def test_who_takes_part_in_an_election_does_not_lead_at_first() -> None:
    leadership = made(leader_elect="true")
    assert leadership.elected
    assert leadership.standby
    assert not leadership.leads()
    assert leadership.checks() == {"leader: standby": None}
    await leadership.end(release=True)


async def test_only_who_leads_tells_that_it_leads_no_longer() -> None:
    told: list[Notice] = []
    leadership = Leadership(parse_settings({"leader-elect": "true"}, {}), observe=OBSERVE, send=told.append)
    assert leadership._elector is not None
    election, now = leadership._elector._election, awake_clock()
    election.request(now)
    election.found(held("them_1"), now)
    leadership.resign()
    assert told == []
    election.request(now)
    election.claimed(held(leadership._elector.terms.identity), now)
    leadership.resign()
    assert [notice.message for notice in told] == [f"{leadership._elector.terms.identity} stopped leading"]


@pytest.mark.parametrize(
    ("flag", "namespace", "where"),
    [
        ("", None, "taintkeeper"),
        ("", "", "taintkeeper"),
        ("", "pods-own", "pods-own"),
        ("chosen", "pods-own", "chosen"),
    ],
)
async def test_the_lease_is_where_it_is_said_to_be_else_beside_the_pod(
    flag: str, namespace: str | None, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    if namespace is not None:
        monkeypatch.setenv("POD_NAMESPACE", namespace)
    leadership = made(leader_elect="true", leader_elect_resource_namespace=flag, leader_elect_resource_name="lock")
    assert leadership._elector is not None
    assert leadership._elector.place == (where, "lock")
    assert {(each.verb, each.namespace, each.name) for each in leadership.permissions} == {
        ("create", where, ""),
        ("get", where, "lock"),
        ("patch", where, "lock"),
    }


@pytest.mark.parametrize(("pod", "name"), [("taintkeeper-1", "taintkeeper-1"), (None, platform.node())])
async def test_no_two_runs_have_the_same_identity(pod: str | None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)
    if pod is not None:
        monkeypatch.setenv("POD_NAME", pod)
    electors = [made(leader_elect="true")._elector for _ in range(2)]
    identities = {elector.terms.identity for elector in electors if elector is not None}
    assert len(identities) == 2
    assert {identity.rpartition("_")[0] for identity in identities} == {name}


async def test_the_times_are_those_of_the_flags() -> None:
    elector = made(
        leader_elect="true",
        leader_elect_lease_duration="30s",
        leader_elect_renew_deadline="20s",
        leader_elect_retry_period="3s",
    )._elector
    assert elector is not None
    terms = elector.terms
    assert (terms.lease_seconds, terms.renew_seconds, terms.retry_seconds) == (30, 20.0, 3.0)


def test_who_has_lost_the_lease_says_so_and_is_gone_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    end_process("it is held by somebody")
    assert codes == [1]
    assert caplog.messages == ["no longer the leader, ending: it is held by somebody"]


@pytest.mark.parametrize(
    ("environment", "own"),
    [({"POD_NAMESPACE": "a", "POD_NAME": "b"}, ("a", "b")), ({"POD_NAME": "b"}, None), ({"POD_NAMESPACE": "a"}, None)],
    ids=str,
)
def test_our_own_pod_is_known_by_namespace_and_name(
    environment: dict[str, str], own: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("POD_NAMESPACE", "POD_NAME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    assert own_pod() == own
