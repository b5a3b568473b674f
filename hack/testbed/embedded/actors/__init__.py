"""The parts of a cluster that act on objects by themselves.

Each can be switched off, so that a test has that part to itself.
"""

from collections.abc import Iterable

from testbed.embedded.actors.base import Actor
from testbed.embedded.actors.disruption import Disruption
from testbed.embedded.actors.garbage import Garbage
from testbed.embedded.actors.kubelets import Kubelets
from testbed.embedded.actors.namespaces import Namespaces
from testbed.embedded.actors.scheduler import Scheduler
from testbed.embedded.actors.workloads import Workloads
from testbed.embedded.registry import Registry


class Actors:
    """All actors of a cluster, by name."""

    def __init__(self, registry: Registry, heartbeat_seconds: float, termination_seconds: float) -> None:
        actors: tuple[Actor, ...] = (
            Disruption(registry),
            Garbage(registry),
            Kubelets(registry, heartbeat_seconds, termination_seconds),
            Namespaces(registry),
            Scheduler(registry),
            Workloads(registry),
        )
        self._by_name = {actor.name: actor for actor in actors}

    def all(self) -> Iterable[Actor]:
        """Return every actor."""
        return self._by_name.values()

    def switch(self, names: Iterable[str], *, on: bool) -> None:
        """Turn actors on or off; no name means all of them.

        Raises:
            KeyError: there is no actor of that name.
        """
        for name in tuple(names) or tuple(self._by_name):
            self._by_name[name].switch(on=on)
