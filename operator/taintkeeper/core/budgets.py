"""Which disruption budgets select which pod."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taintkeeper.core.objects import Pod
from taintkeeper.core.selectors import Selector


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget as it was last seen. ``selector`` None selects nothing.

    ``allowed`` is zero where the disruption controller has not observed this generation yet: the API server
    refuses then as well; ``observed`` says so. ``expected`` is how many pods it has, ``healthy`` how many of them are
    ready and not about to go, ``desired`` how many have to be, and ``demand`` what its author wrote to that end.
    ``always_allow`` says that it never holds pods that are not ready (``unhealthyPodEvictionPolicy``).
    """

    namespace: str
    name: str
    selector: Selector | None
    allowed: int = 0
    healthy: int = 0
    desired: int = 0
    always_allow: bool = False
    expected: int = 0
    observed: bool = True
    demand: str = ""
    uid: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    def selects(self, pod: Pod) -> bool:
        """Say whether the budget covers the pod."""
        return self.selector is not None and self.selector.matches(pod.labels)


class BudgetBook:
    """All budgets, by namespace."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Budget]] = {}

    def put(self, budget: Budget) -> None:
        """Note a budget as it is now."""
        self._by_namespace.setdefault(budget.namespace, {})[budget.name] = budget

    def drop(self, namespace: str, name: str) -> None:
        """Forget a budget that was deleted."""
        budgets = self._by_namespace.get(namespace, {})
        budgets.pop(name, None)
        if not budgets:
            self._by_namespace.pop(namespace, None)

    def get(self, namespace: str, name: str) -> Budget | None:
        """Return the budget of this name, or None."""
        return self._by_namespace.get(namespace, {}).get(name)

    def named(self, namespace: str, names: Iterable[str]) -> list[Budget]:
        """Return those of these budgets that there are."""
        found = (self.get(namespace, name) for name in names)
        return [budget for budget in found if budget is not None]

    def __iter__(self) -> Iterator[Budget]:
        return (budget for budgets in self._by_namespace.values() for budget in budgets.values())

    def allowed(self, namespace: str, names: Iterable[str]) -> int:
        """Return how many disruptions the tightest of these budgets allows; those that are gone have no say."""
        return min((budget.allowed for budget in self.named(namespace, names)), default=0)

    def of(self, pod: Pod) -> list[Budget]:
        """Return the budgets that the Eviction API will ask for this pod, by name.

        It asks none for a pod that has not started or has ended (``canIgnorePDB`` in kubernetes/kubernetes
        ``pkg/registry/core/pod/storage/eviction.go``).
        """
        if pod.terminal or pod.phase == "Pending":
            return []
        budgets = self._by_namespace.get(pod.ref.namespace, {}).values()
        return sorted((budget for budget in budgets if budget.selects(pod)), key=lambda budget: budget.name)
