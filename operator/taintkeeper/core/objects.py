"""The few facts about nodes and pods that decisions rest on, free of how the API spells them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from taintkeeper.core.traits import NO_TRAITS, Traits

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""By this taint a person says that a node is off for good: its pods are deleted by force (KEP-2268). Never ours."""

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node. ``time_added`` is in seconds since the epoch, None where nobody set it."""

    key: str
    effect: str
    value: str = ""
    time_added: float | None = None

    def __str__(self) -> str:
        """Spell the taint as kubectl does: ``key=value:effect``, or ``key:effect`` without a value."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod. ``seconds`` is its ``tolerationSeconds``; None means for ever."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in a node's status; ``reason`` is the kubelet's own word for it.

    ``heartbeat`` and ``transition`` are by the node's own clock, in seconds since the epoch, None where not given.
    """

    type: str
    status: str
    reason: str = ""
    heartbeat: float | None = None
    transition: float | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it was last seen.

    ``first_seen`` is the memory kept on the node itself: name of a taint (``core.first_seen.remembered_as``) to when it
    was first noticed, in seconds since the epoch. ``rule_taints`` is too: key and effect of each taint that a rule
    brought, to the name of that rule.
    ``excluded`` says that the node does not count when its zone is judged; ``shutting_down`` that its kubelet ends its
    pods since the machine is about to go off.
    """

    name: str
    uid: str = ""
    resource_version: str = ""
    created: float = 0.0
    taints: tuple[Taint, ...] = ()
    conditions: tuple[Condition, ...] = ()
    unschedulable: bool = False
    zone: str = ""
    excluded: bool = False
    shutting_down: bool = False
    labels: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    first_seen: Mapping[str, float] = field(default_factory=dict)
    rule_taints: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of this type, or None."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

    def older_than(self, other: "Node") -> bool:
        """Say whether this is an earlier state of the same node: resource versions are numbers that grow (KEP-5504)."""
        try:
            return self.uid == other.uid and int(self.resource_version) < int(other.resource_version)
        except ValueError:
            return False

    @property
    def ready(self) -> bool:
        """Whether the node says that it is ready; a node without the condition is not."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"


@dataclass(frozen=True, slots=True)
class PodRef:
    """Which pod is meant: the UID tells a pod from a later one of the same name."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as it was last seen. ``bound`` is when it came to its node, in seconds since the epoch.

    ``delete_by`` is when a pod that is being deleted should be gone, its grace period over, in seconds since the epoch.
    ``traits`` are what may exempt it from eviction; ``grace`` is its own ``terminationGracePeriodSeconds``; ``claims``
    are the names of the PersistentVolumeClaims that it uses.
    ``version`` is its resourceVersion: a number that grows with every change (KEP-5504), zero where it is not known.
    """

    ref: PodRef
    version: int = 0
    node: str = ""
    bound: float = 0.0
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0
    critical: bool = False
    phase: str = "Running"
    ready: bool = True
    deleting: bool = False
    delete_by: float | None = None
    mirror: bool = False
    labels: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    traits: Traits = NO_TRAITS
    grace: int | None = None
    claims: tuple[str, ...] = ()

    @property
    def terminal(self) -> bool:
        """Whether the pod has ended by itself."""
        return self.phase in ("Succeeded", "Failed")
