"""The pods that budgets hold: since when, and what there is to say about the budgets."""

from taintkeeper.core.budget_faults import never_allows
from taintkeeper.core.budgets import Budget


class BlockedPods:
    """Remembers pods by UID in the order in which they were first held, and which budgets were told of."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._told: dict[tuple[str, str], str] = {}

    def note(self, uid: str, now: float) -> bool:
        """Note that budgets hold this pod; return whether that is new."""
        new = uid not in self._since
        self._since.setdefault(uid, now)
        return new

    def since(self, uid: str) -> float | None:
        """Return since when budgets have held this pod, in seconds since the epoch; None where they do not."""
        return self._since.get(uid)

    def forget(self, uid: str) -> None:
        """Note that budgets hold this pod no longer."""
        self._since.pop(uid, None)

    def oldest(self, now: float) -> float:
        """Return for how many seconds the pod that has been held longest has been held; zero without any."""
        return max(0.0, now - next(iter(self._since.values()), now))

    def blame(self, budget: Budget) -> str | None:
        """Return why a budget that holds pods always will, the first time that this is so; else None."""
        why = never_allows(budget)
        before = self._told.get(budget.key)
        if why is None:
            self.acquit(budget.namespace, budget.name)
        elif why != before:
            self._told[budget.key] = why
            return why
        return None

    def acquit(self, namespace: str, name: str) -> None:
        """Forget what was told of a budget."""
        self._told.pop((namespace, name), None)
