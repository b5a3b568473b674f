"""All pods on their way out: in which state each is, which is next, and when the next has to be looked at again."""

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import count

from taintkeeper.core.eviction_states import State, Track
from taintkeeper.core.order import Urgency, urgency

SPARE_TIMERS = 1_000
"""How many timers may be out of date, beside as many as there are pods, before they are cleared away."""
AHEAD_SECONDS = 0.5
"""How long before the end of a countdown the pod is told of."""


class Tracks:
    """Keeps the tracks by UID, with one heap of times and one of pods that are ready; both drop what is out of date.

    Times that are :data:`AHEAD_SECONDS` away or less are in a heap of their own.
    ``own`` is namespace and name of the pod that this process runs in.
    """

    def __init__(self, own: tuple[str, str] | None) -> None:
        self.counts: Counter[State] = Counter()
        self._own = own
        self._tracks: dict[str, Track] = {}
        self._timers: list[tuple[float, int, str]] = []
        self._near: list[tuple[float, int, str]] = []
        self._ready: list[tuple[Urgency, int, str]] = []
        self._sequence = count()

    def __len__(self) -> int:
        return len(self._tracks)

    def __iter__(self) -> Iterator[Track]:
        return iter(self._tracks.values())

    def get(self, uid: str) -> Track | None:
        """Return the track of the pod with this UID, or None."""
        return self._tracks.get(uid)

    def holds(self, track: Track) -> bool:
        """Say whether this very track is among them."""
        return self._tracks.get(track.pod.ref.uid) is track

    def add(self, track: Track) -> None:
        """Take in a pod."""
        self._tracks[track.pod.ref.uid] = track
        self.counts[track.state] += 1

    def drop(self, track: Track) -> None:
        """Forget a pod."""
        del self._tracks[track.pod.ref.uid]
        self.counts[track.state] -= 1

    def enter(self, track: Track, state: State, wake_at: float | None = None) -> None:
        """Take a pod to another state, to be looked at again at ``wake_at``; raises ValueError for a forbidden step."""
        timed = (state, wake_at) == (track.state, track.wake_at)
        self.counts[track.state] -= 1
        track.enter(state, wake_at=wake_at)
        self.counts[state] += 1
        if wake_at is not None and not timed:
            self._set_timer(wake_at, track.pod.ref.uid)

    def urgency(self, track: Track) -> Urgency:
        """Return the place of a pod in the order in which pods are evicted."""
        return urgency(track.pod, track.deadline.due, own=self._own)

    def set_timer(self, track: Track, at: float | None) -> None:
        """Have a pod looked at again at this time, in whatever state it is; None for not at all."""
        if at is not None and at != track.wake_at:
            self._set_timer(at, track.pod.ref.uid)
        track.wake_at = at

    # Pods that are ready

    def line_up(self, track: Track) -> None:
        """Let a pod that is ready wait for its turn."""
        heapq.heappush(self._ready, (self.urgency(track), next(self._sequence), track.pod.ref.uid))

    def next_is_own(self) -> bool | None:
        """Say whether the next pod in line is the one that we run in; None where nobody waits."""
        return bool(self._ready[0][0][0]) if self._ready else None

    def take_next(self) -> Track | None:
        """Take the next pod out of the line; None where it is no longer ready."""
        track = self._tracks.get(heapq.heappop(self._ready)[2])
        return track if track is not None and track.state is State.READY else None

    # Pods that wait for a time

    def take_due(self, now: float) -> list[Track]:
        """Take out the pods whose time to be looked at has come."""
        self.take_near(now - AHEAD_SECONDS)
        found = []
        while self._near and self._near[0][0] <= now:
            at, _, uid = heapq.heappop(self._near)
            track = self._tracks.get(uid)
            if track is not None and track.wake_at == at:
                track.wake_at = None
                found.append(track)
        return found

    def take_near(self, now: float) -> list[Track]:
        """Return the pods that count down and are nearly through, each once."""
        found = []
        while self._timers and self._timers[0][0] <= now + AHEAD_SECONDS:
            timer = at, _, uid = heapq.heappop(self._timers)
            heapq.heappush(self._near, timer)
            track = self._tracks.get(uid)
            if track is not None and track.state is State.COUNTING and track.wake_at == at:
                found.append(track)
        return found

    def wake_at(self) -> float | None:
        """Return when either may have something to return, in seconds since the epoch."""
        times = [at for at, *_ in self._near[:1]] + [at - AHEAD_SECONDS for at, *_ in self._timers[:1]]
        return min(times, default=None)

    def _set_timer(self, at: float, uid: str) -> None:
        heapq.heappush(self._timers, (at, next(self._sequence), uid))
        if len(self._timers) > 2 * len(self._tracks) + SPARE_TIMERS:
            self._timers = [each for each in self._timers if self._is_set(each[0], each[2])]
            heapq.heapify(self._timers)

    def _is_set(self, at: float, uid: str) -> bool:
        track = self._tracks.get(uid)
        return track is not None and track.wake_at == at
