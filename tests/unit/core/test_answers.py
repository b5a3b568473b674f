"""What the answer to an eviction means."""

import pytest

from taintkeeper.core.answers import CAUSE_DISRUPTION_BUDGET, CAUSE_NAMESPACE_TERMINATING, Answer, Outcome, classify
from tests.unit.core.builders import (
    ACCEPTED,
    CONNECTION_LOST,
    FORBIDDEN,
    GONE,
    HELD_BY_BUDGET,
    NAMESPACE_TERMINATING,
    SEVERAL_BUDGETS,
    THROTTLED,
    WEBHOOK_DOWN,
    reported,
)

BUDGET_CAUSE = frozenset({CAUSE_DISRUPTION_BUDGET})
TERMINATING_CAUSE = frozenset({CAUSE_NAMESPACE_TERMINATING})


@pytest.mark.parametrize(
    ("answer", "budgets", "outcome"),
    [
        pytest.param(Answer(200), 0, Outcome.ACCEPTED, id="200"),
        pytest.param(ACCEPTED, 2, Outcome.ACCEPTED, id="201"),
        reported("kubernetes/autoscaler#313", "404", GONE, 1, Outcome.GONE),
        pytest.param(Answer(404, message="<html>no backend</html>"), 0, Outcome.UNEXPECTED, id="404 of a proxy"),
        pytest.param(Answer(302, message="<html>log in</html>"), 0, Outcome.UNEXPECTED, id="302 of a proxy"),
        pytest.param(Answer(409, "Conflict"), 1, Outcome.TRANSIENT, id="409 on the UID, the version or the budget"),
        reported("kubernetes/kubernetes#125500", "429 with the cause of a budget", HELD_BY_BUDGET, 1, Outcome.BUDGET),
        pytest.param(HELD_BY_BUDGET, 0, Outcome.BUDGET, id="429 by a budget that we have not seen yet"),
        pytest.param(
            Answer(429, "TooManyRequests", BUDGET_CAUSE | {"Other"}), 1, Outcome.BUDGET, id="429 with a further cause"
        ),
        reported("kubernetes/kubernetes#106286", "429 without a cause", THROTTLED, 1, Outcome.THROTTLED),
        reported(
            "kubernetes/kubernetes#125500",
            "429 that only speaks of a disruption budget",
            Answer(429, "TooManyRequests", message="Cannot evict pod as it would violate the pod's disruption budget."),
            1,
            Outcome.THROTTLED,
        ),
        reported("kubernetes/kubernetes#93947", "403 in a namespace that goes", NAMESPACE_TERMINATING, 0,
                 Outcome.NAMESPACE_TERMINATING),
        reported("kubernetes/kubernetes#125500", "403 otherwise", FORBIDDEN, 0, Outcome.FORBIDDEN),
        pytest.param(Answer(403, "Forbidden", BUDGET_CAUSE), 0, Outcome.FORBIDDEN, id="403 with another cause"),
        reported("kubernetes/kubernetes#75957", "500 under two budgets", SEVERAL_BUDGETS, 2, Outcome.SEVERAL_BUDGETS),
        pytest.param(SEVERAL_BUDGETS, 1, Outcome.TRANSIENT, id="the same 500 under one budget"),
        reported("kubernetes/kubernetes#125500", "500 of a webhook", WEBHOOK_DOWN, 0, Outcome.TRANSIENT),
        pytest.param(WEBHOOK_DOWN, 2, Outcome.TRANSIENT, id="500 of a webhook under two budgets"),
        pytest.param(Answer(500, "InternalError"), 2, Outcome.TRANSIENT, id="500 with a reason under two budgets"),
        pytest.param(Answer(500, "", BUDGET_CAUSE), 2, Outcome.TRANSIENT, id="500 with a cause under two budgets"),
        pytest.param(Answer(503, "ServiceUnavailable"), 2, Outcome.TRANSIENT, id="503"),
        pytest.param(Answer(504, "Timeout"), 2, Outcome.TRANSIENT, id="504"),
        pytest.param(CONNECTION_LOST, 2, Outcome.TRANSIENT, id="no answer"),
        pytest.param(Answer(400, "BadRequest"), 0, Outcome.UNEXPECTED, id="400"),
        pytest.param(Answer(405, "MethodNotAllowed"), 0, Outcome.UNEXPECTED, id="405"),
        pytest.param(Answer(422, "Invalid"), 0, Outcome.UNEXPECTED, id="422"),
        pytest.param(Answer(307), 0, Outcome.UNEXPECTED, id="307"),
        pytest.param(Answer(100), 0, Outcome.UNEXPECTED, id="100"),
    ],
)  # fmt: skip
def test_code_reason_and_cause_decide_never_the_text(answer: Answer, budgets: int, outcome: Outcome) -> None:
    assert classify(answer, budgets=budgets) is outcome
