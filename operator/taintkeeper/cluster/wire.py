"""What objects look like on the wire, reduced to the fields that decisions need.

A pod has 4 KB and more on the wire; what is decoded here is some dozen fields, and what most pods share (tolerations,
labels) is kept once.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from sys import intern
from typing import Annotated, Any, TypeVar

import msgspec

from taintkeeper.core.budgets import Budget
from taintkeeper.core.objects import Condition, Node, Pod, PodRef, Taint, Toleration
from taintkeeper.core.order import CRITICAL_CLASSES
from taintkeeper.core.selectors import Requirement, Selector
from taintkeeper.core.zones import EXCLUDE_LABEL, zone_key

FIRST_SEEN_ANNOTATION = "taintkeeper.io/first-seen"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

T = TypeVar("T")


class _Wire(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Base of all wire structs: the API's spelling, and nothing for the collector to follow."""


class Meta(_Wire, frozen=True):
    """``metadata`` of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    annotations: dict[str, str] | None = None
    labels: msgspec.Raw = msgspec.Raw(b"null")


class ConditionWire(_Wire, frozen=True):
    """A condition of a node or a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class TaintWire(_Wire, frozen=True):
    """A taint in a node's spec."""

    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class TolerationWire(_Wire, frozen=True):
    """A toleration in a pod's spec."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSpecWire(_Wire, frozen=True):
    """``spec`` of a node."""

    taints: list[TaintWire] | None = None
    unschedulable: bool = False


class NodeStatusWire(_Wire, frozen=True):
    """``status`` of a node."""

    conditions: list[ConditionWire] | None = None


class NodeWire(_Wire, frozen=True):
    """A node."""

    metadata: Meta
    spec: NodeSpecWire = NodeSpecWire()
    status: NodeStatusWire = NodeStatusWire()


class PodSpecWire(_Wire, frozen=True):
    """``spec`` of a pod."""

    node_name: str = ""
    tolerations: msgspec.Raw = msgspec.Raw(b"null")
    priority: int | None = None
    priority_class_name: str = ""


class PodStatusWire(_Wire, frozen=True):
    """``status`` of a pod."""

    phase: str = ""
    start_time: datetime | None = None
    conditions: list[ConditionWire] | None = None


class PodWire(_Wire, frozen=True):
    """A pod."""

    metadata: Meta
    spec: PodSpecWire = PodSpecWire()
    status: PodStatusWire = PodStatusWire()


class RequirementWire(_Wire, frozen=True):
    """One of ``matchExpressions``."""

    key: str
    operator: str
    values: list[str] | None = None


class SelectorWire(_Wire, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[RequirementWire] | None = None


class BudgetSpecWire(_Wire, frozen=True):
    """``spec`` of a PodDisruptionBudget."""

    selector: SelectorWire | None = None


class BudgetStatusWire(_Wire, frozen=True):
    """``status`` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    observed_generation: int = 0


