"""The status of a rule: one merge patch on its status, and nothing else."""

import pytest

from taintkeeper.cluster.client import MERGE_PATCH
from taintkeeper.cluster.rule_wire import encode_rule_status
from taintkeeper.cluster.rule_writer import ApiRuleWriter, DryRuleWriter
from taintkeeper.core.rules import RuleStatus, RuleWritten, WriteRuleStatus
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, reply

EFFECT = WriteRuleStatus("r", RuleStatus(1, 2, 3, 4, 5, ()))


async def written(answer: Answer) -> tuple[RuleWritten, list[str], ScriptedApi]:
    api = ScriptedApi(answer)
    told: list[str] = []
    result = await ApiRuleWriter(api, lambda name, why: told.append(f"{name}: {why}")).write_status(EFFECT)
    return result, told, api


async def test_a_status_is_patched_and_nothing_else_of_the_rule() -> None:
    result, told, api = await written(reply(200, {}))
    (sent,) = api.sent
    assert sent.line == "PATCH /apis/taintkeeper.io/v1alpha1/nodetaintrules/r/status"
    assert (sent.call.verb, sent.call.resource) == ("patch", "nodetaintrules/status")
    assert sent.call.content_type == MERGE_PATCH
    assert sent.call.body == {"status": encode_rule_status(EFFECT.status)}
    assert result == RuleWritten("r", done=True)
    assert told == []


async def test_a_rule_that_is_gone_needs_no_status() -> None:
    assert (await written(reply(404)))[:2] == (RuleWritten("r", done=True), [])


@pytest.mark.parametrize(
    ("answer", "why"),
    [(reply(409), "r: 409: answered 409"), (reply(500), "r: 500: answered 500"), (LOST, "r: connection lost")],
)
async def test_what_went_wrong_is_told_and_part_of_the_answer(answer: Answer, why: str) -> None:
    assert (await written(answer))[:2] == (RuleWritten("r", done=False), [why])


async def test_a_dry_run_writes_no_status() -> None:
    assert await DryRuleWriter().write_status(EFFECT) == RuleWritten("r", done=True)
