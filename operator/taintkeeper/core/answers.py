"""What the answer to an eviction means.

By status code, reason and cause alone, never by the text of the message, which changes between releases. The answers
come from ``pkg/registry/core/pod/storage/eviction.go`` in kubernetes/kubernetes and, for what fails before it,
from the API server's filters (authorization, admission webhooks, priority and fairness).
"""

from dataclasses import dataclass
from enum import StrEnum

CAUSE_DISRUPTION_BUDGET = "DisruptionBudget"
CAUSE_NAMESPACE_TERMINATING = "NamespaceTerminating"
NOT_FOUND = "NotFound"
"""What the API server says with a 404; a proxy that does not find the API server says something else."""


class Outcome(StrEnum):
    """The classes of answers, each with a pace of its own; the values are metric labels."""

    ACCEPTED = "accepted"
    GONE = "gone"
    BUDGET = "budget"
    THROTTLED = "throttled"
    NAMESPACE_TERMINATING = "namespace_terminating"
    FORBIDDEN = "forbidden"
    SEVERAL_BUDGETS = "several_budgets"
    TRANSIENT = "transient"
    UNEXPECTED = "unexpected"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the Eviction API; status 0 stands for a connection that failed or a deadline that passed.

    ``retry_after`` is in seconds, zero where the server named none.
    """

    status: int
    reason: str = ""
    causes: frozenset[str] = frozenset()
    message: str = ""
    retry_after: float = 0.0

    @property
    def accepted(self) -> bool:
        """Whether what was asked for is done, or will be."""
        return 200 <= self.status < 300


def classify(answer: Answer, *, budgets: int) -> Outcome:
    """Return the class of an answer. ``budgets`` is how many disruption budgets select the pod.

    ``budgets`` decides what a bare 500 means: the Eviction API refuses a pod under more than one budget that way,
    and says so in the message alone.

    A 409 has several meanings that only its message tells apart: another pod has the name (the UID of the precondition
    does not match), the pod changed while it was being evicted, or too many evictions at once wrote to its budget's
    status. To call all of them gone would leave a pod in its place; so each is tried again soon, and whether the pod
    is gone is for the watch, or the next answer, to tell.
    """
    match answer.status:
        case _ if answer.accepted:
            return Outcome.ACCEPTED
        case 404 if answer.reason == NOT_FOUND:
            return Outcome.GONE
        case 429:
            return Outcome.BUDGET if CAUSE_DISRUPTION_BUDGET in answer.causes else Outcome.THROTTLED
        case 403:
            terminating = CAUSE_NAMESPACE_TERMINATING in answer.causes
            return Outcome.NAMESPACE_TERMINATING if terminating else Outcome.FORBIDDEN
        case 500 if budgets > 1 and not answer.reason and not answer.causes:
            return Outcome.SEVERAL_BUDGETS
        case status if status in (0, 409) or status >= 500:
            return Outcome.TRANSIENT
        case _:
            return Outcome.UNEXPECTED
