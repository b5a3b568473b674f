"""What goes into the engines and what comes out: events and effects.

An effect tells what is to be done, never how or by whom: the same engine serves the operator, a dry run and a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from taintkeeper.core.answers import Answer, Outcome
from taintkeeper.core.budgets import Budget
from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.objects import Node, Pod, PodRef
from taintkeeper.core.policy_messages import PolicyInput, PolicyWritten, SurroundingsInput, WritePolicyStatus


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node was listed, added or modified."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod was listed, added or modified."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was deleted, known by its UID."""

    uid: str


@dataclass(frozen=True, slots=True)
class BudgetSeen:
    """A disruption budget was listed, added or modified."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A disruption budget was deleted."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Whether what has been seen can be acted on: everything is listed, and the watches are alive."""

    fresh: bool


@dataclass(frozen=True, slots=True)
class Woke:
    """Time has passed; sent at the time that ``wake_at`` named, or later."""


@dataclass(frozen=True, slots=True)
class EvictionAnswered:
    """The Eviction API answered for this pod."""

    uid: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class NodeRead:
    """A node and its pods were read from the API server; ``node`` is None where there is none of this name."""

    name: str
    node: Node | None
    pods: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeUnread:
    """A node or its pods could not be read, for this reason."""

    name: str
    detail: str


class WriteResult(StrEnum):
    """How a write to a node ended."""

    DONE = "done"
    CONFLICT = "conflict"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeWritten:
    """A write to a node ended; ``node`` is its new state where there is one, ``detail`` what went wrong."""

    name: str
    result: WriteResult
    node: Node | None = None
    detail: str = ""


Answered = EvictionAnswered | NodeRead | NodeUnread | NodeWritten | PolicyWritten
EvictionInput = (
    NodeSeen
    | NodeGone
    | PodSeen
    | PodGone
    | BudgetSeen
    | BudgetGone
    | PolicyInput
    | SurroundingsInput
    | Knowledge
    | Woke
    | Answered
)


@dataclass(frozen=True, slots=True)
class Evict:
    """Post an eviction of this pod, with its UID as the precondition.

    ``grace`` is in seconds; None for the pod's own.
    """

    pod: PodRef
    deadline: Deadline
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this pod without asking any budget, with its UID as the precondition, since the policy says so."""

    pod: PodRef
    deadline: Deadline
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class ReadNode:
    """Read this node and its pods from the API server: pods are about to be evicted from it."""

    name: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Write the memory of when taints were first seen to the node: taint to seconds since the epoch."""

    node: str
    uid: str
    memory: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Evicted:
    """The API accepted the eviction, or deletion, with this HTTP status, ``lateness`` seconds after it was due.

    ``blocked_seconds`` is for how long budgets had held a pod that was deleted for that reason.
    """

    pod: PodRef
    node: str
    deadline: Deadline
    lateness: float
    status: int
    deleted: bool = False
    blocked_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class FoundGone:
    """There was nothing left to evict: the pod is gone, or another has its name."""

    pod: PodRef
    answer: Answer


@dataclass(frozen=True, slots=True)
class EvictionFailed:
    """The API did not accept the eviction; it will be tried again in ``retry_in`` seconds at the latest.

    ``hints`` say why budgets may hold the pod for longer than meant.
    """

    pod: PodRef
    outcome: Outcome
    answer: Answer
    budgets: tuple[str, ...]
    retry_in: float
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """The eviction is due, but these budgets allow none; it was not tried, since another pod probes them.

    ``hints`` say why they may hold it for longer than meant.
    """

    pod: PodRef
    budgets: tuple[str, ...]
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetMisconfigured:
    """A budget holds pods, and for this reason always will; told once for each reason."""

    budget: Budget
    why: str


@dataclass(frozen=True, slots=True)
class Paused:
    """A countdown, or an eviction that is due, waits until the zone of the pod's node goes on."""

    pod: PodRef
    node: str
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A countdown, or an eviction that was tried in vain, is over because the reason is gone."""

    pod: PodRef
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Stuck:
    """The pod should have been gone ``seconds`` ago, and is still terminating; told once."""

    pod: PodRef
    node: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Vacated:
    """Every pod that has to leave the node was asked to; so many are still terminating."""

    node: Node
    terminating: int


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The pod would be evicted now, if its policy were not a dry run; told once for each deadline."""

    pod: PodRef
    node: str
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Skipped:
    """A pod that a taint would evict is never evicted, for this reason; told once."""

    pod: PodRef
    reason: str
    deadline: Deadline


EvictionReport = (
    Evicted
    | FoundGone
    | EvictionFailed
    | Held
    | BudgetMisconfigured
    | Paused
    | Cancelled
    | Stuck
    | Vacated
    | Rehearsed
    | Skipped
)
EvictionEffect = Evict | Delete | ReadNode | Remember | WritePolicyStatus | EvictionReport
