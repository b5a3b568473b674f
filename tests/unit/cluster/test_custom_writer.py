"""The status of an object of our own kinds, a rule here: one merge patch on its status, and nothing else."""

import logging

import pytest

from taintkeeper.cluster.client import MERGE_PATCH
from taintkeeper.cluster.custom_writer import ApiCustomWriter, DryCustomWriter
from taintkeeper.cluster.rule_wire import RULES, encode_rule_status
from taintkeeper.core.rules import RuleStatus
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, reply

STATUS = RuleStatus(1, 2, 3, 4, 5, ())


async def written(answer: Answer) -> tuple[bool, ScriptedApi]:
    api = ScriptedApi(answer)
    return await ApiCustomWriter(api).write_status(RULES, "r", STATUS), api


async def test_a_status_is_patched_and_nothing_else_of_the_object() -> None:
    done, api = await written(reply(200, {}))
    (sent,) = api.sent
    assert sent.line == "PATCH /apis/taintkeeper.io/v1alpha1/nodetaintrules/r/status"
    assert (sent.call.verb, sent.call.resource) == ("patch", "nodetaintrules/status")
    assert sent.call.content_type == MERGE_PATCH
    assert sent.call.body == {"status": encode_rule_status(STATUS)}
    assert done


async def test_what_is_gone_needs_no_status(caplog: pytest.LogCaptureFixture) -> None:
    assert (await written(reply(404)))[0]
    assert not caplog.records


@pytest.mark.parametrize(
    ("answer", "why"), [(reply(409), "409: answered 409"), (reply(500), "500: answered 500"), (LOST, "connection lost")]
)
async def test_what_went_wrong_is_told_and_it_is_not_done(
    answer: Answer, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not (await written(answer))[0]
    assert caplog.messages == [f"status of nodetaintrules r could not be written, trying again: {why}"]


async def test_a_dry_run_writes_no_status() -> None:
    assert await DryCustomWriter().write_status(RULES, "r", STATUS)
