"""EvictionPolicies on the wire.

Whatever an object says, it is read: a policy that makes no sense is one with a fault, so that its status can tell.
"""

from typing import Any

import msgspec

from taintkeeper.cluster.custom_kind import CustomKind
from taintkeeper.cluster.wire.common import Meta, Shared, Wire, decode_labels
from taintkeeper.cluster.wire.selectors import SelectorWire, to_selector
from taintkeeper.cluster.wire.statuses import StatusConditionWire, decode_conditions, encode_conditions, spec_fault
from taintkeeper.core.objects import NO_EXECUTE
from taintkeeper.core.policies import Mode, Policy, TaintPattern
from taintkeeper.core.policy_checks import find_fault
from taintkeeper.core.policy_messages import PolicySeen, PolicyStatus
from taintkeeper.core.traits import Trait, Traits

EVICT, IGNORE = "Evict", "Ignore"


class PatternWire(Wire, frozen=True):
    """One of ``spec.taints``."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PolicySpecWire(Wire, frozen=True):
    """``spec`` of an EvictionPolicy."""

    precedence: int | None = None
    taints: list[PatternWire] | None = None
    namespace_selector: SelectorWire | None = None
    pod_selector: SelectorWire | None = None
    mode: str | None = None
    blocked_seconds: int | None = None
    default_toleration_seconds: int | None = None
    grace_period_seconds: int | None = None
    max_concurrent_per_node: int | None = None
    unmanaged_pods: str | None = None
    daemon_set_pods: str | None = None
    pods_with_local_storage: str | None = None
    dry_run: bool | None = None


class PolicyStatusWire(Wire, frozen=True):
    """``status`` of an EvictionPolicy."""

    observed_generation: int = 0
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    exempt: int = 0
    conditions: list[StatusConditionWire] | None = None


class PolicyWire(Wire, frozen=True):
    """An EvictionPolicy. Its parts are read one by one, since each may make no sense by itself."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class NamespaceWire(Wire, frozen=True):
    """A namespace."""

    metadata: Meta


_decoder = msgspec.json.Decoder(PolicyWire)
_spec_decoder = msgspec.json.Decoder(PolicySpecWire)
_status_decoder = msgspec.json.Decoder(PolicyStatusWire | None)
_namespace_decoder = msgspec.json.Decoder(NamespaceWire)
_labels = Shared(decode_labels)


def decode_policy(raw: bytes | msgspec.Raw) -> PolicySeen:
    """Read a policy; raises msgspec.DecodeError only for what has no metadata of an object."""
    wire = _decoder.decode(raw)
    meta = wire.metadata
    policy, fault = _read_spec(meta.name, wire.spec)
    return PolicySeen(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        policy=None if fault else policy,
        fault=fault,
        status=_read_status(wire.status),
    )


def encode_policy_status(status: PolicyStatus) -> dict[str, Any]:
    """Write a status as the API spells it, for a merge patch."""
    return {
        "observedGeneration": status.generation,
        "pending": status.pending,
        "blocked": status.blocked,
        "evicted": status.evicted,
        "exempt": status.exempt,
        "conditions": encode_conditions(status.conditions, status.generation),
    }


POLICIES: CustomKind[PolicySeen, PolicyStatus] = CustomKind("evictionpolicies", decode_policy, encode_policy_status)


def decode_namespace(raw: bytes | msgspec.Raw) -> tuple[str, dict[str, str]]:
    """Read the name and the labels of a namespace; raises msgspec.DecodeError for what is none."""
    meta = _namespace_decoder.decode(raw).metadata
    return meta.name, _labels(meta.labels)


def _read_spec(name: str, raw: msgspec.Raw) -> tuple[Policy | None, str]:
    try:
        policy = _policy(name, _spec_decoder.decode(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        return None, spec_fault(error, raw)
    except ValueError as error:
        return None, str(error)
    return policy, find_fault(policy)


def _policy(name: str, spec: PolicySpecWire) -> Policy:
    return Policy(
        name=name,
        precedence=spec.precedence or 0,
        taints=(TaintPattern(),) if spec.taints is None else _patterns(spec.taints),
        namespaces=to_selector(spec.namespace_selector or SelectorWire()),
        pods=to_selector(spec.pod_selector or SelectorWire()),
        mode=Mode(_choice("mode", spec.mode, tuple(Mode))),
        blocked_seconds=None if spec.blocked_seconds is None else float(spec.blocked_seconds),
        default_toleration_seconds=(
            None if spec.default_toleration_seconds is None else float(spec.default_toleration_seconds)
        ),
        grace_seconds=spec.grace_period_seconds,
        max_concurrent_per_node=spec.max_concurrent_per_node,
        ignored=_ignored(spec),
        dry_run=spec.dry_run or False,
    )


def _ignored(spec: PolicySpecWire) -> Traits:
    choices = {
        Trait.UNMANAGED: ("unmanagedPods", spec.unmanaged_pods),
        Trait.DAEMON_SET: ("daemonSetPods", spec.daemon_set_pods),
        Trait.LOCAL_STORAGE: ("podsWithLocalStorage", spec.pods_with_local_storage),
    }
    return frozenset(
        trait for trait, (field, value) in choices.items() if _choice(field, value, (EVICT, IGNORE)) == IGNORE
    )


def _choice(field: str, value: str | None, possible: tuple[str, ...]) -> str:
    """Return what is chosen, Evict where nothing is; raises ValueError for what cannot be."""
    if value is not None and value not in possible:
        raise ValueError(f"spec.{field}: {value!r} is none of {', '.join(possible)}")
    return EVICT if value is None else value


def _patterns(wires: list[PatternWire]) -> tuple[TaintPattern, ...]:
    return tuple(
        TaintPattern(wire.key or "", _pattern_value(index, wire), wire.effect or NO_EXECUTE)
        for index, wire in enumerate(wires)
    )


def _pattern_value(index: int, wire: PatternWire) -> str | None:
    """Return the value to compare with, None for any; raises ValueError where it cannot be told."""
    match wire.operator, wire.value:
        case "Equal", value:
            return value or ""
        case "Exists", str(value) if value:
            raise ValueError(f"spec.taints[{index}].value: {value!r} is given, the operator Exists takes none")
        case None | "" | "Exists", value:
            return value or None
        case operator, _:
            raise ValueError(f"spec.taints[{index}].operator: {operator!r} is none of Exists, Equal")


def _read_status(raw: msgspec.Raw) -> PolicyStatus | None:
    try:
        wire = _status_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    if wire is None:
        return None
    conditions = decode_conditions(wire.conditions)
    return PolicyStatus(wire.observed_generation, wire.pending, wire.blocked, wire.evicted, wire.exempt, conditions)
