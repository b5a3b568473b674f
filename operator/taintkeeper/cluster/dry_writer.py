"""The writer of a dry run: it writes nothing and answers as the API server would."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from taintkeeper.cluster.writer import RuleTaints
from taintkeeper.core import messages as m
from taintkeeper.core.answers import Answer
from taintkeeper.core.objects import Node, PodRef, Taint
from taintkeeper.core.shadow import Seen, ShadowBudgets


@dataclass(slots=True)
class _Imagined:
    """What a node would have that it has not; a taint that is None would be gone."""

    uid: str
    taints: dict[tuple[str, str], Taint | None] = field(default_factory=dict)
    first_seen: Mapping[str, float] | None = None
    rule_taints: RuleTaints | None = None


class DryWriter:
    """Writes nothing, answers as if it had, and shows nodes as they would be then.

    Feed it with what is seen of nodes, pods, budgets and policies. ``echo`` is told of every node that would have
    changed, as a watch would tell.
    """

    resources = frozenset({"nodes", "pods", "poddisruptionbudgets", "evictionpolicies"})

    def __init__(self, echo: Callable[[Node], None]) -> None:
        self._echo = echo
        self._budgets = ShadowBudgets()
        self._uids: dict[str, str] = {}
        self._imagined: dict[str, _Imagined] = {}

    def feed(self, event: Seen) -> None:
        """Take in what was seen; what was imagined of a node that is gone is forgotten."""
        self._budgets.feed(event)
        match event:
            case m.NodeSeen(node):
                self._uids[node.name] = node.uid
                if self._of(node.name, node.uid) is None:
                    self._imagined.pop(node.name, None)
            case m.NodeGone(name):
                self._uids.pop(name, None)
                self._imagined.pop(name, None)
            case _:
                pass

    async def evict(self, pod: PodRef, grace: int | None = None) -> Answer:  # noqa: ARG002 - the shape of Writer
        """See :class:`~taintkeeper.cluster.writer.Writer`."""
        return self._budgets.evict(pod)

    async def delete(self, pod: PodRef, grace: int | None, why: str, at: float) -> Answer:  # noqa: ARG002
        """See :class:`~taintkeeper.cluster.writer.Writer`."""
        return self._budgets.delete(pod)

    async def write_taints(
        self, node: Node, taints: tuple[Taint, ...], rule_taints: RuleTaints | None = None
    ) -> m.NodeWritten:
        """See :class:`~taintkeeper.cluster.writer.Writer`."""
        if not self._is_there(node.name, node.uid):
            return m.NodeWritten(node.name, m.WriteResult.GONE, detail="404: not found")
        imagined = self._imagine(node.name, node.uid)
        differences = imagined.taints
        differences.update({(t.key, t.effect): None for t in node.taints if t not in taints})
        differences.update({(t.key, t.effect): t for t in taints if t not in node.taints})
        if rule_taints is not None:
            imagined.rule_taints = rule_taints
        would_be = replace(node, taints=taints, rule_taints=node.rule_taints if rule_taints is None else rule_taints)
        asyncio.get_running_loop().call_soon(self._tell, would_be)
        return m.NodeWritten(node.name, m.WriteResult.DONE, would_be)

    async def write_first_seen(self, name: str, uid: str, memory: Mapping[str, float]) -> m.NodeWritten:
        """See :class:`~taintkeeper.cluster.writer.Writer`."""
        if not self._is_there(name, uid):
            return m.NodeWritten(name, m.WriteResult.GONE, detail="404: not found")
        self._imagine(name, uid).first_seen = memory
        return m.NodeWritten(name, m.WriteResult.DONE)

    def as_seen(self, node: Node) -> Node:
        """Return the node as it would be if everything had been written."""
        imagined = self._of(node.name, node.uid)
        if imagined is None:
            return node
        kept = [taint for taint in node.taints if (taint.key, taint.effect) not in imagined.taints]
        added = [taint for taint in imagined.taints.values() if taint is not None]
        first_seen = node.first_seen if imagined.first_seen is None else imagined.first_seen
        rule_taints = node.rule_taints if imagined.rule_taints is None else imagined.rule_taints
        return replace(node, taints=(*kept, *added), first_seen=first_seen, rule_taints=rule_taints)

    def _tell(self, node: Node) -> None:
        # It may have been deleted since; nobody would tell of its end again.
        if self._is_there(node.name, node.uid):
            self._echo(node)

    def _is_there(self, name: str, uid: str) -> bool:
        return self._uids.get(name) == uid

    def _of(self, name: str, uid: str) -> _Imagined | None:
        imagined = self._imagined.get(name)
        return imagined if imagined is not None and imagined.uid == uid else None

    def _imagine(self, name: str, uid: str) -> _Imagined:
        if self._of(name, uid) is None:
            self._imagined[name] = _Imagined(uid)
        return self._imagined[name]
