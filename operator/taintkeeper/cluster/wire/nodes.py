"""Nodes and their taints on the wire."""

from sys import intern

import msgspec

from taintkeeper.cluster.wire.common import ConditionWire, Meta, Wire, decode_labels
from taintkeeper.cluster.wire.memory import FIRST_SEEN_ANNOTATION, decode_first_seen
from taintkeeper.cluster.wire.rule_taints import RULE_TAINTS_ANNOTATION, decode_rule_taints
from taintkeeper.cluster.wire.times import Time, moment, timestamp
from taintkeeper.core.objects import Condition, Node, Taint
from taintkeeper.core.shutdown import SHUTTING_DOWN
from taintkeeper.core.zones import EXCLUDE_LABEL, zone_key


class TaintWire(Wire, frozen=True):
    """A taint in a node's spec."""

    key: str = ""
    effect: str = ""
    value: str = ""
    time_added: Time = None


class NodeSpecWire(Wire, frozen=True):
    """``spec`` of a node."""

    taints: list[TaintWire] | None = None
    unschedulable: bool = False


class NodeConditionWire(ConditionWire, frozen=True):
    """A condition in a node's status."""

    message: str = ""


class NodeStatusWire(Wire, frozen=True):
    """``status`` of a node."""

    conditions: list[NodeConditionWire] | None = None


class NodeWire(Wire, frozen=True):
    """A node."""

    metadata: Meta
    spec: NodeSpecWire = NodeSpecWire()
    status: NodeStatusWire = NodeStatusWire()


_decoder = msgspec.json.Decoder(NodeWire)


def decode_node(raw: bytes | msgspec.Raw) -> Node:
    """Read a node; raises msgspec.DecodeError for what is no node. A time that cannot be read counts as missing."""
    wire = _decoder.decode(raw)
    meta, spec, status = wire.metadata, wire.spec, wire.status
    labels = decode_labels(bytes(meta.labels))
    annotations = meta.annotations or {}
    return Node(
        name=intern(meta.name),
        uid=meta.uid,
        resource_version=meta.resource_version,
        created=moment(meta.creation_timestamp) or 0.0,
        taints=tuple(Taint(t.key, t.effect, t.value, moment(t.time_added)) for t in spec.taints or ()),
        conditions=tuple(_condition(each) for each in status.conditions or ()),
        unschedulable=spec.unschedulable,
        zone=zone_key(labels),
        excluded=EXCLUDE_LABEL in labels,
        shutting_down=any(_tells_of_shutdown(each) for each in status.conditions or ()),
        labels=labels,
        first_seen=decode_first_seen(annotations.get(FIRST_SEEN_ANNOTATION)),
        rule_taints=decode_rule_taints(annotations.get(RULE_TAINTS_ANNOTATION)),
    )


def encode_taint(taint: Taint) -> dict[str, str]:
    """Write a taint as the API spells it; times are cut to the second, as the API does."""
    wire = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        wire["value"] = taint.value
    if taint.time_added is not None:
        wire["timeAdded"] = timestamp(taint.time_added)
    return wire


def _tells_of_shutdown(wire: NodeConditionWire) -> bool:
    return wire.type == "Ready" and wire.status == "False" and SHUTTING_DOWN in wire.message


def _condition(wire: ConditionWire) -> Condition:
    heartbeat, transition = moment(wire.last_heartbeat_time), moment(wire.last_transition_time)
    return Condition(wire.type, wire.status, wire.reason, heartbeat, transition)
