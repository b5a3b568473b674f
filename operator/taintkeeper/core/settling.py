"""What becomes of a pod as it is seen: whether it has to leave still, and what its next step waits for.

When a pod is tried, and what follows from the answer, is decided in :mod:`taintkeeper.core.eviction_queue`.
"""

from collections.abc import Mapping

from taintkeeper.core import messages as m
from taintkeeper.core.deadlines import Deadline
from taintkeeper.core.eviction_states import State, Track
from taintkeeper.core.objects import Pod
from taintkeeper.core.passage import Passage

STUCK_SECONDS = 300.0
"""How long after its grace period a pod that is still there is told of: its node has had time to come back."""


class Settling:
    """Brings every pod to the state that it belongs in. What is to be told gathers in ``effects``.

    ``posted`` are the pods whose evictions are under way: they keep their state until the answer is there.
    """

    def __init__(
        self, passage: Passage, posted: Mapping[str, Track], effects: list[m.EvictionEffect], *, dry_run: bool
    ) -> None:
        self._passage = passage
        self._tracks = passage.tracks
        self._posted = posted
        self._effects = effects
        self._dry_run = dry_run

    def want(self, pod: Pod, deadline: Deadline, now: float) -> None:
        """Note that the pod must leave by this deadline, which may differ from an earlier one in both directions."""
        track = self._tracks.get(pod.ref.uid)
        before = deadline if track is None else track.deadline
        if track is None:
            # A list from a server that lags behind may show a pod again whose eviction is still under way.
            track = self._posted.get(pod.ref.uid) or Track(pod, deadline)
            self._passage.begin(track)
        track.pod, track.deadline, track.wanted = pod, deadline, True
        track.rehearsed = track.rehearsed and (deadline.taint, deadline.due) == (before.taint, before.due)
        self._passage.stand(track)
        if pod.deleting:
            self._see_terminating(track, now)
        elif track.state not in (State.POSTED, State.LEAVING):
            self._settle(track, now)
            if deadline.decision != before.decision:
                self._try_anew(track)

    def unwant(self, pod: Pod) -> None:
        """Note that the pod may stay; a countdown that ran, or evictions tried in vain, end with one effect."""
        track = self._tracks.get(pod.ref.uid)
        if track is None:
            return
        track.pod, track.wanted = pod, False
        if track.state is State.POSTED or (track.state is State.LEAVING and not self._imagined(track)):
            return
        if track.state is not State.SKIPPED:
            self._effects.append(m.Cancelled(pod.ref, track.deadline))
        self._passage.drop(track)

    def gone(self, uid: str) -> None:
        """Note that the pod was deleted; an answer that is still to come is counted when it comes."""
        if track := self._tracks.get(uid):
            self._passage.drop(track)

    def _settle(self, track: Track, now: float) -> None:
        if reason := _exempt(track):
            if track.state is not State.SKIPPED:
                self._cancel_exempt(track)
                self._effects.append(m.Skipped(track.pod.ref, reason, track.deadline))
                self._passage.enter(track, State.SKIPPED)
        elif track.deadline.paused:
            if track.state is not State.STANDING:
                self._effects.append(m.Paused(track.pod.ref, track.pod.node, track.deadline))
                self._passage.enter(track, State.STANDING)
        elif track.state in (State.COUNTING, State.STANDING, State.SKIPPED) or track.deadline.due > now:
            self._passage.enter(track, State.COUNTING, track.deadline.due)
        elif track.state is State.BLOCKED:
            self._settle_blocked(track)

    def _cancel_exempt(self, track: Track) -> None:
        """Tell that a countdown, or an eviction tried in vain, ends since the pod has become exempt."""
        ran = track.state is not State.COUNTING or track.wake_at is not None
        if ran and track.deadline.decision.exempt:
            self._effects.append(m.Cancelled(track.pod.ref, track.deadline))

    def _settle_blocked(self, track: Track) -> None:
        if track.gate != self._passage.gatekeeper.gate_of(track.pod):
            self._passage.make_ready(track)
        else:
            self._passage.arm(track)

    def _try_anew(self, track: Track) -> None:
        """Have a pod that waits tried at once, by another policy than before."""
        if track.state in (State.BLOCKED, State.PAUSING):
            self._passage.make_ready(track)
        elif track.state is State.READY:
            self._tracks.line_up(track)

    def _see_terminating(self, track: Track, now: float) -> None:
        if track.state is State.POSTED:
            return
        if track.state is not State.LEAVING:
            self._effects.append(m.Skipped(track.pod.ref, "terminating", track.deadline))
            self._passage.enter(track, State.LEAVING)
        gone_by = now if track.pod.delete_by is None else track.pod.delete_by
        self._tracks.set_timer(track, None if track.stuck else gone_by + STUCK_SECONDS)

    def resume(self, track: Track, now: float) -> None:
        """Go on with a pod whose countdown or pause is over, or that was called evicted but is still seen alive."""
        if track.state is State.LEAVING and track.pod.deleting:
            track.stuck = True
            gone_by = now - STUCK_SECONDS if track.pod.delete_by is None else track.pod.delete_by
            self._effects.append(m.Stuck(track.pod.ref, track.pod.node, now - gone_by))
        elif track.wanted:
            self._passage.make_ready(track)
            self._settle(track, now)
        else:
            self._passage.drop(track)

    def look_again(self, track: Track, now: float) -> None:
        """Catch up on what happened to the pod while its eviction was under way."""
        if not track.wanted:
            self.unwant(track.pod)
        elif track.pod.deleting:
            self._see_terminating(track, now)
        else:
            self._settle(track, now)

    def _imagined(self, track: Track) -> bool:
        """Say whether a pod counts as evicted in a dry run only: it goes on living, and may be judged again."""
        return self._dry_run and not track.pod.deleting


def _exempt(track: Track) -> str | None:
    """Return why a pod is not evicted though a taint asks for it, or None."""
    if track.pod.mirror:
        return "mirror"
    if track.pod.terminal:
        return "terminal"
    if track.deadline.decision.exempt:
        return track.deadline.decision.exempt
    return "dry-run" if track.rehearsed and track.deadline.decision.policy.dry_run else None
