"""The queue over all pods that must leave: when each is tried, and what follows from the answer.

The states of a pod and the steps between them are in :mod:`taintkeeper.core.eviction_states`, what has to keep in step
with them in :mod:`taintkeeper.core.passage`. This module decides when each step is made; who must leave, and when, is
decided in :mod:`taintkeeper.core.deadlines`.
"""

from dataclasses import dataclass, field
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core.answers import Answer, Outcome, classify
from taintkeeper.core.budgets import Budget
from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.eviction_states import State, Track
from taintkeeper.core.live_checks import LiveChecks
from taintkeeper.core.objects import Pod
from taintkeeper.core.pace import Pace
from taintkeeper.core.passage import Passage
from taintkeeper.core.policy_tally import PolicyTally
from taintkeeper.core.settling import Settling
from taintkeeper.core.tracks import Tracks
from taintkeeper.core.zones import Rates


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

    def __init__(self, options: EvictionOptions, random: Random, tally: PolicyTally) -> None:
        self.effects: list[m.EvictionEffect] = []
        self.fresh = False
        """Whether what is known may be acted on."""
        self._options = options
        self._posted: dict[str, Track] = {}
        self._live = LiveChecks(random)
        self._pace = Pace(options.concurrency, random)
        self._tally = tally
        self._passage = Passage(options.own, random, tally, self.effects)
        dry_run = options.confirm_seconds == float("inf")
        self._settling = Settling(self._passage, self._posted, self.effects, dry_run=dry_run)

    @property
    def tracks(self) -> Tracks:
        """Every pod on its way."""
        return self._passage.tracks

    @property
    def busy(self) -> bool:
        """Whether pods are to leave now, if they may."""
        return bool(self._posted) or self._live.pending or self.tracks.next_is_own() is not None

    @property
    def limit(self) -> int:
        """How many evictions may be under way at once, as the API server's answers have it now."""
        return self._pace.limit

    def take_effects(self) -> list[m.EvictionEffect]:
        """Return what has gathered since the last call."""
        effects = list(self.effects)
        self.effects.clear()
        return effects

    def take_vacated(self) -> list[tuple[str, int]]:
        """See :meth:`taintkeeper.core.passage.Passage.take_vacated`."""
        return self._passage.take_vacated()

    def misconfigured_budgets(self) -> int:
        """Return how many disruption budgets can never allow an eviction."""
        return self._passage.gatekeeper.misconfigured()

    def oldest_terminating(self, now: float) -> float:
        """Return for how many seconds the pod has been overdue that should have been gone first; zero without any."""
        leaving = (track.pod.delete_by for track in self.tracks if track.state is State.LEAVING)
        return max(0.0, now - min((at for at in leaving if at is not None), default=now))

    def oldest_blocked(self, now: float) -> float:
        """Return for how many seconds the pod that budgets have held longest has been held; zero without any."""
        return self._passage.blocked.oldest(now)

    def wake_at(self) -> float | None:
        """Return when :meth:`advance` has something to do, in seconds since the epoch."""
        times = [self.tracks.wake_at(), self._passage.gatekeeper.wake_at()]
        if self.fresh and (read_at := self._live.wake_at()) is not None:
            times.append(max(read_at, self._pace.paused_until))
        if self._may_post():
            times.append(self._pace.paused_until)
        return min((time for time in times if time is not None), default=None)

    # Who must leave

    def want(self, pod: Pod, deadline: Deadline, now: float) -> None:
        """Note that the pod must leave by this deadline, which may differ from an earlier one in both directions."""
        self._settling.want(pod, deadline, now)

    def unwant(self, pod: Pod) -> None:
        """Note that the pod may stay; a countdown that ran, or evictions tried in vain, end with one effect."""
        self._settling.unwant(pod)

    def gone(self, uid: str) -> None:
        """Note that the pod was deleted; an answer that is still to come is counted when it comes."""
        self._settling.gone(uid)

    def budget_seen(self, budget: Budget, now: float) -> None:
        """Take in a budget; one that allows more than before wakes the next of its pods."""
        self._passage.budget_seen(budget, now)

    def budget_gone(self, namespace: str, name: str) -> None:
        """Forget a budget; the pods it held find out at once what holds them now."""
        self._passage.budget_gone(namespace, name)

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
            self._settling.resume(track, now)
        gatekeeper = self._passage.gatekeeper
        gatekeeper.advance(now)
        gatekeeper.reuse(now)
        while self._may_post() and now >= self._pace.paused_until:
            if (candidate := self.tracks.take_next()) is not None:
                self._try(candidate, now)
            gatekeeper.reuse(now)
        near = self.tracks.take_near(now)
        if self.fresh:
            for track in near:
                self._live.expect(track.pod.node, track.deadline.due)
        if self.fresh and now >= self._pace.paused_until:
            self.effects.extend(m.ReadNode(name) for name in self._live.requests(now))

    def _may_post(self) -> bool:
        """Say whether, but for a pause, the next pod may be tried; our own waits until nothing else is under way."""
        next_is_own = self.tracks.next_is_own()
        if not self.fresh or next_is_own is None or len(self._posted) >= self._pace.limit:
            return False
        return not (next_is_own and (self._posted or self._live.pending))

    def _try(self, track: Track, now: float) -> None:
        """Let a pod leave whose time has come, unless its node has to be read first or something holds it."""
        if not self._live.holds(track.pod.node, now):
            self._live.wait(track.pod.node, track.pod.ref.uid)
        elif track.deadline.decision.policy.dry_run:
            self._rehearse(track)
        elif not self._passage.has_room(track):
            return
        elif (at := self._passage.deletes_at(track)) is not None and at <= now:
            self._delete(track)
        elif self._passage.pass_gate(track, now):
            self._evict(track)

    def _rehearse(self, track: Track) -> None:
        track.rehearsed = True
        self.effects.append(m.Rehearsed(track.pod.ref, track.pod.node, track.deadline))
        self._passage.enter(track, State.SKIPPED)

    def _evict(self, track: Track) -> None:
        track.deleting = False
        self._post(track, m.Evict(track.pod.ref, track.deadline, track.deadline.decision.policy.grace_seconds))

    def _delete(self, track: Track) -> None:
        """Delete a pod: no budget is asked, so none is to hear of it. Never at once, which would be a force delete."""
        self._passage.leave_gate(track)
        track.gate, track.deleting = None, True
        grace = track.deadline.decision.policy.grace_seconds
        if grace is None and track.pod.grace == 0:
            grace = 1
        self._post(track, m.Delete(track.pod.ref, track.deadline, grace))

    def _post(self, track: Track, effect: m.Evict | m.Delete) -> None:
        self._passage.enter(track, State.POSTED)
        self._posted[track.pod.ref.uid] = track
        self.effects.append(effect)

    # Answers

    def answered(self, uid: str, answer: Answer, now: float) -> None:
        """Take in the answer to an eviction or a deletion; each gets exactly one.

        An answer about a pod that was deleted meanwhile still counts for the pace, the gate and the report.
        """
        track = self._posted.pop(uid)
        outcome = classify(answer, budgets=len(track.gate.budgets) if track.gate else 0)
        self._pace.note(outcome, answer, now)
        if track.gate is not None:
            self._passage.gatekeeper.answered(track.gate, outcome, now)
        if outcome is Outcome.ACCEPTED:
            self._report(track, answer, now)
        if outcome is Outcome.GONE:
            self.effects.append(m.FoundGone(track.pod.ref, answer))
        if outcome in (Outcome.ACCEPTED, Outcome.GONE):
            self._let_leave(track, now)
        else:
            self._refused(track, outcome, answer, now)
        if track.gate is not None:
            self._passage.gatekeeper.release(track.gate, now)

    def _report(self, track: Track, answer: Answer, now: float) -> None:
        since = self._passage.blocked.since(track.pod.ref.uid) if track.deleting else None
        report = m.Evicted(
            track.pod.ref,
            track.pod.node,
            track.deadline,
            lateness=max(0.0, now - track.deadline.due),
            status=answer.status,
            deleted=track.deleting,
            blocked_seconds=None if since is None else now - since,
        )
        self._tally.evicted(track.deadline.decision.policy.name)
        self.effects.append(report)

    def _let_leave(self, track: Track, now: float) -> None:
        if self.tracks.holds(track):
            at = None if track.pod.deleting else now + self._options.confirm_seconds
            self._passage.enter(track, State.LEAVING, at)

    def _refused(self, track: Track, outcome: Outcome, answer: Answer, now: float) -> None:
        pause = self._pause_after(track, outcome, now)
        budgets = track.gate.budgets if track.gate else ()
        hints = self._passage.diagnose(track.gate) if track.gate and outcome is Outcome.BUDGET else ()
        self.effects.append(m.EvictionFailed(track.pod.ref, outcome, answer, budgets, pause, hints))
        if not self.tracks.holds(track):
            return
        if outcome is Outcome.THROTTLED:
            self._passage.make_ready(track)
        elif outcome is Outcome.BUDGET and track.gate is not None:
            self._passage.blocked.note(track.pod.ref.uid, now)
            self._passage.block(track, track.gate, now)
            self._passage.tell_held(self._passage.gatekeeper.waiting(track.gate), track.gate, now)
        else:
            self._pause(track, outcome, now, pause)
        self._settling.look_again(track, now)

    def _pause_after(self, track: Track, outcome: Outcome, now: float) -> float:
        if outcome is Outcome.BUDGET and track.gate is not None:
            pause = self._passage.gatekeeper.pause(track.gate, now)
            if pause is not None:
                return pause
        return self._pace.pause(outcome, track.failures, now)

    def _pause(self, track: Track, outcome: Outcome, now: float, seconds: float) -> None:
        track.failures += 1
        self._passage.enter(track, State.PAUSING)
        if outcome in (Outcome.BUDGET, Outcome.SEVERAL_BUDGETS):
            self._passage.blocked.note(track.pod.ref.uid, now)
        held = self._passage.blocked.since(track.pod.ref.uid) is not None and not track.deleting
        at = self._passage.deletes_at(track) if held else None
        self.tracks.set_timer(track, now + seconds if at is None else min(at, now + seconds))
