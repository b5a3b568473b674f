"""The queue over all pods that must leave: when each is tried, and what follows from the answer.

The states of a pod and the steps between them are in :mod:`taintkeeper.core.eviction_states`. This module decides when
each step is made; who must leave, and when, is decided in :mod:`taintkeeper.core.deadlines`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core.answers import Answer, Outcome, classify
from taintkeeper.core.blocked import BlockedPods
from taintkeeper.core.budget_faults import reasons
from taintkeeper.core.budgets import Budget
from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.eviction_states import State, Track
from taintkeeper.core.gatekeeper import Gatekeeper
from taintkeeper.core.gates import GateKey
from taintkeeper.core.live_checks import LiveChecks
from taintkeeper.core.objects import Pod
from taintkeeper.core.pace import Pace
from taintkeeper.core.tracks import Tracks
from taintkeeper.core.zones import Rates

HELD_STATES = frozenset({State.READY, State.POSTED, State.BLOCKED, State.PAUSING})


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """What whoever runs the engine may choose.

    ``concurrency`` is how many evictions may be under way at once. ``confirm_seconds`` is how long after the server
    called a pod evicted or gone it is tried again, should it still be seen alive and not terminating: infinity in a
    dry run, where the server did nothing. ``own`` is namespace and name of the pod that this process runs in.
    ``rates`` tell when a zone stands still.
    """

    concurrency: int = 16
    confirm_seconds: float = 60.0
    own: tuple[str, str] | None = None
    rates: Rates = field(default_factory=Rates)


class EvictionQueue:
    """Brings every pod that must leave from its countdown to its end. Effects gather in ``effects``."""

    def __init__(self, options: EvictionOptions, random: Random) -> None:
        self.effects: list[m.EvictionEffect] = []
        self.fresh = False
        """Whether what is known may be acted on."""
        self.tracks = Tracks(options.own)
        """Every pod on its way."""
        self._options = options
        self._posted: dict[str, Track] = {}
        self._blocked = BlockedPods()
        self._gatekeeper = Gatekeeper(random, self._unblock)
        self._live = LiveChecks(random)
        self._pace = Pace(options.concurrency, random)

    @property
    def limit(self) -> int:
        """How many evictions may be under way at once, as the API server's answers have it now."""
        return self._pace.limit

    def misconfigured_budgets(self) -> int:
        """Return how many disruption budgets can never allow an eviction."""
        return self._gatekeeper.misconfigured()

    def oldest_blocked(self, now: float) -> float:
        """Return for how many seconds the pod that budgets have held longest has been held; zero without any."""
        return self._blocked.oldest(now)

    def wake_at(self) -> float | None:
        """Return when :meth:`advance` has something to do, in seconds since the epoch."""
        times = [] if (due_at := self.tracks.wake_at()) is None else [due_at]
        if (probe_at := self._gatekeeper.wake_at()) is not None:
            times.append(probe_at)
        if self.fresh and (read_at := self._live.wake_at()) is not None:
            times.append(max(read_at, self._pace.paused_until))
        if self._may_post():
            times.append(self._pace.paused_until)
        return min(times, default=None)

    # Who must leave

    def want(self, pod: Pod, deadline: Deadline, now: float) -> None:
        """Note that the pod must leave by this deadline, which may differ from an earlier one in both directions."""
        track = self.tracks.get(pod.ref.uid)
        if track is None:
            # A list from a server that lags behind may show a pod again whose eviction is still under way.
            track = self._posted.get(pod.ref.uid) or Track(pod, deadline)
            self.tracks.add(track)
        track.pod, track.deadline, track.wanted = pod, deadline, True
        if pod.deleting:
            self._see_terminating(track)
        elif track.state not in (State.POSTED, State.LEAVING):
            self._settle(track, now)

    def unwant(self, pod: Pod) -> None:
        """Note that the pod may stay; a countdown that ran, or evictions tried in vain, end with one effect."""
        track = self.tracks.get(pod.ref.uid)
        if track is None:
            return
        track.pod, track.wanted = pod, False
        if track.state is State.POSTED or (track.state is State.LEAVING and not self._imagined(track)):
            return
        if track.state is not State.SKIPPED:
            self.effects.append(m.Cancelled(pod.ref, track.deadline))
        self._drop(track)

    def gone(self, uid: str) -> None:
        """Note that the pod was deleted; an answer that is still to come is counted when it comes."""
        if track := self.tracks.get(uid):
            self._drop(track)

    def _settle(self, track: Track, now: float) -> None:
        if reason := _exempt(track.pod):
            if track.state is not State.SKIPPED:
                self.effects.append(m.Skipped(track.pod.ref, reason))
                self._enter(track, State.SKIPPED)
        elif track.deadline.paused:
            if track.state is not State.STANDING:
                self.effects.append(m.Paused(track.pod.ref, track.pod.node, track.deadline))
                self._enter(track, State.STANDING)
        elif track.state in (State.COUNTING, State.STANDING, State.SKIPPED) or track.deadline.due > now:
            self._enter(track, State.COUNTING, track.deadline.due)
        elif track.state is State.BLOCKED and track.gate != self._gatekeeper.gate_of(track.pod):
            self._make_ready(track)

    def _see_terminating(self, track: Track) -> None:
        if track.state is State.POSTED:
            return
        if track.state is not State.LEAVING:
            self.effects.append(m.Skipped(track.pod.ref, "terminating"))
            self._enter(track, State.LEAVING)
        track.wake_at = None

    def budget_seen(self, budget: Budget, now: float) -> None:
        """Take in a budget; one that allows more than before wakes the next of its pods."""
        self._gatekeeper.budget_seen(budget, now)

    def budget_gone(self, namespace: str, name: str) -> None:
        """Forget a budget; the pods it held find out at once what holds them now."""
        self._blocked.acquit(namespace, name)
        self._gatekeeper.budget_gone(namespace, name)

    def _unblock(self, uid: str, key: GateKey | None) -> bool:
        track = self.tracks.get(uid)
        if track is None or track.state is not State.BLOCKED or key not in (None, track.gate):
            return False
        self._make_ready(track)
        return True

    # What is known

    def knowledge(self, *, fresh: bool) -> None:
        """Note whether what is known may be acted on; what was read before we lost touch counts no longer."""
        self.fresh = fresh
        if not fresh:
            self._live.forget()

    def read(self, node: str, now: float) -> None:
        """Note that a node and its pods have been read, after what was found there was taken in."""
        for uid in self._live.read(node, now):
            track = self.tracks.get(uid)
            if track is not None and track.state is State.READY:
                self.tracks.line_up(track)

    def unread(self, node: str, now: float) -> None:
        """Note that a node could not be read; its pods wait."""
        self._live.failed(node, now)

    # Time passing

    def advance(self, now: float) -> None:
        """Do what has come due, then hand out evictions as far as the limits allow."""
        for track in self.tracks.take_due(now):
            self._resume(track, now)
        self._gatekeeper.advance(now)
        self._gatekeeper.reuse(now)
        while self._may_post() and now >= self._pace.paused_until:
            if (candidate := self.tracks.take_next()) is not None:
                self._try(candidate, now)
            self._gatekeeper.reuse(now)
        if self.fresh and now >= self._pace.paused_until:
            self.effects.extend(m.ReadNode(name) for name in self._live.requests(now))

    def _try(self, track: Track, now: float) -> None:
        """Evict a pod whose time has come, unless its node has to be read first or a budget holds it."""
        if not self._live.holds(track.pod.node, now):
            self._live.wait(track.pod.node, track.pod.ref.uid)
        elif self._pass_gate(track, now):
            self._post(track)

    def _resume(self, track: Track, now: float) -> None:
        """Go on with a pod whose countdown or pause is over, or that was called evicted but is still seen alive."""
        if track.wanted:
            self._make_ready(track)
            self._settle(track, now)
        else:
            self._drop(track)

    def _may_post(self) -> bool:
        """Say whether, but for a pause, the next pod may be tried; our own waits until nothing else is under way."""
        next_is_own = self.tracks.next_is_own()
        if not self.fresh or next_is_own is None or len(self._posted) >= self._pace.limit:
            return False
        return not (next_is_own and (self._posted or self._live.pending))

    def _pass_gate(self, track: Track, now: float) -> bool:
        key = self._gatekeeper.gate_of(track.pod)
        if track.gate not in (None, key):
            self._leave_gate(track)
        track.gate = key
        if key is None or self._gatekeeper.enter(key, now):
            return True
        self._block(track, key, now)
        if self._gatekeeper.is_closed(key, now):
            self._tell_held([track.pod.ref.uid], key, now)
        return False

    def _tell_held(self, uids: Iterable[str], key: GateKey, now: float) -> None:
        """Tell once of each pod that a closed gate holds; those that only wait for their turn are not held."""
        hints = self._diagnose(key)
        for uid in uids:
            track = self.tracks.get(uid)
            if track is not None and track.state is State.BLOCKED and self._blocked.note(uid, now):
                self.effects.append(m.Held(track.pod.ref, key.budgets, hints))

    def _diagnose(self, key: GateKey) -> tuple[str, ...]:
        """Return why budgets hold pods for longer than meant; tell of each that always will, once."""
        budgets = self._gatekeeper.budgets(key)
        for budget in budgets:
            if (why := self._blocked.blame(budget)) is not None:
                self.effects.append(m.BudgetMisconfigured(budget, why))
        return reasons(budgets, ready=key.ready)

    def _post(self, track: Track) -> None:
        self._enter(track, State.POSTED)
        self._posted[track.pod.ref.uid] = track
        self.effects.append(m.Evict(track.pod.ref, track.deadline))

    # Answers

    def answered(self, uid: str, answer: Answer, now: float) -> None:
        """Take in the answer to an :class:`~taintkeeper.core.messages.Evict`; each gets exactly one.

        An answer about a pod that was deleted meanwhile still counts for the pace, the gate and the report.
        """
        track = self._posted.pop(uid)
        outcome = classify(answer, budgets=len(track.gate.budgets) if track.gate else 0)
        self._pace.note(outcome, answer, now)
        if track.gate is not None:
            self._gatekeeper.answered(track.gate, outcome, now)
        if outcome is Outcome.ACCEPTED:
            lateness = max(0.0, now - track.deadline.due)
            self.effects.append(m.Evicted(track.pod.ref, track.pod.node, track.deadline, lateness, answer.status))
        if outcome is Outcome.GONE:
            self.effects.append(m.FoundGone(track.pod.ref, answer))
        if outcome in (Outcome.ACCEPTED, Outcome.GONE):
            self._let_leave(track, now)
        else:
            self._refused(track, outcome, answer, now)
        if track.gate is not None:
            self._gatekeeper.release(track.gate, now)

    def _let_leave(self, track: Track, now: float) -> None:
        if self.tracks.holds(track):
            at = None if track.pod.deleting else now + self._options.confirm_seconds
            self._enter(track, State.LEAVING, at)

    def _refused(self, track: Track, outcome: Outcome, answer: Answer, now: float) -> None:
        pause = self._pause_after(track, outcome, now)
        budgets = track.gate.budgets if track.gate else ()
        hints = self._diagnose(track.gate) if track.gate and outcome is Outcome.BUDGET else ()
        self.effects.append(m.EvictionFailed(track.pod.ref, outcome, answer, budgets, pause, hints))
        if not self.tracks.holds(track):
            return
        if outcome is Outcome.THROTTLED:
            self._make_ready(track)
        elif outcome is Outcome.BUDGET and track.gate is not None:
            self._blocked.note(track.pod.ref.uid, now)
            self._block(track, track.gate, now)
            self._tell_held(self._gatekeeper.waiting(track.gate), track.gate, now)
        else:
            track.failures += 1
            self._enter(track, State.PAUSING, now + pause)
        self._look_again(track, now)

    def _pause_after(self, track: Track, outcome: Outcome, now: float) -> float:
        if outcome is Outcome.BUDGET and track.gate and (pause := self._gatekeeper.pause(track.gate, now)) is not None:
            return pause
        return self._pace.pause(outcome, track.failures, now)

    def _look_again(self, track: Track, now: float) -> None:
        """Catch up on what happened to the pod while its eviction was under way."""
        if not track.wanted:
            self.unwant(track.pod)
        elif track.pod.deleting:
            self._see_terminating(track)
        else:
            self._settle(track, now)

    # Steps

    def _imagined(self, track: Track) -> bool:
        """Say whether a pod counts as evicted in a dry run only: it goes on living, and may be judged again."""
        return self._options.confirm_seconds == float("inf") and not track.pod.deleting

    def _make_ready(self, track: Track) -> None:
        self._enter(track, State.READY)
        self.tracks.line_up(track)

    def _block(self, track: Track, key: GateKey, now: float) -> None:
        self._enter(track, State.BLOCKED)
        self._gatekeeper.hold(key, self.tracks.urgency(track), track.pod.ref.uid, now)

    def _leave_gate(self, track: Track) -> None:
        if track.state is State.READY and track.gate is not None:
            self._gatekeeper.leave(track.gate)

    def _enter(self, track: Track, state: State, wake_at: float | None = None) -> None:
        if state not in (State.POSTED, State.BLOCKED):
            self._leave_gate(track)
        self.tracks.enter(track, state, wake_at)
        if state not in HELD_STATES:
            self._blocked.forget(track.pod.ref.uid)

    def _drop(self, track: Track) -> None:
        self._leave_gate(track)
        self.tracks.drop(track)
        self._blocked.forget(track.pod.ref.uid)


def _exempt(pod: Pod) -> str | None:
    """Return why a pod is never evicted, whatever the taints, or None."""
    if pod.mirror:
        return "mirror"
    return "terminal" if pod.terminal else None
