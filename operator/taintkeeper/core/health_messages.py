"""What goes into the engine of node health and what comes out, beside what all engines share."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from taintkeeper.core import messages as m
from taintkeeper.core.health import UNKNOWN, UnknownCondition
from taintkeeper.core.objects import Node, Pod


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A node's Lease was listed, added or modified; ``renewed`` is its renewTime, compared and never understood."""

    node: str
    renewed: str


@dataclass(frozen=True, slots=True)
class LeaseGone:
    """A node's Lease was deleted."""

    node: str


class ReadResult(StrEnum):
    """How a live read of a Lease ended."""

    FOUND = "found"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LeaseRead:
    """A live read of a node's Lease ended; ``detail`` tells what went wrong."""

    node: str
    result: ReadResult
    renewed: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StatusWritten:
    """The conditions of a node were written, or could not be."""

    written: m.NodeWritten


@dataclass(frozen=True, slots=True)
class LabelsWritten:
    """The labels of a node were written, or could not be."""

    written: m.NodeWritten


class PodResult(StrEnum):
    """How a write of a pod's status ended."""

    DONE = "done"
    CONFLICT = "conflict"
    GONE = "gone"
    THROTTLED = "throttled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PodWritten:
    """A write of a pod's status ended; ``retry_after`` is what the server asked for when it throttles, in seconds."""

    uid: str
    result: PodResult
    detail: str = ""
    retry_after: float = 0.0


HealthInput = (
    m.NodeSeen
    | m.NodeGone
    | m.PodSeen
    | m.PodGone
    | LeaseSeen
    | LeaseGone
    | LeaseRead
    | StatusWritten
    | LabelsWritten
    | PodWritten
    | m.Knowledge
    | m.Woke
)


@dataclass(frozen=True, slots=True)
class ReadLease:
    """Read the node's Lease from the server itself, not from what was watched."""

    node: str


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Set these conditions to Unknown, provided that the node has not changed since."""

    node: Node
    conditions: tuple[UnknownCondition, ...]


@dataclass(frozen=True, slots=True)
class PatchLabels:
    """Set these labels of the node."""

    node: Node
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MarkPod:
    """Set the pod's Ready condition to False as of this time, provided that the pod has not changed since."""

    pod: Pod
    at: float


@dataclass(frozen=True, slots=True)
class DeclaredUnknown:
    """The node was declared Unknown after so many seconds without a sign of life; ``node`` is as it was before."""

    node: Node
    silence: float

    @property
    def transition(self) -> bool:
        """Whether Ready was something else before."""
        ready = self.node.condition("Ready")
        return ready is None or ready.status != UNKNOWN


@dataclass(frozen=True, slots=True)
class FoundAlive:
    """The live read showed that the node lives: it was our watch that was silent."""

    node: str


@dataclass(frozen=True, slots=True)
class ReadyChanged:
    """A node's Ready condition went from one status to another."""

    node: Node
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class NodeRegistered:
    """A node is there that was not there when everything had been listed."""

    node: Node


@dataclass(frozen=True, slots=True)
class PodMarked:
    """A pod's Ready condition was set to False."""

    pod: Pod


HealthEffect = (
    ReadLease
    | PatchStatus
    | PatchLabels
    | MarkPod
    | DeclaredUnknown
    | FoundAlive
    | ReadyChanged
    | NodeRegistered
    | PodMarked
)
