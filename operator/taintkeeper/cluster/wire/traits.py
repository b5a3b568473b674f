"""What a pod on the wire has about it that may exempt it from eviction."""

from sys import intern
from typing import Any

import msgspec

from taintkeeper.cluster.wire.common import Meta, Wire
from taintkeeper.core.traits import EVICT_ANNOTATION, NO_TRAITS, Trait, Traits


class OwnerWire(Wire, frozen=True):
    """One of ``metadata.ownerReferences``."""

    kind: str = ""
    controller: bool | None = None


class EmptyDirWire(Wire, frozen=True):
    """An ``emptyDir``."""

    medium: str = ""


class ClaimWire(Wire, frozen=True):
    """A ``persistentVolumeClaim`` of a volume."""

    claim_name: str = ""


class VolumeWire(Wire, frozen=True):
    """One of ``spec.volumes``: what it is, by whichever field is there."""

    name: str = ""
    empty_dir: EmptyDirWire | None = None
    host_path: dict[str, Any] | None = None
    persistent_volume_claim: ClaimWire | None = None
    ephemeral: dict[str, Any] | None = None


class ReferenceWire(Wire, frozen=True):
    """``spec.claimRef`` of a PersistentVolume."""

    namespace: str = ""
    name: str = ""


class VolumeSpecWire(Wire, frozen=True):
    """``spec`` of a PersistentVolume."""

    claim_ref: ReferenceWire | None = None
    local: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None


class PersistentVolumeWire(Wire, frozen=True):
    """A PersistentVolume."""

    metadata: Meta
    spec: VolumeSpecWire = VolumeSpecWire()


_volume_decoder = msgspec.json.Decoder(PersistentVolumeWire)
_shared: dict[Traits, Traits] = {}


def pod_traits(
    annotations: dict[str, str] | None, owners: list[OwnerWire] | None, volumes: list[VolumeWire] | None
) -> Traits:
    """Return the traits of a pod, the same object for the same ones.

    A pod is unmanaged without a controller among its owners, as for ``kubectl drain``. Its data is on the node if it
    has an emptyDir that is not in memory or a hostPath, as for the cluster-autoscaler (``HasLocalStorage`` in
    kubernetes/autoscaler ``cluster-autoscaler/utils/drain/drain.go``); claims are for :func:`pod_claims` to tell.
    """
    controller = next((owner for owner in owners or () if owner.controller), None)
    facts = {
        Trait.ANNOTATED: (annotations or {}).get(EVICT_ANNOTATION) == "false",
        Trait.UNMANAGED: controller is None,
        Trait.DAEMON_SET: controller is not None and controller.kind == "DaemonSet",
        Trait.LOCAL_STORAGE: any(_is_local(volume) for volume in volumes or ()),
    }
    found = frozenset(trait for trait, holds in facts.items() if holds) or NO_TRAITS
    return _shared.setdefault(found, found)


def pod_claims(pod: str, volumes: list[VolumeWire] | None) -> tuple[str, ...]:
    """Return the names of the claims that a pod uses, those made for it alone among them (``ephemeral``)."""
    claims = (
        volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else f"{pod}-{volume.name}"
        for volume in volumes or ()
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    )
    return tuple(intern(claim) for claim in claims)


def decode_local_volume(raw: bytes | msgspec.Raw) -> tuple[str, tuple[str, str] | None]:
    """Read a PersistentVolume: its name, and namespace and name of the claim whose data it has on a node, or None.

    Raises msgspec.DecodeError for what is none.
    """
    wire = _volume_decoder.decode(raw)
    spec = wire.spec
    on_node = spec.local is not None or spec.host_path is not None
    claim = (spec.claim_ref.namespace, spec.claim_ref.name) if on_node and spec.claim_ref is not None else None
    return wire.metadata.name, claim


def _is_local(volume: VolumeWire) -> bool:
    return volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != "Memory")
