"""Clusters of any size around one node and one pod, as an engine has come to know them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from taintkeeper.controllers.shell import Engine
from taintkeeper.core import messages as m
from taintkeeper.core.health_messages import LeaseSeen
from tests.unit.core.builders import FOO, budget, lasting, no_execute, node, pod

HOUR = 3600.0
READY = {"Ready": "True"}
PATIENT = pod("p1", lasting("foo", 3600))
FRESH = m.Knowledge(fresh=True)

AnyEngine = Engine[Any, Any]


class Bench:
    """An engine, the time, and what it asked for. ``deaf`` are kinds of events that it is not told of."""

    def __init__(self, engine: AnyEngine, *deaf: type) -> None:
        self.now = 0.0
        self._engine = engine
        self._deaf = deaf
        self._asked: list[Any] = []

    def feed(self, event: Any) -> None:
        """Give the engine an event, as the shell does."""
        if not isinstance(event, self._deaf):
            self._asked += self._engine.handle(event, self.now)
            self._engine.wake_at(self.now)

    def tell(self, *events: Any) -> None:
        """Give the engine several events."""
        for event in events:
            self.feed(event)

    def run_until(self, end: float) -> None:
        """Let time pass and wake the engine when it asks for it; whatever it wants from anybody stays unanswered."""
        while (at := self._engine.wake_at(self.now)) is not None and at <= end:
            self.now = max(at, self.now + 0.001)
            self.tell(m.Woke())
        self.now = end

    def take(self, kind: type) -> list[Any]:
        """Return what it has asked for of this kind since the last call."""
        asked, self._asked = self._asked, []
        return [each for each in asked if isinstance(each, kind)]


World = Callable[[Bench, int], None]


def nodes(number: int, zones: int = 3, **facts: Any) -> Iterator[m.NodeSeen]:
    """Yield nodes that are ready."""
    for each in range(number):
        yield m.NodeSeen(node(f"o{each}", zone=f"z{each % zones}", **{"conditions": READY, **facts}))


def tainted(number: int, added: float | None = 0.0) -> Iterator[m.NodeSeen]:
    """Yield the same nodes after somebody has tainted them."""
    for each in nodes(number):
        yield m.NodeSeen(replace(each.node, taints=(no_execute("foo", added),), resource_version="2"))


def pods(number: int, *tolerations: Any, **facts: Any) -> Iterator[m.PodSeen]:
    """Yield a pod for each of the nodes."""
    for each in range(number):
        yield m.PodSeen(pod(f"q{each}", *tolerations, node=f"o{each}", namespace="others", **facts))


def calm(bench: Bench, number: int) -> None:
    """Have everything well."""
    bench.tell(*nodes(number), *pods(number), FRESH)


def many_zones(bench: Bench, number: int) -> None:
    """Have every node in a zone of its own."""
    bench.tell(*nodes(number, zones=number), *pods(number), FRESH)


def counting(bench: Bench, number: int) -> None:
    """Have all other pods count down an hour."""
    bench.tell(*nodes(number), *tainted(number), *pods(number, lasting("foo", 3600)), FRESH)


def overdue(bench: Bench, number: int) -> None:
    """Have all other pods wait to be evicted: the nodes are being read."""
    bench.tell(*nodes(number), *pods(number), *tainted(number), FRESH)


def in_line(bench: Bench, number: int) -> None:
    """Have all other pods wait to be evicted from one node: as many as may are posted, and none is answered."""
    there = m.NodeSeen(node("o0", FOO, conditions=READY))
    bench.tell(there, *(m.PodSeen(replace(each.pod, node="o0")) for each in pods(number)), FRESH)
    bench.tell(m.NodeRead("o0", there.node))


def held(bench: Bench, number: int) -> None:
    """Have all other pods on a tainted node stand behind one budget."""
    there = m.NodeSeen(node("o0", FOO, conditions=READY))
    bench.tell(m.BudgetSeen(replace(budget("c1"), namespace="others")), there)
    bench.tell(*(m.PodSeen(replace(each.pod, node="o0")) for each in pods(number)), FRESH)
    bench.tell(m.NodeRead("o0", there.node))


def terminating(bench: Bench, number: int) -> None:
    """Have all other pods terminate."""
    bench.tell(*nodes(number), *tainted(number), *pods(number, deleting=True, delete_by=HOUR), FRESH)


def remembering(bench: Bench, number: int) -> None:
    """Have the times of all other nodes' taints be written, and no write be answered."""
    bench.tell(*nodes(number), *tainted(number, None), FRESH)


def unwritten(bench: Bench, number: int) -> None:
    """Have the writes of the times of all other nodes' taints fail, so that they wait for another try."""
    bench.tell(FRESH, *nodes(number), *tainted(number, None))
    bench.tell(*(m.NodeWritten(each.node, m.WriteResult.FAILED) for each in bench.take(m.Remember)))


def unread(bench: Bench, number: int) -> None:
    """Have the reading of all other nodes fail, so that they wait for another try."""
    overdue(bench, number)
    for _ in range(number):
        bench.tell(*(m.NodeUnread(each.name, "no answer") for each in bench.take(m.ReadNode)[:1]))


def many_budgets(bench: Bench, number: int) -> None:
    """Have as many budgets as pods in another namespace."""
    calm(bench, number)
    bench.tell(
        *(m.BudgetSeen(replace(budget(f"c{each}", app=f"a{each}"), namespace="others")) for each in range(number))
    )


def leases(bench: Bench, number: int) -> None:
    """Have every other node renew its Lease."""
    calm(bench, number)
    bench.tell(*(LeaseSeen(f"o{each}", "once") for each in range(number)))


def unheard(bench: Bench, number: int) -> None:
    """Have every other node fall silent; their Leases are being read."""
    leases(bench, number)
    bench.run_until(100.0)


def failed(bench: Bench, number: int) -> None:
    """Have every other node report that it is not ready."""
    bench.tell(
        *nodes(number), *pods(number), FRESH, *nodes(number, conditions={"Ready": "False"}, resource_version="2")
    )
