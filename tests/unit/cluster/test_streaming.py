"""Whether the API server can begin a watch with all objects is asked of itself."""

import pytest

from taintkeeper.cluster.streaming import streams_lists
from tests.unit.cluster.scripted_api import LOST, Answer, ScriptedApi, Stream, reply


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Stream(), True, id="it does"),
        pytest.param(reply(422), False, id="the feature is off"),
        pytest.param(reply(400), False, id="it is older than the feature"),
        pytest.param(LOST, False, id="nobody knows"),
    ],
)
async def test_a_server_is_relied_on_to_stream_lists_only_if_it_says_so(answer: Answer, *, expected: bool) -> None:
    api = ScriptedApi(answer)
    assert await streams_lists(api) is expected
    (sent,) = api.sent
    assert sent.line == "GET /api/v1/nodes"
    assert sent.params.items() >= {"watch": "true", "sendInitialEvents": "true"}.items()
