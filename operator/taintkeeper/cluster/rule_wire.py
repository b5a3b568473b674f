"""NodeTaintRules on the wire.

Whatever an object says, it is read: a rule that makes no sense is one with a fault, so that its status can tell.
"""

import re
from typing import Any

import msgspec

from taintkeeper.cluster.custom_kind import CustomKind
from taintkeeper.cluster.wire.common import Meta, Wire
from taintkeeper.cluster.wire.selectors import SelectorWire, to_selector
from taintkeeper.cluster.wire.statuses import StatusConditionWire, decode_conditions, encode_conditions, spec_fault
from taintkeeper.core.objects import NO_EXECUTE
from taintkeeper.core.rule_checks import find_fault
from taintkeeper.core.rules import Limit, Rule, RuleSeen, RuleStatus


class ConditionSpecWire(Wire, frozen=True):
    """``spec.condition``."""

    type: str
    status: str


class TaintSpecWire(Wire, frozen=True):
    """``spec.taint``."""

    key: str
    effect: str
    value: str | None = None


class RuleSpecWire(Wire, frozen=True):
    """``spec`` of a NodeTaintRule."""

    condition: ConditionSpecWire
    taint: TaintSpecWire
    node_selector: SelectorWire | None = None
    for_seconds: int | None = None
    clear_seconds: int | None = None
    max_unhealthy: int | str | None = None
    rate_limited: bool | None = None
    dry_run: bool | None = None


class RuleStatusWire(Wire, frozen=True):
    """``status`` of a NodeTaintRule."""

    observed_generation: int = 0
    matched: int = 0
    waiting: int = 0
    tainted: int = 0
    held_back: int = 0
    conditions: list[StatusConditionWire] | None = None


class RuleWire(Wire, frozen=True):
    """A NodeTaintRule. Its parts are read one by one, since each may make no sense by itself."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


_decoder = msgspec.json.Decoder(RuleWire)
_spec_decoder = msgspec.json.Decoder(RuleSpecWire)
_status_decoder = msgspec.json.Decoder(RuleStatusWire | None)


def decode_rule(raw: bytes | msgspec.Raw) -> RuleSeen:
    """Read a rule; raises msgspec.DecodeError only for what has no metadata of an object."""
    wire = _decoder.decode(raw)
    meta = wire.metadata
    rule, fault = _read_spec(meta.name, wire.spec)
    return RuleSeen(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        rule=None if fault else rule,
        fault=fault,
        status=_read_status(wire.status),
    )


def encode_rule_status(status: RuleStatus) -> dict[str, Any]:
    """Write a status as the API spells it, for a merge patch."""
    return {
        "observedGeneration": status.generation,
        "matched": status.matched,
        "waiting": status.waiting,
        "tainted": status.tainted,
        "heldBack": status.held_back,
        "conditions": encode_conditions(status.conditions, status.generation),
    }


RULES: CustomKind[RuleSeen, RuleStatus] = CustomKind("nodetaintrules", decode_rule, encode_rule_status)


def _read_spec(name: str, raw: msgspec.Raw) -> tuple[Rule | None, str]:
    try:
        spec = _spec_decoder.decode(raw)
        rule = _rule(name, spec)
    except (msgspec.DecodeError, RecursionError) as error:
        return None, spec_fault(error, raw)
    except ValueError as error:
        return None, str(error)
    return rule, find_fault(rule)


def _rule(name: str, spec: RuleSpecWire) -> Rule:
    evicts = spec.taint.effect == NO_EXECUTE
    return Rule(
        name=name,
        condition_type=spec.condition.type,
        condition_status=spec.condition.status,
        key=spec.taint.key,
        effect=spec.taint.effect,
        value=spec.taint.value or "",
        selector=to_selector(spec.node_selector or SelectorWire()),
        for_seconds=float(spec.for_seconds or 0),
        clear_seconds=float(spec.clear_seconds or 0),
        limit=None if spec.max_unhealthy is None else _limit(spec.max_unhealthy),
        rate_limited=evicts if spec.rate_limited is None else spec.rate_limited,
        dry_run=spec.dry_run or False,
    )


def _limit(value: int | str) -> Limit:
    if isinstance(value, int):
        return Limit(value)
    if not re.fullmatch(r"[0-9]{1,3}%", value):
        raise ValueError(f"spec.maxUnhealthy: {value!r} is neither a number of nodes nor a percentage from 0% to 100%")
    return Limit(int(value[:-1]), percent=True)


def _read_status(raw: msgspec.Raw) -> RuleStatus | None:
    try:
        wire = _status_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    if wire is None:
        return None
    conditions = decode_conditions(wire.conditions)
    return RuleStatus(wire.observed_generation, wire.matched, wire.waiting, wire.tainted, wire.held_back, conditions)
