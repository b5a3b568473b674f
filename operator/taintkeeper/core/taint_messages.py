"""What goes into the engine of node-taint and what comes out: events and effects."""

from collections.abc import Mapping
from dataclasses import dataclass

from taintkeeper.core.conditions import Change, TaintId
from taintkeeper.core.messages import Knowledge, NodeGone, NodeSeen, NodeWritten, Woke
from taintkeeper.core.objects import Node
from taintkeeper.core.rules import RuleGone, RuleSeen, RuleWritten, WriteRuleStatus
from taintkeeper.core.zones import ZoneState

TaintInput = NodeSeen | NodeGone | Knowledge | Woke | NodeWritten | RuleSeen | RuleGone | RuleWritten


@dataclass(frozen=True, slots=True)
class PatchTaints:
    """Write these taints to the node, provided that it has not changed since.

    ``reasons`` tells why for each taint that is added or removed. ``again`` are taints that somebody removed although
    they are called for. ``rule_taints`` is what the node is to remember of rules (``Node.rule_taints``), None where it
    does already.
    """

    node: Node
    change: Change
    reasons: Mapping[TaintId, str]
    again: frozenset[TaintId] = frozenset()
    rule_taints: Mapping[TaintId, str] | None = None

    @property
    def ids(self) -> set[TaintId]:
        """Which taints it adds or removes, or has the node remember or forget."""
        if self.rule_taints is None:
            return self.change.ids
        return self.change.ids | (self.rule_taints.keys() ^ self.node.rule_taints.keys())


@dataclass(frozen=True, slots=True)
class TaintsChanged:
    """The taints of a node were written; see :class:`PatchTaints`."""

    node: Node
    change: Change
    reasons: Mapping[TaintId, str]
    again: frozenset[TaintId]


@dataclass(frozen=True, slots=True)
class TaintContested:
    """Somebody undoes what we do to this taint of the node again and again; from now on we do it less and less often.

    ``reason`` is what calls for the taint, None where nothing does and somebody keeps adding it.
    """

    node: Node
    taint: TaintId
    reason: str | None


@dataclass(frozen=True, slots=True)
class ReadyFlipped:
    """A node that was ready is not any more, or the other way round."""

    node: Node


@dataclass(frozen=True, slots=True)
class ZoneChanged:
    """A zone has another state or another rate now, in nodes per second; ``witness`` is the node that brought it.

    ``cooling`` says that the rate is lower than that of the state, since a worse one is not over for long.
    """

    zone: str
    witness: Node
    before: ZoneState
    after: ZoneState
    rate: float
    all_disrupted: bool
    cooling: bool = False


TaintEffect = PatchTaints | TaintsChanged | TaintContested | ReadyFlipped | ZoneChanged | WriteRuleStatus
