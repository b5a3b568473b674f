"""Controllers of kube-controller-manager that do the work of ours, still running beside us: when to speak of them.

They are noticed by what they do, since nothing in the API tells which of its controllers a kube-controller-manager
runs: by the events that they send, and by the taints that are written. Nothing that Taintkeeper does depends on them:
they are told of, never fought.
"""

import math
from dataclasses import dataclass, field

from taintkeeper.core.messages import Woke

AGAIN_SECONDS = 600.0
"""While a rival goes on, people are told of it again at most this often."""

QUIET_SECONDS = 3600.0
"""After so long without a sign a rival counts as gone: as long as the API server keeps events by default."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A controller of kube-controller-manager.

    ``name`` is its name in ``--controllers``, ``component`` the one that its events are from, ``harm`` what comes of
    two that do the same.
    """

    name: str
    component: str
    harm: str


NODE_LIFECYCLE = Rival("node-lifecycle-controller", "node-controller", "nodes are tainted and untainted by both")
"""``NewNodeLifecycleController`` in k/k ``pkg/controller/nodelifecycle/node_lifecycle_controller.go``. Its events:
RegisteredNode, RemovingNode and NodeNotReady. No controller of a cloud provider calls itself so in events."""

TAINT_EVICTION = Rival(
    "taint-eviction-controller", "taint-eviction-controller", "pods are deleted without asking their budgets"
)
"""``New`` in k/k ``pkg/controller/tainteviction/taint_eviction.go``. Its events: TaintManagerEviction, before it marks
a pod with the condition DisruptionTarget (reason DeletionByTaintManager) and deletes it, and when it cancels that."""


def rivals_of(*, nodes: bool, evictions: bool) -> tuple[Rival, ...]:
    """Return whose work is also ours: where we leave it to kube-controller-manager, it is nobody's rival.

    ``nodes`` says whether node-taint or node-health runs here, ``evictions`` whether taint-eviction does.
    """
    return (NODE_LIFECYCLE,) * nodes + (TAINT_EVICTION,) * evictions


@dataclass(frozen=True, slots=True)
class RivalSigned:
    """A rival did something; ``sign`` tells what, for people."""

    rival: Rival
    sign: str


@dataclass(frozen=True, slots=True)
class RivalActive:
    """Tell people that a rival is at work, for the first time or again."""

    rival: Rival
    sign: str


@dataclass(frozen=True, slots=True)
class RivalQuiet:
    """Tell people that a rival has given no sign for :data:`QUIET_SECONDS`."""

    rival: Rival


RivalEffect = RivalActive | RivalQuiet


@dataclass(slots=True)
class _Sighting:
    last: float
    told: float = -math.inf


@dataclass(slots=True)
class RivalEngine:
    """Turns signs of rivals into what people are told; times in seconds since the epoch."""

    _sightings: dict[Rival, _Sighting] = field(default_factory=dict)

    def handle(self, event: RivalSigned | Woke, now: float) -> list[RivalEffect]:
        """Take in one event; return what people are to be told."""
        told = self._fall_quiet(now)
        return told if isinstance(event, Woke) else told + self._note(event, now)

    def wake_at(self, now: float) -> float | None:  # noqa: ARG002 - every engine is given the time
        """Return when the first rival will count as gone unless it gives another sign."""
        return min((each.last + QUIET_SECONDS for each in self._sightings.values()), default=None)

    def _note(self, event: RivalSigned, now: float) -> list[RivalEffect]:
        sighting = self._sightings.setdefault(event.rival, _Sighting(now))
        sighting.last = now
        if now - sighting.told < AGAIN_SECONDS:
            return []
        sighting.told = now
        return [RivalActive(event.rival, event.sign)]

    def _fall_quiet(self, now: float) -> list[RivalEffect]:
        quiet = [rival for rival, each in self._sightings.items() if now - each.last >= QUIET_SECONDS]
        for rival in quiet:
            del self._sightings[rival]
        return [RivalQuiet(rival) for rival in quiet]
