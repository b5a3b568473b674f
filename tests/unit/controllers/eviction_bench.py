"""The taint-eviction controller at work in virtual time, with a writer that answers by a script."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry

from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_kind import CustomKind
from taintkeeper.cluster.events import Notice
from taintkeeper.cluster.writer import RuleTaints
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.controllers.taint_eviction import TaintEviction
from taintkeeper.core import messages as m
from taintkeeper.core.answers import Answer
from taintkeeper.core.eviction_queue import EvictionOptions
from taintkeeper.core.objects import Node, Pod, PodRef, Taint

ACCEPTED = Answer(201)


@dataclass
class ScriptedWriter:
    """Answers evictions after a while, by a function of the pod and of how often it was tried before."""

    answer: Callable[[PodRef, int], Answer] = lambda _pod, _tries: ACCEPTED
    seconds: Callable[[PodRef], float] = lambda _: 0.01
    journal: list[str] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    memories: list[tuple[str, Mapping[str, float]]] = field(default_factory=list)
    accepted: Callable[[PodRef], None] = lambda _: None
    under_way: int = 0
    most_under_way: int = 0

    async def delete(self, pod: PodRef, grace: int | None, why: str, at: float) -> Answer:
        """Note the deletion and answer it."""
        self.journal.append(f"delete {pod.name} with grace {grace}: {why}")
        self.accepted(pod)
        return Answer(200)

    async def evict(self, pod: PodRef, grace: int | None = None) -> Answer:
        """Note the eviction and answer it."""
        self.journal.append(f"evict {pod.name}")
        self.times.append(asyncio.get_running_loop().time())
        tries = self.tries[pod.name]
        self.tries[pod.name] += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(self.seconds(pod))
        self.under_way -= 1
        self.journal.append(f"answer {pod.name}")
        answer = self.answer(pod, tries)
        if 200 <= answer.status < 300:
            self.accepted(pod)
        return answer

    async def write_taints(
        self, node: Node, taints: tuple[Taint, ...], rule_taints: RuleTaints | None = None
    ) -> m.NodeWritten:
        """Write nothing: evicting taints nothing."""
        raise NotImplementedError

    async def write_first_seen(self, name: str, uid: str, memory: Mapping[str, float]) -> m.NodeWritten:
        """Note the memory."""
        self.memories.append((name, memory))
        return m.NodeWritten(name, m.WriteResult.DONE)

    def as_seen(self, node: Node) -> Node:
        """Show the node as it is."""
        return node


@dataclass
class ScriptedCustomWriter:
    """Notes statuses, and says of each in turn whether it could be written; of all later ones that it could."""

    done: list[bool] = field(default_factory=list)
    statuses: list[tuple[float, str, Any]] = field(default_factory=list)

    async def write_status(self, kind: CustomKind[Any, Any], name: str, status: Any) -> bool:
        """Note the status, as the API would be given it."""
        self.statuses.append((asyncio.get_running_loop().time(), name, kind.encode_status(status)))
        return self.done.pop(0) if self.done else True


class EvictionBench:
    """The controller, what it sent to the API and what it reported, in one journal.

    A node that is read looks as it was last fed. Evicted pods are gone after ``gone_after`` seconds; None leaves it to
    the test to tell of that. A test that makes one ends with :meth:`end_all`: what is still under way when the event
    loop is closed would never come to its end.
    """

    _made: ClassVar[list["EvictionBench"]] = []

    def __init__(
        self, writer: ScriptedWriter | None = None, *, concurrency: int = 16, gone_after: float | None = 0.1
    ) -> None:
        self.writer = writer or ScriptedWriter()
        self.custom_writer = ScriptedCustomWriter()
        self.registry = CollectorRegistry()
        self.crashes: list[BaseException] = []
        self.notices: list[Notice] = []
        self.readings: list[str] = []
        self.unreadable: set[str] = set()
        self.stalls: list[float] = []
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self.clock = SteadyClock()
        self._made.append(self)
        self.controller = TaintEviction(
            EvictionOptions(concurrency=concurrency),
            Surroundings(
                writer=self.writer,
                custom_writer=self.custom_writer,
                send=self._send,
                registry=self.registry,
                clock=self.clock,
                random=Random(0),
                crashed=self.crashes.append,
                stalled=self._stand_still,
            ),
            self._read,
        )

        if gone_after is not None:
            self.writer.accepted = partial(self._delete_later, gone_after)

    @classmethod
    async def end_all(cls) -> None:
        """Stop the controllers of all benches that were made since the last call."""
        while cls._made:
            await cls._made.pop().controller.stop()

    def _delete_later(self, seconds: float, ref: PodRef) -> None:
        asyncio.get_running_loop().call_later(seconds, self.controller.feed, m.PodGone(ref.uid))

    async def _read(self, name: str) -> m.NodeRead | m.NodeUnread:
        self.readings.append(name)
        await asyncio.sleep(0.001)
        if name in self.unreadable:
            return m.NodeUnread(name, "no answer")
        return m.NodeRead(name, self._nodes.get(name), tuple(self._pods.values()))

    def hide(self, node: Node) -> None:
        """Have the node look like this when it is read, while no watch tells of it."""
        self._nodes[node.name] = node

    def _stand_still(self, seconds: float) -> None:
        self.stalls.append(seconds)

    def _send(self, notice: Notice) -> None:
        self.notices.append(notice)
        self.writer.journal.append(f"{notice.reason} {notice.subject.name}")

    def feed(self, *events: m.EvictionInput) -> None:
        """Tell the controller of several things."""
        for event in events:
            match event:
                case m.NodeSeen(node):
                    self._nodes[node.name] = node
                case m.PodSeen(pod):
                    self._pods[pod.ref.uid] = pod
                case _:
                    pass
            self.controller.feed(event)

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of a metric now; zero where there is none."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def pending(self) -> dict[str, float]:
        """Return how many pods wait, by reason, without the zeros."""
        reasons = ("toleration", "due", "posted", "budget", "backoff")
        found = {reason: self.metric("taintkeeper_pending_evictions", reason=reason) for reason in reasons}
        return {reason: value for reason, value in found.items() if value}
