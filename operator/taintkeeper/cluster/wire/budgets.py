"""Disruption budgets on the wire."""

from sys import intern

import msgspec

from taintkeeper.cluster.wire.common import Meta, Wire
from taintkeeper.core.budgets import Budget
from taintkeeper.core.selectors import Requirement, Selector


class RequirementWire(Wire, frozen=True):
    """One of ``matchExpressions``."""

    key: str
    operator: str
    values: list[str] | None = None


class SelectorWire(Wire, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[RequirementWire] | None = None


class BudgetSpecWire(Wire, frozen=True):
    """``spec`` of a PodDisruptionBudget."""

    selector: SelectorWire | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatusWire(Wire, frozen=True):
    """``status`` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class BudgetWire(Wire, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpecWire = BudgetSpecWire()
    status: BudgetStatusWire = BudgetStatusWire()


_decoder = msgspec.json.Decoder(BudgetWire)


def decode_budget(raw: bytes | msgspec.Raw) -> Budget:
    """Read a PodDisruptionBudget; raises msgspec.DecodeError for what is none."""
    wire = _decoder.decode(raw)
    observed = wire.status.observed_generation >= wire.metadata.generation
    return Budget(
        namespace=intern(wire.metadata.namespace),
        name=wire.metadata.name,
        selector=None if wire.spec.selector is None else _selector(wire.spec.selector),
        allowed=wire.status.disruptions_allowed if observed else 0,
        healthy=wire.status.current_healthy,
        desired=wire.status.desired_healthy,
        always_allow=wire.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
        expected=wire.status.expected_pods,
        observed=observed,
        demand=_demand(wire.spec),
        uid=wire.metadata.uid,
    )


def _demand(spec: BudgetSpecWire) -> str:
    if spec.max_unavailable is not None:
        return f"maxUnavailable: {spec.max_unavailable}"
    return "" if spec.min_available is None else f"minAvailable: {spec.min_available}"


def _selector(wire: SelectorWire) -> Selector:
    return Selector(
        tuple(sorted((wire.match_labels or {}).items())),
        tuple(
            Requirement(each.key, each.operator, frozenset(each.values or ())) for each in wire.match_expressions or ()
        ),
    )
