"""Pods on the wire."""

from sys import intern

import msgspec

from taintkeeper.cluster.wire.common import ConditionWire, Meta, Shared, Wire, decode_labels
from taintkeeper.cluster.wire.times import Time, moment
from taintkeeper.cluster.wire.traits import OwnerWire, VolumeWire, pod_claims, pod_traits
from taintkeeper.core.objects import Pod, PodRef, Toleration
from taintkeeper.core.order import CRITICAL_CLASSES

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class TolerationWire(Wire, frozen=True):
    """A toleration in a pod's spec."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodMeta(Meta, frozen=True):
    """``metadata`` of a pod."""

    owner_references: list[OwnerWire] | None = None


class PodSpecWire(Wire, frozen=True):
    """``spec`` of a pod."""

    node_name: str = ""
    tolerations: msgspec.Raw = msgspec.Raw(b"null")
    priority: int | None = None
    priority_class_name: str = ""
    volumes: list[VolumeWire] | None = None
    termination_grace_period_seconds: int | None = None


class PodStatusWire(Wire, frozen=True):
    """``status`` of a pod."""

    phase: str = ""
    start_time: Time = None
    conditions: list[ConditionWire] | None = None


class PodWire(Wire, frozen=True):
    """A pod."""

    metadata: PodMeta
    spec: PodSpecWire = PodSpecWire()
    status: PodStatusWire = PodStatusWire()


_decoder = msgspec.json.Decoder(PodWire)
_tolerations_decoder = msgspec.json.Decoder(list[TolerationWire] | None)


def _decode_tolerations(raw: bytes) -> tuple[Toleration, ...]:
    wires = _tolerations_decoder.decode(raw) or ()
    return tuple(Toleration(w.key, w.operator, w.value, w.effect, w.toleration_seconds) for w in wires)


_tolerations = Shared(_decode_tolerations)
_labels = Shared(decode_labels)


def decode_pod(raw: bytes | msgspec.Raw) -> Pod:
    """Read a pod; raises msgspec.DecodeError for what is no pod. A time that cannot be read counts as missing."""
    wire = _decoder.decode(raw)
    meta, spec, status = wire.metadata, wire.spec, wire.status
    conditions = {condition.type: condition for condition in status.conditions or ()}
    ready = conditions.get("Ready")
    return Pod(
        ref=PodRef(intern(meta.namespace), meta.name, meta.uid),
        version=int(meta.resource_version) if meta.resource_version.isdecimal() else 0,
        node=intern(spec.node_name),
        bound=_bound(wire, conditions.get("PodScheduled")),
        tolerations=_tolerations(spec.tolerations),
        priority=spec.priority or 0,
        critical=spec.priority_class_name in CRITICAL_CLASSES,
        phase=intern(status.phase),
        ready=ready is not None and ready.status == "True",
        deleting=meta.deletion_timestamp is not None,
        delete_by=moment(meta.deletion_timestamp),
        mirror=MIRROR_ANNOTATION in (meta.annotations or {}),
        labels=_labels(meta.labels),
        grace=spec.termination_grace_period_seconds,
        traits=pod_traits(meta.annotations, meta.owner_references, spec.volumes),
        claims=pod_claims(meta.name, spec.volumes),
    )


def _bound(wire: PodWire, scheduled: ConditionWire | None) -> float:
    """Return since when the pod is on its node: scheduled, else started, else created; zero where none can be read."""
    times = (scheduled and scheduled.last_transition_time, wire.status.start_time, wire.metadata.creation_timestamp)
    return next((at for time in times if (at := moment(time)) is not None), 0.0)
