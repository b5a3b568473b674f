"""What we see of the cluster, handed to the controllers; and whether it can be relied on.

A controller is told that its knowledge is fresh only while all that it rests on is listed completely and watched.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Protocol

from taintkeeper.cluster.client import ApiClient
from taintkeeper.cluster.custom_feed import CustomFeed, CustomListener
from taintkeeper.cluster.custom_kind import GROUP, CustomKind
from taintkeeper.cluster.leases import LEASES
from taintkeeper.cluster.node_feed import NodeFeed
from taintkeeper.cluster.policy_wire import POLICIES, decode_namespace
from taintkeeper.cluster.reflector import Kind, Listener, Reflector
from taintkeeper.cluster.rule_wire import RULES
from taintkeeper.cluster.wire import decode_budget, decode_local_volume, decode_pod
from taintkeeper.core import messages as m
from taintkeeper.core.budgets import Budget
from taintkeeper.core.health_messages import LeaseGone, LeaseSeen
from taintkeeper.core.objects import Node, Pod
from taintkeeper.core.policy_messages import NamespaceGone, NamespaceSeen, PolicyGone, VolumeGone, VolumeSeen
from taintkeeper.core.rules import RuleGone

logger = logging.getLogger("taintkeeper")

NODES = "nodes"
PODS: Kind[str, Pod] = Kind("pods", "/api/v1/pods", decode_pod, lambda pod: pod.ref.uid)
BUDGETS: Kind[tuple[str, str], Budget] = Kind(
    "poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", decode_budget, lambda budget: budget.key
)
NAMESPACES: Kind[str, tuple[str, Mapping[str, str]]] = Kind(
    "namespaces", "/api/v1/namespaces", decode_namespace, lambda found: found[0]
)
VOLUMES: Kind[str, tuple[str, tuple[str, str] | None]] = Kind(
    "persistentvolumes", "/api/v1/persistentvolumes", decode_local_volume, lambda found: found[0]
)


class Controller(Protocol):
    """Whoever is told of what is seen."""

    def feed(self, event: Any) -> None:
        """Take in an event of the core's messages."""
        ...


@dataclass(slots=True)
class Audience:
    """A controller with the resources that its knowledge consists of, and which of them are fresh now."""

    controller: Controller
    resources: frozenset[str]
    fresh: bool = False
    alive: set[str] = field(default_factory=set)

    def note(self, resource: str, alive: bool) -> None:
        """Note that a resource can be relied on, or no longer; tell the controller when that changes the whole."""
        if resource not in self.resources:
            return
        (self.alive.add if alive else self.alive.discard)(resource)
        fresh = self.alive == self.resources
        if fresh is not self.fresh:
            self.fresh = fresh
            self.controller.feed(m.Knowledge(fresh))


