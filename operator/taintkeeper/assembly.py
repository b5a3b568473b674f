"""Makes the controllers that the settings ask for, with the options that these give them."""

from functools import partial

from taintkeeper.cluster.client import ApiClient
from taintkeeper.cluster.leases import read_lease
from taintkeeper.cluster.live import read_node
from taintkeeper.cluster.status_writer import StatusWriter
from taintkeeper.controllers.node_health import NodeHealth
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.controllers.taint_eviction import TaintEviction
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.health import Patience
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.tainting import TaintOptions
from taintkeeper.core.zones import Rates
from taintkeeper.flags import NODE_HEALTH, NODE_TAINT, TAINT_EVICTION
from taintkeeper.leadership import own_pod
from taintkeeper.settings import Settings

CONFIRM_SECONDS = 60.0


class Controllers:
    """The controllers that run; None for each that does not."""

    def __init__(
        self, settings: Settings, around: Surroundings, client: ApiClient, status_writer: StatusWriter
    ) -> None:
        chosen = settings.controllers
        self.node_taint = _node_taint(settings, around) if NODE_TAINT in chosen else None
        self.node_health = _node_health(settings, around, client, status_writer) if NODE_HEALTH in chosen else None
        self.eviction = _eviction(settings, around, client) if TAINT_EVICTION in chosen else None

    def all(self) -> list[NodeTaint | NodeHealth | TaintEviction]:
        """Return those that run."""
        return [each for each in (self.node_taint, self.node_health, self.eviction) if each is not None]


def _node_taint(settings: Settings, around: Surroundings) -> NodeTaint:
    options = TaintOptions(
        _rates(settings),
        grace_seconds=settings.node_monitor_grace_period,
        shutdown_seconds=settings.node_shutdown_grace_period,
        most_evicting=settings.max_concurrent_evicting_nodes,
    )
    return NodeTaint(options, around)


def _node_health(
    settings: Settings, around: Surroundings, client: ApiClient, status_writer: StatusWriter
) -> NodeHealth:
    patience = Patience(settings.node_monitor_grace_period, settings.node_startup_grace_period)
    options = HealthOptions(patience, settings.mark_pods_not_ready)
    return NodeHealth(options, around, status_writer, partial(read_lease, client))


def _eviction(settings: Settings, around: Surroundings, client: ApiClient) -> TaintEviction:
    options = EvictionOptions(
        concurrency=settings.max_concurrent_evictions,
        # Nobody deletes a pod that was not really evicted.
        confirm_seconds=float("inf") if settings.dry_run else CONFIRM_SECONDS,
        own=own_pod(),
        rates=_rates(settings),
    )
    return TaintEviction(options, around, partial(read_node, client))


def _rates(settings: Settings) -> Rates:
    return Rates(
        normal=settings.node_eviction_rate,
        secondary=settings.secondary_node_eviction_rate,
        full=settings.full_disruption_rate,
        unhealthy_threshold=settings.unhealthy_zone_threshold,
        large_cluster_size=settings.large_cluster_size_threshold,
        cooldown_seconds=settings.storm_cooldown,
    )
