"""Keeps the gates: which pod may be tried against its disruption budgets now, and which wait until when."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from taintkeeper.core.answers import Outcome
from taintkeeper.core.budget_faults import never_allows
from taintkeeper.core.budgets import Budget, BudgetBook
from taintkeeper.core.gates import GateKey, Gates, gate_key
from taintkeeper.core.objects import Pod
from taintkeeper.core.order import Urgency


class Gatekeeper:
    """Knows all budgets and all gates.

    ``wake`` is called with the UID of a pod that waited and may be tried, and the gate that it is let through, None
    where the gate is no more; it returns whether the pod was waiting there, or the next one gets its place.
    """

    def __init__(self, random: Random, wake: Callable[[str, GateKey | None], bool]) -> None:
        self._random = random
        self._wake = wake
        self._budgets = BudgetBook()
        self._gates = Gates()
        self._timers: list[tuple[float, int, GateKey]] = []
        self._unused: list[GateKey] = []
        self._sequence = count()

    def budget_seen(self, budget: Budget, now: float) -> None:
        """Take in a budget; one that allows more than before lets the next pod through at once."""
        before = self._budgets.get(budget.namespace, budget.name)
        self._budgets.put(budget)
        if before is None or before.selector != budget.selector:
            self._rebuild(budget.namespace)
            return
        for key in self._gates.behind(budget.namespace, budget.name):
            self._gates.open_for(key, 0).update(self._budgets.allowed(key.namespace, key.budgets), now)
            self.release(key, now)

    def budget_gone(self, namespace: str, name: str) -> None:
        """Forget a budget; the pods it held find out at once what holds them now."""
        self._budgets.drop(namespace, name)
        self._rebuild(namespace)

    def gate_of(self, pod: Pod) -> GateKey | None:
        """Return the gate that the pod stands behind as things are, None where no budget holds it."""
        return gate_key(pod, self._budgets.of(pod))

    def budgets(self, key: GateKey) -> list[Budget]:
        """Return the budgets of a gate."""
        return self._budgets.named(key.namespace, key.budgets)

    def misconfigured(self) -> int:
        """Return how many budgets can never allow an eviction, whether or not they hold any pod now."""
        return sum(never_allows(budget) is not None for budget in self._budgets)

    def enter(self, key: GateKey, now: float) -> bool:
        """Let a pod through if it may be tried; its end is told by :meth:`answered`."""
        gate = self._gates.open_for(key, self._budgets.allowed(key.namespace, key.budgets))
        if not gate.may_try(now):
            return False
        gate.trying = True
        return True

    def hold(self, key: GateKey, urgency: Urgency, uid: str, now: float) -> None:
        """Let a pod wait at its gate."""
        gate = self._gates.open_for(key, 0)
        gate.wait(urgency, uid)
        self._arm(key, now)

    def leave(self, key: GateKey) -> None:
        """Note that a pod which was let through did not try after all; the next one may, at the next :meth:`reuse`."""
        self._unused.append(key)

    def answered(self, key: GateKey, outcome: Outcome, now: float) -> None:
        """Note how the try of a pod that was let through ended."""
        gate = self._gates.get(key)
        if gate is None:
            return
        gate.trying = False
        if outcome is Outcome.ACCEPTED:
            gate.accepted(now)
        elif outcome is Outcome.BUDGET:
            gate.refused(now, self._random)

    def is_closed(self, key: GateKey, now: float) -> bool:
        """Say whether the gate's budgets are known to allow nothing for now."""
        gate = self._gates.get(key)
        return gate is not None and gate.closed(now)

    def waiting(self, key: GateKey) -> list[str]:
        """Return the UIDs of the pods that wait at this gate, the next first."""
        gate = self._gates.get(key)
        return [] if gate is None else [uid for _, uid in sorted(gate.waiting)]

    def pause(self, key: GateKey, now: float) -> float | None:
        """Return for how many seconds the gate stays closed at most; None for a gate that is no more."""
        gate = self._gates.get(key)
        return None if gate is None else max(0.0, gate.probe_at - now)

    def release(self, key: GateKey, now: float) -> None:
        """Wake the pod that comes next at this gate if it may be tried now."""
        gate = self._gates.get(key)
        if gate is None:
            return
        while gate.may_try(now) and (uid := gate.next()) is not None:
            if self._wake(uid, key):
                break
        if gate.waiting:
            self._arm(key, now)

    def reuse(self, now: float) -> None:
        """Let another pod through each gate whose last one left without trying, or the rest would wait for ever."""
        while self._unused:
            self.release(self._unused.pop(), now)

    def advance(self, now: float) -> None:
        """Wake the pods whose time to probe has come."""
        while self._timers and self._timers[0][0] <= now:
            self.release(heapq.heappop(self._timers)[2], now)

    def wake_at(self) -> float | None:
        """Return when :meth:`advance` has something to do, in seconds since the epoch."""
        return self._timers[0][0] if self._timers else None

    def _arm(self, key: GateKey, now: float) -> None:
        gate = self._gates.get(key)
        if gate is not None and gate.arm(now):
            heapq.heappush(self._timers, (gate.probe_at, next(self._sequence), key))

    def _rebuild(self, namespace: str) -> None:
        for gate in self._gates.take_down(namespace):
            while (uid := gate.next()) is not None:
                self._wake(uid, None)
