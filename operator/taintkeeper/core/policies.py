"""What an EvictionPolicy says: for which pods and which taints it decides, and how such pods leave.

What holds without any policy is written down as policies too, under names that no object can have.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from taintkeeper.core.first_seen import UNREACHABLE
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint
from taintkeeper.core.selectors import Selector
from taintkeeper.core.traits import EVICT_ANNOTATION, NO_TRAITS, Trait, Traits

BLOCKED_SECONDS = 300.0
EVERYTHING = Selector()


class Mode(StrEnum):
    """How pods leave, as ``spec.mode`` spells it."""

    EVICT = "Evict"
    EVICT_THEN_DELETE = "EvictThenDelete"
    DELETE = "Delete"
    IGNORE = "Ignore"


MODE_IGNORE = "policy"
NAMESPACE_UNKNOWN = "namespace-unknown"
"""Reasons of a :class:`Decision` to leave a pod alone, next to its traits; metric labels as well."""


@dataclass(frozen=True, slots=True)
class TaintPattern:
    """Taints by key, value and effect. An empty key stands for any, and so does the value None."""

    key: str = ""
    value: str | None = None
    effect: str = NO_EXECUTE

    def matches(self, taint: Taint) -> bool:
        """Say whether the taint is one of these."""
        return (
            self.effect == taint.effect
            and self.key in ("", taint.key)
            and (self.value is None or self.value == taint.value)
        )

    def covers(self, other: "TaintPattern") -> bool:
        """Say whether every taint that the other one stands for is one of these."""
        return self.effect == other.effect and self.key in ("", other.key) and self.value in (None, other.value)


def any_matches(patterns: Iterable[TaintPattern], taints: Iterable[Taint]) -> bool:
    """Say whether any of the taints is one of those that the patterns stand for."""
    patterns = tuple(patterns)
    return any(pattern.matches(taint) for taint in taints for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that makes sense. ``grace_seconds`` is None where the pod's own counts.

    ``blocked_seconds`` is None where it is not given: see :attr:`patience`. ``ignored`` are the traits for which
    ``unmanagedPods`` and the like say Ignore.
    """

    name: str
    precedence: int = 0
    taints: tuple[TaintPattern, ...] = (TaintPattern(),)
    namespaces: Selector = EVERYTHING
    pods: Selector = EVERYTHING
    mode: Mode = Mode.EVICT
    blocked_seconds: float | None = None
    default_toleration_seconds: float | None = None
    grace_seconds: int | None = None
    max_concurrent_per_node: int | None = None
    ignored: Traits = NO_TRAITS
    dry_run: bool = False

    @property
    def order(self) -> tuple[int, str]:
        """The place among all policies: the smallest decides."""
        return -self.precedence, self.name

    @property
    def patience(self) -> float | None:
        """For how many seconds a pod may be blocked before it is deleted; None for ever."""
        if self.mode is not Mode.EVICT_THEN_DELETE:
            return None
        return BLOCKED_SECONDS if self.blocked_seconds is None else self.blocked_seconds

    def covers(self, taint: Taint) -> bool:
        """Say whether the policy is for this taint."""
        return any(pattern.matches(taint) for pattern in self.taints)

    def leaves_nothing_to(self, other: "Policy") -> bool:
        """Say whether it selects every pod that the other one selects."""
        return self.namespaces in (EVERYTHING, other.namespaces) and self.pods in (EVERYTHING, other.pods)


DEFAULTS = (
    Policy("system:unreachable", taints=(TaintPattern(UNREACHABLE),), mode=Mode.EVICT_THEN_DELETE),
    Policy("system:default"),
    Policy(
        "system:scheduling",
        taints=(TaintPattern(effect=NO_SCHEDULE), TaintPattern(effect="PreferNoSchedule")),
        mode=Mode.IGNORE,
    ),
)
"""What decides where no other policy does, in this order.

The pods of a dead node may be what breaks their budget, which would then block them for ever
(kubernetes-sigs/cluster-api#13508): hence the first. The last says that other effects concern the scheduler alone.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """Which policy decides about a pod and a taint. ``exempt`` is why the pod is left alone, empty where it is not."""

    policy: Policy
    exempt: str = ""

    @property
    def rank(self) -> int:
        """Which of several decisions about a pod counts: to let it leave (0), to only tell (1), to let it stay (2)."""
        if self.exempt:
            return 2
        return 1 if self.policy.dry_run else 0

    def __str__(self) -> str:
        """Tell the decision in the words of an event or a log line."""
        name = self.policy.name
        match self.exempt:
            case "":
                return f"policy {name}, mode {self.policy.mode}{', dry run' if self.policy.dry_run else ''}"
            case Trait.ANNOTATED:
                return f'the pod has the annotation {EVICT_ANNOTATION}: "false"'
            case reason if reason == MODE_IGNORE:
                return f"policy {name} has the mode {Mode.IGNORE}"
            case reason if reason == NAMESPACE_UNKNOWN:
                return f"policy {name} selects by the labels of the namespace, which has not been seen"
            case trait:
                return f"policy {name} ignores {_PODS_WITH[Trait(trait)]}"


BY_DEFAULT = Decision(DEFAULTS[1])
"""What is decided about most pods: they are evicted."""


_PODS_WITH = {
    Trait.UNMANAGED: "pods that no controller would replace",
    Trait.DAEMON_SET: "pods of DaemonSets",
    Trait.LOCAL_STORAGE: "pods with data on the node",
}
