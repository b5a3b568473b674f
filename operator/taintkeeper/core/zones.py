"""What part of a zone has failed, and how fast its nodes may then be tainted NoExecute.

The states are those of ``ComputeZoneState`` in kubernetes/kubernetes
``pkg/controller/nodelifecycle/node_lifecycle_controller.go``: when much of a zone fails at once, it is rather the
network, or we ourselves, that fail, and moving the pods away makes things worse.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
EXCLUDE_LABEL = "node.kubernetes.io/exclude-disruption"

WHOLE_TOKEN = 1.0 - 1e-5
"""From where on a token counts as earned: times since the epoch are exact to 2e-7 s, and nobody must wake twice."""


class ZoneState(StrEnum):
    """How much of a zone has failed; the values are metric labels and appear in events."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"

    def milder_than(self, other: "ZoneState") -> bool:
        """Say whether less of a zone has failed in this state than in the other."""
        order = tuple(ZoneState)
        return order.index(self) < order.index(other)


@dataclass(frozen=True, slots=True)
class Rates:
    """How many nodes per second may be tainted NoExecute in one zone, by its state and size.

    ``cooldown_seconds`` is how long a zone that got better keeps the lower rate: when a storm is over for one node, it
    is often not over for the others.
    """

    normal: float = 0.1
    secondary: float = 0.01
    full: float = 0.1
    unhealthy_threshold: float = 0.55
    large_cluster_size: int = 50
    cooldown_seconds: float = 60.0

    def of(self, state: ZoneState, size: int) -> float:
        """Return the rate, in nodes per second, of a zone with ``size`` nodes that count."""
        match state:
            case ZoneState.NORMAL:
                return self.normal
            case ZoneState.PARTIAL:
                return self.secondary if size > self.large_cluster_size else 0.0
            case ZoneState.FULL:
                return self.full


def zone_key(labels: Mapping[str, str]) -> str:
    """Return ``region/zone`` of a node, or "" where it has neither; the beta labels win (``GetZoneKey``)."""
    region, zone = _first(labels, REGION_LABELS), _first(labels, ZONE_LABELS)
    return f"{region}/{zone}" if region or zone else ""


def zone_state(*, ready: int, not_ready: int, unhealthy_threshold: float) -> ZoneState:
    """Return the state of a zone with so many nodes ready and not ready."""
    if ready == 0 and not_ready > 0:
        return ZoneState.FULL
    if not_ready > 2 and not_ready / (not_ready + ready) >= unhealthy_threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


class TokenBucket:
    """Lets one node through at a time, ``rate`` of them a second on average, with a burst of one."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._tokens = 1.0
        self._counted_at = now

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._fill(now)
        if self.rate <= 0.0 or self._tokens < WHOLE_TOKEN:
            return False
        self._tokens -= 1.0
        return True

    def next_at(self, now: float) -> float:
        """Return when the next token is there, in seconds since the epoch; infinity while the rate is zero."""
        self._fill(now)
        if self.rate <= 0.0:
            return math.inf
        return now + max(0.0, 1.0 - self._tokens) / self.rate

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at another rate from now; what has been saved up stays."""
        self._fill(now)
        self.rate = rate

    def _fill(self, now: float) -> None:
        earned = max(0.0, now - self._counted_at) * max(0.0, self.rate)
        self._tokens = min(1.0, self._tokens + earned)
        self._counted_at = max(now, self._counted_at)


class ZoneQueue:
    """The nodes of a zone that wait for NoExecute, in order of arrival, each served once.

    A node that got its token keeps it until it is removed, so that a write that fails costs no second token
    (kubernetes/kubernetes ``pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go``).
    """

    def __init__(self, rate: float, now: float) -> None:
        self.bucket = TokenBucket(rate, now)
        self._waiting: dict[str, None] = {}
        self._granted: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def granted(self, name: str) -> bool:
        """Say whether the node has got its token."""
        return name in self._granted

    def add(self, name: str) -> None:
        """Let a node wait at the end, unless it waits already or has been served."""
        if name not in self._granted:
            self._waiting.setdefault(name)

    def remove(self, name: str) -> None:
        """Take a node out, whether it waits or was served."""
        self._waiting.pop(name, None)
        self._granted.discard(name)

    def take(self, now: float) -> str | None:
        """Return the next node if there is a token for it."""
        if not self._waiting or not self.bucket.take(now):
            return None
        name = next(iter(self._waiting))
        del self._waiting[name]
        self._granted.add(name)
        return name

    def next_at(self, now: float) -> float:
        """Return when :meth:`take` will yield a node, in seconds since the epoch; infinity while it cannot."""
        return self.bucket.next_at(now) if self._waiting else math.inf


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
