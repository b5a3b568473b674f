"""Why a disruption budget holds a pod for longer than its author may have meant.

A budget that wants as many healthy pods as there are allows nobody to leave, ever: whoever drains such a node waits for
ever, and should be told why. The numbers are those of ``pkg/controller/disruption/disruption.go`` in
kubernetes/kubernetes.
"""

from collections.abc import Iterable

from taintkeeper.core.budgets import Budget


def never_allows(budget: Budget) -> str | None:
    """Return why the budget allows no disruption even at full health; None where it may allow some."""
    if not budget.observed or budget.expected == 0 or budget.desired < budget.expected:
        return None
    pods = "its only pod" if budget.expected == 1 else f"all of its {budget.expected} pods"
    return f"it can never allow an eviction, since it wants {pods} healthy{_by(budget)}"


def holds_unhealthy(budget: Budget, *, ready: bool) -> str | None:
    """Return why the budget holds a pod that is not ready, and what would let it go; None where that is not so."""
    if ready or budget.always_allow or not budget.observed or budget.healthy >= budget.desired:
        return None
    return (
        f"only {budget.healthy} of the {budget.desired} pods that it wants are healthy; "
        "with unhealthyPodEvictionPolicy: AlwaysAllow it would let pods go that are not ready"
    )


def reasons(budgets: Iterable[Budget], *, ready: bool) -> tuple[str, ...]:
    """Return what there is to say about budgets that hold a pod, each with its name."""
    found = ((budget, never_allows(budget) or holds_unhealthy(budget, ready=ready)) for budget in budgets)
    return tuple(f"{budget.name}: {why}" for budget, why in found if why is not None)


def _by(budget: Budget) -> str:
    return f" ({budget.demand})" if budget.demand else ""
