"""What people read of taints and zones: events on nodes, and log lines."""

import logging
from collections.abc import Callable

from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.core import messages as m
from taintkeeper.core import taint_messages as t
from taintkeeper.core.objects import OUT_OF_SERVICE, Node, Taint
from taintkeeper.core.zones import ZoneState

logger = logging.getLogger("taintkeeper.node-taint")


class TaintReports:
    """Tells of effects: each to the log and as an event on the nodes concerned."""

    def __init__(self, send: Callable[[Notice], None]) -> None:
        self._send = send

    def tell(self, effect: t.TaintsChanged | t.TaintContested | t.ReadyFlipped | t.ZoneChanged) -> None:
        """Report what was written to a node, who keeps undoing it, or what has become of a node or a zone."""
        match effect:
            case t.TaintsChanged():
                self._taints_changed(effect)
            case t.TaintContested():
                self._contested(effect)
            case t.ReadyFlipped(node):
                self._ready_flipped(node)
            case t.ZoneChanged():
                self._zone_changed(effect)

    def write_failed(self, written: m.NodeWritten) -> None:
        """Report a write that did not succeed; it is tried again."""
        level = logging.DEBUG if written.result is m.WriteResult.CONFLICT else logging.WARNING
        logger.log(level, "taints of node %s could not be written, trying again: %s", written.name, written.detail)

    def _taints_changed(self, effect: t.TaintsChanged) -> None:
        node, change = effect.node, effect.change
        for taint in change.added:
            again = " again: somebody removed it while" if (taint.key, taint.effect) in effect.again else ":"
            self._tell_node(node, "TaintAdded", f"Taint {taint} added{again} {effect.reasons[taint.key, taint.effect]}")
        for taint in change.removed:
            self._tell_node(node, "TaintRemoved", f"Taint {taint} removed: {_why_removed(effect, taint)}")

    def _contested(self, effect: t.TaintContested) -> None:
        taint = Taint(*effect.taint)
        if effect.reason is not None:
            what = f"Somebody keeps removing taint {taint} although {effect.reason}; it is added less and less often"
        else:
            what = f"Somebody keeps adding taint {taint}, which should not be there; it is removed less and less often"
        logger.warning("node %s: %s", effect.node.name, what)
        self._send(Notice(Subject("Node", effect.node.name, effect.node.uid), "Warning", "TaintContested", what))

    def _ready_flipped(self, node: Node) -> None:
        if not node.ready or not any(taint.key == OUT_OF_SERVICE for taint in node.taints):
            return
        message = f"Node is ready, but still has taint {OUT_OF_SERVICE}, by which its pods are deleted by force"
        logger.warning("node %s: %s", node.name, message)
        self._send(Notice(Subject("Node", node.name, node.uid), "Warning", "OutOfServiceTaintLeft", message))

    def _zone_changed(self, effect: t.ZoneChanged) -> None:
        zone = effect.zone or "without a name"
        moved = f"went from {effect.before} to" if effect.before is not effect.after else "stays in"
        everywhere = ", as every other" if effect.all_disrupted else ""
        message = f"Zone {zone} {moved} {effect.after}{everywhere}; nodes tainted NoExecute per second: {effect.rate:g}"
        message += ", until it has been better for a while" if effect.cooling else ""
        well = effect.after is ZoneState.NORMAL
        logger.log(logging.INFO if well else logging.WARNING, "%s", message)
        subject = Subject("Node", effect.witness.name, effect.witness.uid)
        self._send(Notice(subject, "Normal" if well else "Warning", "ZoneDisruption", message))

    def _tell_node(self, node: Node, reason: str, message: str) -> None:
        logger.info("node %s: %s", node.name, message)
        self._send(Notice(Subject("Node", node.name, node.uid), "Normal", reason, message))


def _why_removed(effect: t.TaintsChanged, taint: Taint) -> str:
    taint_id = (taint.key, taint.effect)
    successor = next((added for added in effect.change.added if (added.key, added.effect) == taint_id), None)
    return effect.reasons[taint_id] if successor is None else f"{successor} took its place"
