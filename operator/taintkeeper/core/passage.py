"""The steps of pods on their way out, with everything that has to keep in step with them.

That is: the gates of their budgets, since when budgets have held them, how many leave each node at once, and the
numbers of the policies. When a step is made, and which, is decided in :mod:`taintkeeper.core.eviction_queue`.
"""

from collections.abc import Iterable
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core.acting import deletes_at
from taintkeeper.core.blocked import BlockedPods
from taintkeeper.core.budget_faults import reasons
from taintkeeper.core.budgets import Budget
from taintkeeper.core.crowds import Crowds
from taintkeeper.core.departures import Departures
from taintkeeper.core.eviction_states import State, Track
from taintkeeper.core.gatekeeper import Gatekeeper
from taintkeeper.core.gates import GateKey
from taintkeeper.core.policy_tally import PolicyTally, Standing
from taintkeeper.core.tracks import Tracks

HELD_STATES = frozenset({State.READY, State.POSTED, State.BLOCKED, State.PAUSING})
CROWD_STATES = frozenset({State.POSTED, State.LEAVING})
DONE_STATES = frozenset({State.LEAVING, State.SKIPPED})


class Passage:
    """Moves pods from state to state. What is to be told gathers in ``effects``."""

    def __init__(
        self, own: tuple[str, str] | None, random: Random, tally: PolicyTally, effects: list[m.EvictionEffect]
    ) -> None:
        self.tracks = Tracks(own)
        self.gatekeeper = Gatekeeper(random, self._unblock)
        self.blocked = BlockedPods()
        self._crowds = Crowds()
        self._departures = Departures()
        self._tally = tally
        self._effects = effects

    # Steps

    def begin(self, track: Track) -> None:
        """Take in a pod that has to leave."""
        self.tracks.add(track)
        self._keep_in_step(track)

    def enter(self, track: Track, state: State, wake_at: float | None = None) -> None:
        """Take a pod to another state, to be looked at again at ``wake_at``; raises ValueError for a forbidden step."""
        if state not in (State.POSTED, State.BLOCKED):
            self.leave_gate(track)
        if (track.state, state) == (State.POSTED, State.LEAVING):
            self._departures.ask(track.pod.node)
        self.tracks.enter(track, state, wake_at)
        self._keep_in_step(track)

    def drop(self, track: Track) -> None:
        """Forget a pod that may stay, or is gone."""
        self.leave_gate(track)
        self.tracks.drop(track)
        self.blocked.forget(track.pod.ref.uid)
        self._tally.forget(track.pod.ref.uid)
        self._departures.end(track.pod.ref.uid)
        self._line_up(self._crowds.leave(track.pod.ref.uid))

    def make_ready(self, track: Track) -> None:
        """Let a pod wait for its turn."""
        self.enter(track, State.READY)
        self.tracks.line_up(track)

    def stand(self, track: Track) -> None:
        """Note how the pod stands with the policy that decides about it."""
        standing = _standing(track)
        if standing is None:
            self._tally.forget(track.pod.ref.uid)
        else:
            self._tally.note(track.pod.ref.uid, track.deadline.decision.policy.name, standing)

    def take_vacated(self) -> list[tuple[str, int]]:
        """Return the nodes of which all pods have been asked to leave, each once, with how many are leaving still."""
        return [(node, self._crowds.leaving(node)) for node in self._departures.take_done()]

    def has_room(self, track: Track) -> bool:
        """Say whether the pod's policy lets one more pod leave its node now; if not, it gets its turn later."""
        if self._crowds.admits(track.pod.node, track.deadline.decision.policy.max_concurrent_per_node):
            return True
        self._crowds.wait(track.pod.node, track.pod.ref.uid)
        return False

    def _keep_in_step(self, track: Track) -> None:
        uid = track.pod.ref.uid
        if track.state not in HELD_STATES:
            self.blocked.forget(uid)
        self.stand(track)
        if track.state in DONE_STATES:
            self._departures.end(uid)
        else:
            self._departures.wait(uid, track.pod.node)
        if track.state in CROWD_STATES:
            self._crowds.join(track.pod.node, uid)
        else:
            self._line_up(self._crowds.leave(uid))

    def _line_up(self, uids: Iterable[str]) -> None:
        for uid in uids:
            track = self.tracks.get(uid)
            if track is not None and track.state is State.READY:
                self.tracks.line_up(track)

    # Budgets

    def pass_gate(self, track: Track, now: float) -> bool:
        """Say whether the pod may be tried against its budgets; if not, it waits at their gate."""
        key = self.gatekeeper.gate_of(track.pod)
        if track.gate not in (None, key):
            self.leave_gate(track)
        track.gate = key
        if key is None or self.gatekeeper.enter(key, now):
            return True
        self.block(track, key, now)
        if self.gatekeeper.is_closed(key, now):
            self.tell_held([track.pod.ref.uid], key, now)
        return False

    def leave_gate(self, track: Track) -> None:
        """Let others have the place of a pod that was let through its gate and does not try after all."""
        if track.state is State.READY and track.gate is not None:
            self.gatekeeper.leave(track.gate)

    def block(self, track: Track, key: GateKey, now: float) -> None:
        """Let a pod wait at the gate of its budgets."""
        self.enter(track, State.BLOCKED)
        self.gatekeeper.hold(key, self.tracks.urgency(track), track.pod.ref.uid, now)
        self.arm(track)

    def tell_held(self, uids: Iterable[str], key: GateKey, now: float) -> None:
        """Tell once of each pod that a closed gate holds; those that only wait for their turn are not held."""
        hints = self.diagnose(key)
        for uid in uids:
            track = self.tracks.get(uid)
            if track is not None and track.state is State.BLOCKED and self.blocked.note(uid, now):
                self._effects.append(m.Held(track.pod.ref, key.budgets, hints))
                self.arm(track)

    def diagnose(self, key: GateKey) -> tuple[str, ...]:
        """Return why budgets hold pods for longer than meant; tell of each that always will, once."""
        budgets = self.gatekeeper.budgets(key)
        for budget in budgets:
            if (why := self.blocked.blame(budget)) is not None:
                self._effects.append(m.BudgetMisconfigured(budget, why))
        return reasons(budgets, ready=key.ready)

    def budget_seen(self, budget: Budget, now: float) -> None:
        """Take in a budget; one that allows more than before wakes the next of its pods."""
        self.gatekeeper.budget_seen(budget, now)

    def budget_gone(self, namespace: str, name: str) -> None:
        """Forget a budget; the pods it held find out at once what holds them now."""
        self.blocked.acquit(namespace, name)
        self.gatekeeper.budget_gone(namespace, name)

    def _unblock(self, uid: str, key: GateKey | None) -> bool:
        track = self.tracks.get(uid)
        if track is None or track.state is not State.BLOCKED or key not in (None, track.gate):
            return False
        self.make_ready(track)
        return True

    # Escalation

    def arm(self, track: Track) -> None:
        """Have a pod that budgets hold looked at again when its policy has it deleted."""
        if self.blocked.since(track.pod.ref.uid) is not None:
            self.tracks.set_timer(track, self.deletes_at(track))

    def deletes_at(self, track: Track) -> float | None:
        """Return when its policy has the pod deleted, not evicted, in seconds since the epoch; None for never."""
        return deletes_at(track.deadline.ways, self.blocked.since(track.pod.ref.uid))


def _standing(track: Track) -> Standing | None:
    """Return how a pod stands with its policy, None where the policy has no part in it, or no longer."""
    if track.pod.mirror or track.pod.terminal or track.state is State.LEAVING:
        return None
    if track.deadline.decision.exempt:
        return Standing.EXEMPT
    return Standing.BLOCKED if track.state is State.BLOCKED else Standing.PENDING