class BudgetWire(_Wire, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpecWire = BudgetSpecWire()
    status: BudgetStatusWire = BudgetStatusWire()


class Shared:
    """Decodes small pieces of JSON that many objects repeat to the letter, each once."""

    LIMIT = 10_000

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        self._decode = decode
        self._known: dict[bytes, Any] = {}

    def __call__(self, raw: msgspec.Raw) -> Any:
        """Return the decoded piece; the same object for the same bytes."""
        key = bytes(raw)
        if key not in self._known:
            if len(self._known) >= self.LIMIT:
                self._known.clear()
            self._known[key] = self._decode(key)
        return self._known[key]


_tolerations_decoder = msgspec.json.Decoder(list[TolerationWire] | None)
_labels_decoder = msgspec.json.Decoder(dict[str, str] | None)
_pod_decoder = msgspec.json.Decoder(PodWire)
_node_decoder = msgspec.json.Decoder(NodeWire)
_budget_decoder = msgspec.json.Decoder(BudgetWire)
_first_seen_decoder = msgspec.json.Decoder(dict[str, Annotated[datetime, msgspec.Meta(tz=True)]])


def _decode_tolerations(raw: bytes) -> tuple[Toleration, ...]:
    wires = _tolerations_decoder.decode(raw) or ()
    return tuple(Toleration(w.key, w.operator, w.value, w.effect, w.toleration_seconds) for w in wires)


def _decode_labels(raw: bytes) -> dict[str, str]:
    return _labels_decoder.decode(raw) or {}


_tolerations = Shared(_decode_tolerations)
_labels = Shared(_decode_labels)


def decode_pod(raw: bytes | msgspec.Raw) -> Pod:
    """Read a pod; raises msgspec.DecodeError for what is no pod."""
    wire = _pod_decoder.decode(raw)
    meta, spec, status = wire.metadata, wire.spec, wire.status
    conditions = {condition.type: condition for condition in status.conditions or ()}
    scheduled, ready = conditions.get("PodScheduled"), conditions.get("Ready")
    bound = (scheduled and scheduled.last_transition_time) or status.start_time or meta.creation_timestamp
    return Pod(
        ref=PodRef(intern(meta.namespace), meta.name, meta.uid),
        version=int(meta.resource_version) if meta.resource_version.isdecimal() else 0,
        node=intern(spec.node_name),
        bound=_epoch(bound),
        tolerations=_tolerations(spec.tolerations),
        priority=spec.priority or 0,
        critical=spec.priority_class_name in CRITICAL_CLASSES,
        phase=intern(status.phase),
        ready=ready is not None and ready.status == "True",
        deleting=meta.deletion_timestamp is not None,
        mirror=MIRROR_ANNOTATION in (meta.annotations or {}),
        labels=_labels(meta.labels),
    )


def decode_node(raw: bytes | msgspec.Raw) -> Node:
    """Read a node; raises msgspec.DecodeError for what is no node."""
    wire = _node_decoder.decode(raw)
    labels = _decode_labels(bytes(wire.metadata.labels))
    return Node(
        name=intern(wire.metadata.name),
        uid=wire.metadata.uid,
        resource_version=wire.metadata.resource_version,
        created=_epoch(wire.metadata.creation_timestamp),
        taints=tuple(Taint(t.key, t.effect, t.value, _epoch_or_none(t.time_added)) for t in wire.spec.taints or ()),
        conditions=tuple(_condition(each) for each in wire.status.conditions or ()),
        unschedulable=wire.spec.unschedulable,
        zone=zone_key(labels),
        excluded=EXCLUDE_LABEL in labels,
        labels=labels,
        first_seen=decode_first_seen((wire.metadata.annotations or {}).get(FIRST_SEEN_ANNOTATION)),
    )


def decode_budget(raw: bytes | msgspec.Raw) -> Budget:
    """Read a PodDisruptionBudget; raises msgspec.DecodeError for what is none."""
    wire = _budget_decoder.decode(raw)
    observed = wire.status.observed_generation >= wire.metadata.generation
    return Budget(
        namespace=intern(wire.metadata.namespace),
        name=wire.metadata.name,
        selector=None if wire.spec.selector is None else _selector(wire.spec.selector),
        allowed=wire.status.disruptions_allowed if observed else 0,
    )


def decode_first_seen(text: str | None) -> dict[str, float]:
    """Read the memory from a node's annotation; what cannot be read counts as nothing remembered."""
    if text is None:
        return {}
    try:
        times = _first_seen_decoder.decode(text)
    except msgspec.DecodeError:
        return {}
    return {taint: at.timestamp() for taint, at in times.items() if at.timestamp() >= 0.0}


def encode_first_seen(memory: Mapping[str, float]) -> str | None:
    """Write the memory for a node's annotation; None, which removes it, where there is nothing to remember."""
    if not memory:
        return None
    return msgspec.json.encode({taint: timestamp(at, digits=3) for taint, at in sorted(memory.items())}).decode()


def encode_taint(taint: Taint) -> dict[str, str]:
    """Write a taint as the API spells it; times are cut to the second, as the API does."""
    wire = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        wire["value"] = taint.value
    if taint.time_added is not None:
        wire["timeAdded"] = timestamp(taint.time_added)
    return wire


def timestamp(seconds: float, *, digits: int = 0) -> str:
    """Write seconds since the epoch as RFC 3339 in UTC, with 0, 3 or 6 digits of a second."""
    precision = {0: "seconds", 3: "milliseconds", 6: "microseconds"}[digits]
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _epoch(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()


def _epoch_or_none(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _condition(wire: ConditionWire) -> Condition:
    heartbeat, transition = _epoch_or_none(wire.last_heartbeat_time), _epoch_or_none(wire.last_transition_time)
    return Condition(wire.type, wire.status, wire.reason, heartbeat, transition)


def _selector(wire: SelectorWire) -> Selector:
    return Selector(
        tuple(sorted((wire.match_labels or {}).items())),
        tuple(
            Requirement(each.key, each.operator, frozenset(each.values or ())) for each in wire.match_expressions or ()
        ),
    )
