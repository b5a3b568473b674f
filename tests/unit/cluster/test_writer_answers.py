"""How the API server's answers to evictions are read: as 1.36 sends them, and as proxies spoil them."""

from typing import Any

import pytest
from multidict import CIMultiDict

from taintkeeper.cluster.client import Reply
from taintkeeper.cluster.writer import parse_answer
from taintkeeper.core.answers import Answer
from tests.unit.cluster.scripted_api import reply

HELD = "Cannot evict pod as it would violate the pod's disruption budget."
TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def status(code: int, reason: str | None, message: str, **details: Any) -> Reply:
    """Return a ``Status`` as the API server spells it: what is empty is left out."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body |= {"message": message, "code": code}
    if reason:
        body["reason"] = reason
    if details:
        body["details"] = details
    return reply(code, body)


DISRUPTION = {"reason": "DisruptionBudget", "message": "The disruption budget b1 needs 2 healthy pods and has 2"}
TERMINATING = {"reason": "NamespaceTerminating", "message": "namespace x is being terminated", "field": "metadata"}
WEBHOOK = {"message": 'failed calling webhook "x": dial tcp: refused'}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            reply(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
            Answer(201),
            id="accepted",
        ),
        pytest.param(
            status(404, "NotFound", 'pods "p1" not found', name="p1", kind="pods"),
            Answer(404, "NotFound", message='pods "p1" not found'),
            id="gone",
        ),
        pytest.param(
            status(409, "Conflict", "the UID in the precondition (a) does not match", name="p1", kind="pods"),
            Answer(409, "Conflict", message="the UID in the precondition (a) does not match"),
            id="another pod of this name",
        ),
        pytest.param(
            status(429, "TooManyRequests", HELD, causes=[DISRUPTION]),
            Answer(429, "TooManyRequests", frozenset({"DisruptionBudget"}), HELD),
            id="held by a budget",
        ),
        pytest.param(
            status(429, "TooManyRequests", HELD, causes=[DISRUPTION], retryAfterSeconds=10),
            Answer(429, "TooManyRequests", frozenset({"DisruptionBudget"}), HELD, 10.0),
            id="held by a budget that was not observed yet",
        ),
        pytest.param(status(500, None, TWO), Answer(500, message=TWO), id="two budgets"),
        pytest.param(
            status(403, "Forbidden", "unable to create new content", name="p1", kind="pods", causes=[TERMINATING]),
            Answer(403, "Forbidden", frozenset({"NamespaceTerminating"}), "unable to create new content"),
            id="namespace terminating",
        ),
        pytest.param(
            status(500, "InternalError", "Internal error occurred", causes=[WEBHOOK]),
            Answer(500, "InternalError", frozenset({""}), "Internal error occurred"),
            id="webhook down",
        ),
        pytest.param(
            status(504, "Timeout", "request did not complete"),
            Answer(504, "Timeout", message="request did not complete"),
            id="timed out",
        ),
    ],
)
def test_every_answer_of_the_api_is_read(answer: Reply, expected: Answer) -> None:
    assert parse_answer(answer) == expected


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        pytest.param("1", None, 1.0, id="in the header"),
        pytest.param("1", 7, 1.0, id="in both, the header counts"),
        pytest.param(None, 7, 7.0, id="in the body"),
        pytest.param(None, None, 0.0, id="nowhere"),
        pytest.param("0", 7, 0.0, id="zero"),
        pytest.param("-5", None, 0.0, id="negative"),
        pytest.param(None, -5, 0.0, id="negative in the body"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", None, 0.0, id="a date"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 7, 7.0, id="a date, and seconds in the body"),
        pytest.param("", 7, 7.0, id="empty"),
        pytest.param("soon", None, 0.0, id="garbage"),
        pytest.param("inf", 7, 7.0, id="for ever"),
        pytest.param("nan", 7, 7.0, id="no number"),
    ],
)
@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
def test_the_server_may_say_when_to_try_again(name: str, header: str | None, body: int | None, seconds: float) -> None:
    details = {} if body is None else {"retryAfterSeconds": body}
    told = status(429, "TooManyRequests", "slow down", **details)
    headers = CIMultiDict({} if header is None else {name: header})
    answer = parse_answer(Reply(told.status, told.body, headers))
    assert answer == Answer(429, "TooManyRequests", message="slow down", retry_after=seconds)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "", id="empty"),
        pytest.param(b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>", id="a proxy's page"),
        pytest.param(b"x" * 5000, "x" * 200, id="a long page, cut"),
        pytest.param(b"\xff\xfe", "\ufffd\ufffd", id="no text"),
        pytest.param(b'"a string"', '"a string"', id="no object"),
        pytest.param(b'{"message": 5}', '{"message": 5}', id="another object"),
        pytest.param(b'{"details": {"causes": "none"}}', '{"details": {"causes": "none"}}', id="odd details"),
    ],
)
def test_a_body_that_is_no_status_leaves_the_code_alone(body: bytes, message: str) -> None:
    assert parse_answer(Reply(502, body, {})) == Answer(502, message=message)
