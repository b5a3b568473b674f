"""What the eviction engine is told of policies, and of what they select pods by; and what it tells of policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from taintkeeper.core.policies import Policy
from taintkeeper.core.rules import RuleCondition


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """The status of a policy: how many pods it is about, and whether it does what it says."""

    generation: int
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    exempt: int = 0
    conditions: tuple[RuleCondition, ...] = field(default=())

    def condition(self, type_: str) -> RuleCondition | None:
        """Return the condition of this type, or None."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


@dataclass(frozen=True, slots=True)
class PolicySeen:
    """A policy was listed, added or modified.

    ``policy`` is None where it makes no sense; ``fault`` then names the field and the value. ``status`` is the one that
    the object has, None where it has none that can be read.
    """

    name: str
    uid: str
    resource_version: str
    generation: int
    policy: Policy | None
    fault: str = ""
    status: PolicyStatus | None = None

    def older_than(self, other: "PolicySeen") -> bool:
        """Say whether this is an earlier state of the same one: resource versions are numbers that grow (KEP-5504)."""
        try:
            return self.uid == other.uid and int(self.resource_version) < int(other.resource_version)
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class PolicyGone:
    """A policy was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace was listed, added or modified."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class VolumeSeen:
    """A PersistentVolume was listed, added or modified.

    ``claim`` is namespace and name of the claim whose data it has on a node, None where there is none.
    """

    name: str
    claim: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class VolumeGone:
    """A PersistentVolume was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class WritePolicyStatus:
    """Write this status to the policy."""

    name: str
    status: PolicyStatus


@dataclass(frozen=True, slots=True)
class PolicyWritten:
    """A write of a policy's status ended, well or not."""

    name: str
    done: bool


PolicyInput = PolicySeen | PolicyGone
SurroundingsInput = NamespaceSeen | NamespaceGone | VolumeSeen | VolumeGone
