"""Which pods are marked as not ready because their node is: those that would otherwise go on being sent requests.

As ``MarkPodsNotReady`` in kubernetes/kubernetes ``pkg/controller/util/node/controller_utils.go`` has it, every pod
whose Ready condition is True gets False; only the kubelet ever sets it back. Level triggered: pods that appear later
are included, and after a restart the rest is done. Once the node is ready again nothing more is sent.
"""

import heapq
from dataclasses import dataclass, replace
from random import Random

from taintkeeper.core.disruption import Disruption, Marking
from taintkeeper.core.health_messages import HealthEffect, MarkPod, PodMarked, PodResult, PodWritten
from taintkeeper.core.objects import Node, Pod
from taintkeeper.core.pacing import WRITE_BACKOFF, Backoff, Throttle

AT_ONCE = 16
"""How many pods may be written at the same time; fewer once the API server asks to slow down."""
TURN_BACKOFF = Backoff(base=10.0, cap=300.0, jitter=0.0)
"""How long a pod is left alone that turned ready on a node that is not: its kubelet lives, and often the node is about
to be ready as well. It reports its pods every 10 s, as it does its node."""
SETTLE_SECONDS = 20.0
"""How long pods are left alone where it matters whether the rest of the zone fails too: two periods of a Lease."""


@dataclass(slots=True)
class Delay:
    """Why a pod is not written before ``until``: so many failures, or so many times it has turned ready."""

    until: float = 0.0
    failures: int = 0
    turns: int = 0


class PodReadiness:
    """All pods, by their nodes, and the writes that mark them."""

    def __init__(self, marking: Marking, random: Random) -> None:
        self._random = random
        self._disruption = Disruption(marking)
        self._settle_seconds = 0.0 if marking is Marking.ALWAYS else SETTLE_SECONDS
        self._throttle = Throttle(AT_ONCE)
        self._down: dict[str, float] = {}
        self._pods: dict[str, Pod] = {}
        self._pods_of: dict[str, dict[str, None]] = {}
        self._delays: dict[str, Delay] = {}
        self._ready: dict[str, None] = {}
        self._later: list[tuple[float, str]] = []
        self._under_way: dict[str, Pod] = {}
        self._out: list[HealthEffect] = []

    def node_seen(self, node: Node, now: float) -> None:
        """Take in the node as it is now; one whose Ready condition is missing has not been judged yet."""
        freed = self._disruption.place(node)
        condition = node.condition("Ready")
        if condition is None or condition.status == "True":
            self._node_up(node.name)
        elif node.name not in self._down:
            self._down[node.name] = now + self._settle_seconds
            self._consider_all(node.name, now)
        for name in freed:
            self._consider_all(name, now)

    def node_gone(self, name: str, now: float) -> None:
        """Forget a node that was deleted."""
        freed = self._disruption.remove(name)
        self._node_up(name)
        for other in freed:
            self._consider_all(other, now)

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Take in the pod as it is now."""
        uid = pod.ref.uid
        known = self._pods.get(uid)
        if not pod.node or (known is not None and pod.version < known.version):
            return
        self._pods[uid] = pod
        self._pods_of.setdefault(pod.node, {})[uid] = None
        if known is not None and pod.ready and not known.ready and pod.node in self._down:
            delay = self._delays.setdefault(uid, Delay())
            delay.until = now + TURN_BACKOFF.delay(delay.turns, self._random)
            delay.turns += 1
        self._consider(uid, now)

    def pod_gone(self, uid: str) -> None:
        """Forget a pod that was deleted."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._delays.pop(uid, None)
        self._ready.pop(uid, None)
        uids = self._pods_of[pod.node]
        del uids[uid]
        if not uids:
            del self._pods_of[pod.node]

    def written(self, event: PodWritten, now: float) -> None:
        """Note how a write ended; one that failed is tried again after a growing pause."""
        sent, known = self._under_way.pop(event.uid, None), self._pods.get(event.uid)
        if event.result is PodResult.THROTTLED:
            self._throttle.refused(event.retry_after, now, self._random)
        elif event.result is not PodResult.FAILED:
            self._throttle.succeeded()
        if sent is None or known is None:
            return
        if event.result is PodResult.DONE:
            self._out.append(PodMarked(sent))
            if known is sent:
                self._pods[event.uid] = replace(sent, ready=False)
        elif event.result is not PodResult.THROTTLED:
            delay = self._delays.setdefault(event.uid, Delay())
            delay.until = now + WRITE_BACKOFF.delay(delay.failures, self._random)
            delay.failures += 1
        self._consider(event.uid, now)

    def advance(self, now: float, *, fresh: bool) -> list[HealthEffect]:
        """Return what is to be done now; nothing is marked unless what we know is fresh."""
        while self._later and self._later[0][0] <= now:
            self._consider(heapq.heappop(self._later)[1], now)
        while fresh and self._ready and len(self._under_way) < self._throttle.limit and not self._paused(now):
            uid = next(iter(self._ready))
            del self._ready[uid]
            self._under_way[uid] = self._pods[uid]
            self._out.append(MarkPod(self._pods[uid], now))
        effects, self._out = self._out, []
        return effects

    def wake_at(self, now: float) -> float | None:
        """Return when a pod may be written that may not be now, in seconds since the epoch."""
        times = [self._later[0][0]] if self._later else []
        if self._ready and self._paused(now):
            times.append(self._throttle.paused_until)
        return min(times, default=None)

    @property
    def waiting(self) -> int:
        """How many pods are to be marked and are not yet."""
        return len(self._ready) + len(self._under_way)

    def _paused(self, now: float) -> bool:
        return now < self._throttle.paused_until

    def _node_up(self, name: str) -> None:
        if self._down.pop(name, None) is None:
            return
        for uid in self._pods_of.get(name, ()):
            self._ready.pop(uid, None)
            self._delays.pop(uid, None)

    def _consider_all(self, node: str, now: float) -> None:
        for uid in self._pods_of.get(node, ()):
            self._consider(uid, now)

    def _consider(self, uid: str, now: float) -> None:
        """Put a pod among those to be written, now or later, or take it from them."""
        pod = self._pods.get(uid)
        self._ready.pop(uid, None)
        if pod is None or not pod.ready or uid in self._under_way or pod.node not in self._down:
            return
        if self._disruption.spares(pod.node):
            return
        at = max(self._down[pod.node], self._delays[uid].until if uid in self._delays else 0.0)
        if at <= now:
            self._ready[uid] = None
        else:
            heapq.heappush(self._later, (at, uid))