class Views:
    """All watches. Run each of :meth:`tasks` as a task of its own, and give :meth:`node_event` what Kopf sees."""

    def __init__(
        self,
        client: ApiClient,
        random: Random,
        audiences: Sequence[Audience],
        *,
        as_seen: Callable[[Node], Node],
        failed: Callable[[str, str], None],
    ) -> None:
        self._audiences = audiences
        self._as_seen = as_seen
        self._nodes = NodeFeed(
            client,
            random,
            seen=self.node_seen,
            gone=lambda name: self._feed(NODES, m.NodeGone(name)),
            alive=lambda alive: self._note(NODES, alive),
            failed=lambda why: failed(NODES, why),
        )
        self._client = client
        self._random = random
        self._failed = failed
        self._reflectors: dict[str, Reflector[Any, Any]] = {}
        self._reflect(PODS, m.PodSeen, m.PodGone)
        self._reflect(BUDGETS, m.BudgetSeen, lambda key: m.BudgetGone(*key))
        self._reflect(NAMESPACES, lambda found: NamespaceSeen(*found), NamespaceGone)
        self._reflect(VOLUMES, lambda found: VolumeSeen(*found), VolumeGone)
        self._reflect(LEASES, lambda lease: LeaseSeen(lease.node, lease.renewed), LeaseGone)
        self._customs: dict[str, CustomFeed[Any]] = {}
        self._follow(RULES, RuleGone)
        self._follow(POLICIES, PolicyGone)

    def tasks(self) -> Mapping[str, Callable[[], Any]]:
        """Return what has to run for the views to stay up to date, by resource: functions that return coroutines."""
        others = self._reflectors | self._customs
        return {NODES: self._nodes.run} | {name: each.run for name, each in others.items()}

    def node_event(self, event: Mapping[str, Any]) -> None:
        """Take in a watch event of a node, as Kopf hands it to its handlers."""
        self._nodes.take(event)

    @property
    def customs(self) -> list[str]:
        """The resources of our own kinds that somebody needs, and Kopf is to watch."""
        return list(self._customs)

    def custom_event(self, resource: str, event: Mapping[str, Any]) -> None:
        """Take in a watch event of an object of one of these kinds, as Kopf hands it to its handlers."""
        self._customs[resource].take(event)

    def node_seen(self, node: Node) -> None:
        """Take in a node as it is now."""
        self._feed(NODES, m.NodeSeen(self._as_seen(node)))

    def distrust(self) -> None:
        """Note that the process stood still: nothing is fresh until the nodes have been listed anew."""
        self._nodes.doubt()

    def interrupted(self, interrupted: bool) -> None:
        """Note that Kopf's watch of nodes fails, or works again."""
        self._nodes.interrupted(interrupted)
        if not interrupted:
            self._hurry()

    def last_heard(self) -> dict[str, float]:
        """Return when anything last came from the server, by resource, on the event loop's clock."""
        others = self._reflectors | self._customs
        return {NODES: self._nodes.last_heard} | {name: each.last_heard for name, each in others.items()}

    def unreadable(self) -> dict[str, int]:
        """Return how many objects make no sense to us and are passed over, by resource."""
        return {NODES: self._nodes.unreadable} | {name: each.unreadable for name, each in self._reflectors.items()}

    def stale(self) -> list[str]:
        """Return the resources that cannot be relied on now."""
        return sorted({resource for each in self._audiences for resource in each.resources - each.alive})

    def _reflect(self, kind: Kind[Any, Any], seen: Callable[[Any], Any], gone: Callable[[Any], Any]) -> None:
        """Watch a kind if anybody needs it; ``seen`` and ``gone`` make events of objects and keys."""
        resource = kind.resource
        if not self._needs(resource):
            return
        listener: Listener[Any, Any] = Listener(
            seen=lambda item: self._feed(resource, seen(item)),
            gone=lambda key: self._feed(resource, gone(key)),
            alive=lambda alive: self._watched(resource, alive),
            failed=lambda why: self._failed(resource, why),
        )
        self._reflectors[resource] = Reflector(self._client, kind, listener, self._random)

    def _follow(self, kind: CustomKind[Any, Any], gone: Callable[[str], Any]) -> None:
        """Follow a kind of ours if anybody needs it; what was known of it once stays good."""
        resource = kind.resource
        if not self._needs(resource):
            return
        listener: CustomListener[Any] = CustomListener(
            seen=partial(self._feed, resource),
            gone=lambda name: self._feed(resource, gone(name)),
            listed=lambda: self._note(resource, alive=True),
            defined=partial(_tell_defined, resource),
            failed=partial(self._failed, resource),
        )
        self._customs[resource] = CustomFeed(self._client, kind, listener, self._random)

    def _needs(self, resource: str) -> bool:
        return any(resource in audience.resources for audience in self._audiences)

    def _watched(self, resource: str, alive: bool) -> None:
        self._note(resource, alive)
        if alive:
            self._hurry()
        else:
            # What breaks one watch may break Kopf's too, which says nothing of it and comes back later than ours.
            self._nodes.doubt()

    def _hurry(self) -> None:
        """Have everybody try again who makes a pause: somebody has reached the server again."""
        self._nodes.hurry()
        for reflector in self._reflectors.values():
            reflector.hurry()
        for feed in self._customs.values():
            feed.hurry()

    def _note(self, resource: str, alive: bool) -> None:
        for audience in self._audiences:
            audience.note(resource, alive)

    def _feed(self, resource: str, event: Any) -> None:
        for audience in self._audiences:
            if resource in audience.resources:
                audience.controller.feed(event)


def _tell_defined(resource: str, defined: bool) -> None:
    if defined:
        logger.info("%s.%s is defined on the API server", resource, GROUP)
    else:
        logger.warning("%s.%s is not defined on the API server: there are none until it is", resource, GROUP)
