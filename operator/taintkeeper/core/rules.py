"""What a NodeTaintRule says: which nodes get which taint for which condition, and when.

Rules stand beside what the operator does by itself (:mod:`taintkeeper.core.conditions`). A taint that it sets by itself
too is *built in*: a rule for it decides in its place when a node that it selects gets it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from taintkeeper.core.conditions import CONDITION_TAINTS, EXECUTE_KEYS, TaintId
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE
from taintkeeper.core.selectors import Selector

BUILT_IN: frozenset[TaintId] = frozenset(
    [(key, NO_SCHEDULE) for key in CONDITION_TAINTS.values()] + [(key, NO_EXECUTE) for key in EXECUTE_KEYS]
)
"""The taints that stand for a condition without any rule."""


@dataclass(frozen=True, slots=True)
class Limit:
    """``maxUnhealthy``: a number of nodes, or a percentage of those selected."""

    number: int
    percent: bool = False

    def of(self, selected: int) -> int:
        """Return how many of so many selected nodes it allows.

        A percentage is rounded down, as ``GetScaledValueFromIntOrPercent`` in k8s.io/apimachinery ``pkg/util/intstr``
        does with ``roundUp`` false: 30% of three nodes is none.
        """
        return selected * self.number // 100 if self.percent else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.percent else str(self.number)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that makes sense. ``for_seconds`` and ``clear_seconds`` are what they are called in its ``spec``.

    ``rate_limited`` has its default filled in; ``limit`` is None where there is none.
    """

    name: str
    condition_type: str
    condition_status: str
    key: str
    effect: str
    value: str = ""
    selector: Selector = field(default_factory=Selector)
    for_seconds: float = 0.0
    clear_seconds: float = 0.0
    limit: Limit | None = None
    rate_limited: bool = False
    dry_run: bool = False

    @property
    def taint_id(self) -> TaintId:
        """Key and effect of its taint."""
        return self.key, self.effect

    @property
    def built_in(self) -> bool:
        """Whether it decides about a taint that the operator sets by itself."""
        return self.taint_id in BUILT_IN


@dataclass(frozen=True, slots=True)
class RuleCondition:
    """A condition in a rule's status; ``since`` is its last transition, in seconds since the epoch."""

    type: str
    status: str
    reason: str
    message: str
    since: float


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """The status of a rule: how many nodes it is about, and whether it does what it says."""

    generation: int
    matched: int
    waiting: int
    tainted: int
    held_back: int
    conditions: tuple[RuleCondition, ...]

    def condition(self, type_: str) -> RuleCondition | None:
        """Return the condition of this type, or None."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


@dataclass(frozen=True, slots=True)
class RuleSeen:
    """A rule was listed, added or modified.

    ``rule`` is None where it makes no sense; ``fault`` then names the field and the value. ``status`` is the one that
    the object has, None where it has none that can be read.
    """

    name: str
    uid: str
    resource_version: str
    generation: int
    rule: Rule | None
    fault: str = ""
    status: RuleStatus | None = None

    def older_than(self, other: "RuleSeen") -> bool:
        """Say whether this is an earlier state of the same rule: resource versions are numbers that grow (KEP-5504)."""
        try:
            return self.uid == other.uid and int(self.resource_version) < int(other.resource_version)
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class RuleGone:
    """A rule was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class WriteRuleStatus:
    """Write this status to the rule."""

    name: str
    status: RuleStatus


@dataclass(frozen=True, slots=True)
class RuleWritten:
    """A write of a rule's status ended, well or not."""

    name: str
    done: bool


@dataclass(frozen=True, slots=True)
class RuleTaint:
    """A taint that rules want on a node; ``rate_limited`` says that it has to wait for a token of the node's zone."""

    rule: str
    value: str
    reason: str
    rate_limited: bool


@dataclass(frozen=True, slots=True)
class RuleView:
    """What all rules together say about a node.

    ``wanted`` is to be there. ``kept`` may stay where it is, but is not to be added: the condition has not lasted long
    enough, is not over for long enough or is not known, or too many nodes have it. ``decided`` are the built-in
    taints about which rules decide for this node. ``limited`` are those wanted or kept by rules that all keep to the
    pace of the zone. ``over`` tells for each taint that a rule once brought and that is neither wanted nor kept why it
    goes.
    """

    wanted: Mapping[TaintId, RuleTaint]
    kept: frozenset[TaintId]
    decided: frozenset[TaintId]
    limited: frozenset[TaintId]
    over: Mapping[TaintId, str]


NOTHING_SAID = RuleView({}, frozenset(), frozenset(), frozenset(), {})
"""What is said about a node by no rules, if none has ever been about it."""
