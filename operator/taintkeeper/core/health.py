"""Signs of life: what is seen of one node, since when we can see at all, and when silence is long enough.

A node lives while its kubelet renews its Lease or reports its Ready condition anew
(kubernetes/kubernetes ``pkg/controller/nodelifecycle/node_lifecycle_controller.go``, ``tryUpdateNodeHealth``). What
counts is that something changed, in whatever direction, and when we saw it by our own clock: the clocks of nodes are
never compared with ours. Silence counts only while we are listening.
"""

from dataclasses import dataclass

from taintkeeper.core.objects import Node

UNKNOWN = "Unknown"
JUDGED_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""What only the kubelet can know. NetworkUnavailable is not among them: it is managed by the control plane."""

STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER_POSTED = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")

TICK_SECONDS = 1.0
LONGEST_BLINK_SECONDS = 5.0
SHORTEST_BLINK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a node may be silent, in seconds: in general, and from its creation if it has never reported."""

    grace: float = 50.0
    startup: float = 60.0

    @property
    def blink(self) -> float:
        """How long we may see nothing without it counting as blindness, in seconds.

        What happened meanwhile is seen as soon as a watch goes on from where it was. Without this, a connection that
        breaks every half minute would have nobody ever declared Unknown.
        """
        return min(LONGEST_BLINK_SECONDS, max(SHORTEST_BLINK_SECONDS, self.grace / 10.0))


@dataclass(frozen=True, slots=True)
class Lease:
    """A node's Lease: ``renewed`` is its ``renewTime`` as it is spelt, of which only changes matter."""

    node: str
    renewed: str


class Sight:
    """Since when, by our own clock, we have been able to see what nodes do."""

    def __init__(self, patience: Patience) -> None:
        self.fresh = False
        """Whether everything is listed and watched."""
        self.since = float("-inf")
        """From when on silence counts, in seconds since the epoch."""
        self._blink = patience.blink
        self._lost_at: float | None = None
        self._tick_at: float | None = None

    def know(self, fresh: bool, now: float) -> None:
        """Note that what is seen can be relied on from now, or no longer."""
        if fresh is self.fresh:
            return
        self.fresh = fresh
        if not fresh:
            self._lost_at = now
        elif self._lost_at is None or now - self._lost_at > self._blink:
            self.since = now

    def lost(self, now: float) -> None:
        """Note that the API server could not tell us what we asked for: nodes may not have reached it either."""
        self.since = now

    def pass_time(self, now: float) -> None:
        """Note the time; a tick that comes late shows that we were stopped and have missed what happened."""
        if self._tick_at is not None and now > self._tick_at + self._blink:
            self.since = now
        if self._tick_at is None or now >= self._tick_at:
            self._tick_at = now + TICK_SECONDS

    @property
    def tick_at(self) -> float | None:
        """When :meth:`pass_time` has to be called next, in seconds since the epoch; None before the first time."""
        return self._tick_at


@dataclass(slots=True)
class Vitals:
    """What is known of the signs of life of one node: since when we know it, and the last change that we saw.

    ``renewed`` is the ``renewTime`` of its Lease, None while there is none.
    """

    node: Node
    seen_at: float
    renewed: str | None = None
    sign_at: float | None = None

    def look(self, node: Node, now: float) -> None:
        """Take in the node as it is now."""
        if spoke(self.node, node):
            self.sign_at = now
        self.node = node

    def hear(self, renewed: str, now: float) -> bool:
        """Take in the node's Lease; return whether it was renewed."""
        if renewed == self.renewed:
            return False
        self.renewed, self.sign_at = renewed, now
        return True

    def due(self, patience: Patience, sight: Sight) -> float:
        """Return when the node has been silent for too long, in seconds since the epoch.

        A node that never reported has its start-up grace period from its creation or the last renewal of its Lease.
        No node is given less than the grace period from when we began to see, it or anything.
        """
        earliest = max(self.seen_at, sight.since) + patience.grace
        if self.node.condition("Ready") is None:
            begun = min(self.node.created, self.seen_at) if self.sign_at is None else self.sign_at
            return max(begun + patience.startup, earliest)
        return earliest if self.sign_at is None else max(self.sign_at + patience.grace, earliest)


@dataclass(frozen=True, slots=True)
class UnknownCondition:
    """A condition as it is to become; times in seconds since the epoch, ``heartbeat`` None where it is to stay."""

    type: str
    reason: str
    message: str
    heartbeat: float | None
    transition: float


def spoke(before: Node, after: Node) -> bool:
    """Say whether the kubelet has reported between two states of a node.

    It did if the Ready condition has another heartbeat or appeared or vanished, or has another status than Unknown:
    that one is written when the kubelet is silent.
    """
    old, new = before.condition("Ready"), after.condition("Ready")
    if old is None or new is None:
        return new is not old and (new is None or new.reason != NEVER_POSTED[0])
    return new.heartbeat != old.heartbeat or new.status not in (old.status, UNKNOWN)


def declaration(node: Node, now: float) -> tuple[UnknownCondition, ...]:
    """Return the conditions that change when the node is declared Unknown; none where they are Unknown already."""
    found = []
    for type_ in JUDGED_CONDITIONS:
        condition = node.condition(type_)
        if condition is None:
            found.append(UnknownCondition(type_, *NEVER_POSTED, node.created, now))
        elif condition.status != UNKNOWN:
            found.append(UnknownCondition(type_, *STOPPED, None, now))
    return tuple(found)
