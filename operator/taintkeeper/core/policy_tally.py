"""How many pods each policy is about: the numbers are kept, never summed up anew."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """How a pod stands with the policy that decides about it."""

    PENDING = "pending"
    BLOCKED = "blocked"
    EXEMPT = "exempt"


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of one policy. A pod that is blocked is pending as well. ``evicted`` is since this process began."""

    pending: int = 0
    blocked: int = 0
    exempt: int = 0
    evicted: int = 0


class PolicyTally:
    """The numbers of all policies, by the name of the policy."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, Standing]] = {}
        self._count: Counter[tuple[str, Standing]] = Counter()
        self._evicted: Counter[str] = Counter()
        self._touched: dict[str, None] = {}

    def note(self, uid: str, policy: str, standing: Standing) -> None:
        """Note how the pod with this UID stands, in place of what was noted before."""
        if self._of.get(uid) != (policy, standing):
            self.forget(uid)
            self._of[uid] = policy, standing
            self._count[policy, standing] += 1
            self._touched[policy] = None

    def forget(self, uid: str) -> None:
        """Note that no policy is about this pod any more: it may stay, or is gone."""
        if (before := self._of.pop(uid, None)) is not None:
            self._count[before] -= 1
            self._touched[before[0]] = None

    def evicted(self, policy: str) -> None:
        """Note that a pod has left by this policy: the API server accepted its eviction or deletion."""
        self._evicted[policy] += 1
        self._touched[policy] = None

    def numbers(self, policy: str) -> Numbers:
        """Return the numbers of a policy, zeros for one that nothing was noted of."""
        blocked = self._count[policy, Standing.BLOCKED]
        pending = self._count[policy, Standing.PENDING] + blocked
        return Numbers(pending, blocked, self._count[policy, Standing.EXEMPT], self._evicted[policy])

    def drop(self, policy: str) -> None:
        """Forget what a policy did that is gone; the pods that it was about are for others to note anew."""
        self._evicted.pop(policy, None)

    def take_touched(self) -> list[str]:
        """Return the policies whose numbers may have changed since the last call."""
        touched, self._touched = self._touched, {}
        return list(touched)
