"""When an eviction may be tried against a disruption budget, and which pod is the next to try.

A budget that allows nothing answers every eviction with 429, so asking once for each of 500 pods tells nothing that
asking once does not. All pods under the same budgets stand behind one :class:`Gate`; while it is closed one of them
is tried now and then, and when the budget says that it allows disruptions again, they are tried one after another.

Never two at once: each eviction writes the budget's status, and one that comes upon another's write is tried again by
the API server after half a second (``EvictionsRetry`` in kubernetes/kubernetes
``pkg/registry/core/pod/storage/eviction.go``), while evictions in turn take a few milliseconds each.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from taintkeeper.core.budgets import Budget
from taintkeeper.core.objects import Pod
from taintkeeper.core.order import Urgency
from taintkeeper.core.pacing import Backoff

BUDGET_BACKOFF = Backoff(base=5.0, cap=60.0)


@dataclass(frozen=True, slots=True)
class GateKey:
    """The pods that stand behind one gate: same namespace, same budgets, ready or not.

    Pods that are not ready have a gate of their own, since a budget may let an unhealthy pod go while it holds the
    healthy ones (``unhealthyPodEvictionPolicy``).
    """

    namespace: str
    budgets: tuple[str, ...]
    ready: bool


def gate_key(pod: Pod, budgets: Sequence[Budget]) -> GateKey | None:
    """Return the gate that this pod stands behind, or None where no budget selects it."""
    if not budgets:
        return None
    return GateKey(pod.ref.namespace, tuple(budget.name for budget in budgets), pod.ready)


@dataclass(slots=True)
class Gate:
    """What is tried against the budgets of one key. Times are in seconds since the epoch."""

    allowed: int = 0
    trying: bool = False
    probe_at: float = 0.0
    refusals: int = 0
    armed_for: float = 0.0
    waiting: list[tuple[Urgency, str]] = field(default_factory=list)
    members: set[str] = field(default_factory=set)

    def may_try(self, now: float) -> bool:
        """Say whether an eviction may be tried now: while disruptions are allowed, or else as a probe."""
        return not self.trying and not self.closed(now)

    def closed(self, now: float) -> bool:
        """Say whether the budgets are known to allow nothing, until they change or the next probe is due."""
        return self.allowed == 0 and now < self.probe_at

    def accepted(self, now: float) -> None:
        """Note that an eviction went through: one disruption fewer is allowed, and the next one may be tried."""
        self.allowed = max(0, self.allowed - 1)
        self.refusals = 0
        self.probe_at = now

    def refused(self, now: float, random: Random) -> None:
        """Note that the budget refused: until it changes only probes are sent, ever more seldom."""
        self.allowed = 0
        self.probe_at = now + BUDGET_BACKOFF.delay(self.refusals, random)
        self.refusals += 1

    def update(self, allowed: int, now: float) -> None:
        """Note how many disruptions the budgets allow now; more than before opens the gate at once."""
        if allowed > self.allowed:
            self.refusals = 0
            self.probe_at = now
        self.allowed = allowed

    def arm(self, now: float) -> bool:
        """Say whether a timer for ``probe_at`` has to be set, and take it as set."""
        needed = self.probe_at > now and self.probe_at != self.armed_for
        self.armed_for = self.probe_at
        return needed

    def wait(self, urgency: Urgency, uid: str) -> None:
        """Let a pod wait; one that came and went before still has its place."""
        if uid not in self.members:
            self.members.add(uid)
            heapq.heappush(self.waiting, (urgency, uid))

    def next(self) -> str | None:
        """Take out the UID of the pod that comes next, or return None."""
        if not self.waiting:
            return None
        uid = heapq.heappop(self.waiting)[1]
        self.members.discard(uid)
        return uid


class Gates:
    """All gates, by namespace and key."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[GateKey, Gate]] = {}

    def get(self, key: GateKey) -> Gate | None:
        """Return the gate with this key, or None where nobody stood behind it or it was taken down."""
        return self._by_namespace.get(key.namespace, {}).get(key)

    def open_for(self, key: GateKey, allowed: int) -> Gate:
        """Return the gate with this key; a new one begins with so many disruptions allowed."""
        gates = self._by_namespace.setdefault(key.namespace, {})
        return gates.setdefault(key, Gate(allowed=allowed))

    def behind(self, namespace: str, budget: str) -> list[GateKey]:
        """Return the keys of the gates in which this budget has a say."""
        return [key for key in self._by_namespace.get(namespace, {}) if budget in key.budgets]

    def take_down(self, namespace: str) -> list[Gate]:
        """Take down the gates of a namespace, to be built anew from its budgets; return them with who waits there."""
        return list(self._by_namespace.pop(namespace, {}).values())
