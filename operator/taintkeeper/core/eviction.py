"""Which pod is evicted when: the engine of the taint-eviction controller.

It joins what is known of nodes and pods with the queue of pods that must leave.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from taintkeeper.core import messages as m
from taintkeeper.core.deadlines import Place, deadline
from taintkeeper.core.eviction_queue import EvictionOptions, EvictionQueue
from taintkeeper.core.first_seen import arrived
from taintkeeper.core.local_claims import LocalClaims
from taintkeeper.core.memory import MemoryKeeper
from taintkeeper.core.objects import Node, Pod
from taintkeeper.core.policies import TaintPattern
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.policy_messages import (
    NamespaceGone,
    NamespaceSeen,
    PolicyGone,
    PolicyInput,
    PolicySeen,
    PolicyWritten,
    SurroundingsInput,
    VolumeGone,
    VolumeSeen,
)
from taintkeeper.core.policy_status import PolicyReporter
from taintkeeper.core.policy_tally import PolicyTally
from taintkeeper.core.standing_zones import StandingZones


class EvictionEngine:
    """Turns what is seen of nodes, pods and budgets into evictions."""

    def __init__(self, options: EvictionOptions, random: Random) -> None:
        self._tally = PolicyTally()
        self.queue = EvictionQueue(options, random, self._tally)
        self.policies = PolicyBook()
        self._reporter = PolicyReporter(self.policies, self._tally, random)
        self._nodes = MemoryKeeper(random, self.policies.acts)
        self._zones = StandingZones(options.rates)
        self._pods: dict[str, Pod] = {}
        self._pods_of: dict[str, set[str]] = {}
        self._claims = LocalClaims()
        self._unjudged: set[str] = set()

    def handle(self, event: m.EvictionInput, now: float) -> list[m.EvictionEffect]:
        """Take in one event at the time ``now``; return what is to be done, in this order."""
        self._take_in(event, now)
        if self.queue.fresh and self._unjudged:
            self._judge_namespaces(now)
        for name in self._zones.judge(now):
            self._judge_all(name, now)
        self.queue.advance(now)
        effects = self.queue.take_effects()
        effects.extend(self._vacated())
        if self.queue.fresh:
            effects.extend(self._nodes.writes(now, calm=not self.queue.busy))
            effects.extend(self._reporter.due(now))
        return effects

    def _vacated(self) -> Iterator[m.Vacated]:
        for name, terminating in self.queue.take_vacated():
            if (known := self._nodes.get(name)) is not None:
                yield m.Vacated(known.node, terminating)

    def wake_at(self, now: float) -> float | None:  # noqa: ARG002 - the engines share one shape
        """Return when to send the next :class:`~taintkeeper.core.messages.Woke`, in seconds since the epoch."""
        times = [self.queue.wake_at(), self._zones.wake_at()]
        if self.queue.fresh:
            times += [self._nodes.wake_at(), self._reporter.wake_at()]
        return min((time for time in times if time is not None), default=None)

    def _take_in(self, event: m.EvictionInput, now: float) -> None:
        match event:
            case m.NodeSeen(node):
                self._node_seen(node, now)
            case m.NodeGone(name):
                self._node_gone(name, now)
            case m.PodSeen(pod):
                self._pod_seen(pod, now)
            case m.PodGone(uid):
                self._pod_gone(uid)
            case m.BudgetSeen(budget):
                self.queue.budget_seen(budget, now)
            case m.BudgetGone(namespace, name):
                self.queue.budget_gone(namespace, name)
            case m.Knowledge(fresh):
                self.queue.knowledge(fresh=fresh)
                self._zones.listed = self._zones.listed or fresh
            case m.Woke():
                pass
            case PolicySeen() | PolicyGone():
                self._policies_changed(event, now)
            case NamespaceSeen() | NamespaceGone() | VolumeSeen() | VolumeGone():
                self._surroundings_changed(event, now)
            case _:
                self._answered(event, now)

    def _policies_changed(self, event: PolicyInput, now: float) -> None:
        match event:
            case PolicySeen():
                self._judge_taints(self.policies.put(event), now)
                self._reporter.put(event)
            case PolicyGone(name):
                self._judge_taints(self.policies.drop(name), now)
                self._reporter.drop(name)

    def _surroundings_changed(self, event: SurroundingsInput, now: float) -> None:
        match event:
            case NamespaceSeen(name, labels):
                if self.policies.see_namespace(name, labels):
                    self._unjudged.add(name)
            case NamespaceGone(name):
                if self.policies.forget_namespace(name):
                    self._unjudged.add(name)
            case VolumeSeen(name, claim):
                self._judge_each(self._claims.put(name, claim), now)
            case VolumeGone(name):
                self._judge_each(self._claims.drop(name), now)

    def _answered(self, event: m.Answered, now: float) -> None:
        match event:
            case m.EvictionAnswered(uid, answer):
                self.queue.answered(uid, answer, now)
            case m.NodeRead():
                self._node_read(event, now)
            case m.NodeUnread(name):
                self.queue.unread(name, now)
            case m.NodeWritten():
                self._nodes.answered(event, now)
            case PolicyWritten():
                self._reporter.written(event, now)

    def _node_read(self, event: m.NodeRead, now: float) -> None:
        if event.node is None:
            self._node_gone(event.name, now)
        else:
            self._node_seen(event.node, now)
        for pod in event.pods:
            # The watch alone says which pods there are, or nobody would tell of the end of one that it never showed.
            known = self._pods.get(pod.ref.uid)
            if known is not None and not 0 < pod.version == known.version:
                self._pod_seen(pod, now)
        self.queue.read(event.name, now)

    def _node_seen(self, node: Node, now: float) -> None:
        changed = self._nodes.seen(node, now)
        known = self._nodes.get(node.name)
        moved = known is not None and self._zones.place(known.node, now)
        if changed or moved:
            self._judge_all(node.name, now)

    def _node_gone(self, name: str, now: float) -> None:
        self._nodes.gone(name)
        self._zones.remove(name)
        self._judge_all(name, now)

    def _pod_seen(self, pod: Pod, now: float) -> None:
        uid = pod.ref.uid
        known = self._pods.get(uid)
        if known is not None and pod.version < known.version:
            return
        if known is not None and known.node != pod.node:
            self._forget_place(known)
        pod = self._pods[uid] = arrived(pod, known, now=now)
        self._pods_of.setdefault(pod.node, set()).add(uid)
        self._claims.use(pod)
        self._judge(pod, now)

    def _pod_gone(self, uid: str) -> None:
        if pod := self._pods.pop(uid, None):
            self._forget_place(pod)
            self._claims.forget(pod)
        self.queue.gone(uid)

    def _forget_place(self, pod: Pod) -> None:
        uids = self._pods_of[pod.node]
        uids.discard(pod.ref.uid)
        if not uids:
            del self._pods_of[pod.node]

    def _judge_all(self, node: str, now: float) -> None:
        # Sorted, since the order of a set differs from run to run and effects must not.
        self._judge_each(sorted(self._pods_of.get(node, ())), now)

    def _judge_each(self, uids: Iterable[str], now: float) -> None:
        for uid in uids:
            self._judge(self._pods[uid], now)

    def _judge_taints(self, patterns: Sequence[TaintPattern], now: float) -> None:
        """Judge the pods of all nodes that have one of these taints: the policies about them have changed."""
        for name in self._nodes.reconsider(patterns, now):
            self._judge_all(name, now)

    def _judge_namespaces(self, now: float) -> None:
        """Judge the pods of namespaces whose labels have changed where any taint may have them leave.

        Of a list, all are judged at its end at once: there may be thousands.
        """
        for node in self._nodes.nodes():
            if any(self.policies.acts(taint) for taint in node.taints):
                uids = sorted(self._pods_of.get(node.name, ()))
                self._judge_each((uid for uid in uids if self._pods[uid].ref.namespace in self._unjudged), now)
        self._unjudged.clear()

    def _judge(self, pod: Pod, now: float) -> None:
        known = self._nodes.get(pod.node)
        found = None
        if known is not None:
            place = Place(known.node, known.memory, self._zones.pauses(known.node.zone))
            found = deadline(self._claims.complete(pod), place, self.policies, now=now)
        if found is None:
            self.queue.unwant(pod)
        else:
            if found.due > now:
                self._nodes.urge(pod.node)
            self.queue.want(pod, found, now)
