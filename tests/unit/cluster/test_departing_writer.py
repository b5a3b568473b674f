"""Our own pod is only rehearsed while we lead; what is to become of it is handed over for the time after that."""

from typing import Any

import pytest

from taintkeeper.cluster.departing_writer import DepartingWriter, Departure
from taintkeeper.cluster.writer import ApiWriter
from taintkeeper.core.answers import CAUSE_DISRUPTION_BUDGET, Answer
from taintkeeper.core.objects import PodRef
from tests.unit.cluster.scripted_api import ScriptedApi, reply

OWN = PodRef("taintkeeper", "taintkeeper-0", "own-uid")
NAMESAKE = PodRef("default", "taintkeeper-0", "other-uid")
HELD: dict[str, Any] = {"details": {"causes": [{"reason": CAUSE_DISRUPTION_BUDGET}]}}


def writer(api: ScriptedApi) -> tuple[DepartingWriter, list[Departure]]:
    departures: list[Departure] = []
    return DepartingWriter(api, ("taintkeeper", "taintkeeper-0"), departures.append), departures


async def test_other_pods_are_evicted_and_deleted_as_ever() -> None:
    api = ScriptedApi(reply(201, {}), reply(200, {}), reply(200, {}))
    made, departures = writer(api)
    assert await made.evict(NAMESAKE, 5) == Answer(201)
    assert await made.delete(NAMESAKE, 5, "no reason", 0.0) == Answer(200)
    assert departures == []
    assert [each.call.method for each in api.sent] == ["POST", "PATCH", "DELETE"]
    assert "dryRun" not in str([each.call.body for each in api.sent])


async def test_our_own_pod_is_evicted_after_we_have_ended() -> None:
    api, later = ScriptedApi(reply(201, {})), ScriptedApi(reply(201, {}))
    made, departures = writer(api)
    assert await made.evict(OWN, 5) == Answer(201)
    options = {"preconditions": {"uid": "own-uid"}, "gracePeriodSeconds": 5}
    assert [each.call.body["deleteOptions"] for each in api.sent] == [{**options, "dryRun": ["All"]}]
    (departure,) = departures
    assert await departure(ApiWriter(later)) == Answer(201)
    assert [each.line for each in later.sent] == ["POST /api/v1/namespaces/taintkeeper/pods/taintkeeper-0/eviction"]
    assert later.sent[0].call.body["deleteOptions"] == options


async def test_our_own_pod_is_deleted_after_we_have_ended() -> None:
    api, later = ScriptedApi(reply(200, {})), ScriptedApi(reply(200, {}), reply(200, {}))
    made, departures = writer(api)
    assert await made.delete(OWN, None, "its budget was closed for long", 0.0) == Answer(200)
    assert [(each.call.method, each.call.body["dryRun"]) for each in api.sent] == [("DELETE", ["All"])]
    (departure,) = departures
    assert await departure(ApiWriter(later)) == Answer(200)
    assert [each.call.method for each in later.sent] == ["PATCH", "DELETE"]
    assert later.sent[1].call.body["preconditions"] == {"uid": "own-uid"}
    assert "dryRun" not in later.sent[1].call.body


@pytest.mark.parametrize("status", [0, 403, 404, 429, 500])
async def test_while_our_own_pod_may_not_leave_we_go_on(status: int) -> None:
    api = ScriptedApi(*[reply(status, HELD)] * 2)
    made, departures = writer(api)
    assert (await made.evict(OWN)).status == status
    assert (await made.delete(OWN, None, "no reason", 0.0)).status == status
    assert departures == []
