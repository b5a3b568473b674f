"""What people read of the health of nodes: events on nodes and pods, and log lines."""

import logging
from collections.abc import Callable

from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.core import health_messages as h
from taintkeeper.core.health import Patience
from taintkeeper.core.messages import NodeWritten, WriteResult
from taintkeeper.core.objects import Node, Pod

logger = logging.getLogger("taintkeeper.node-health")

LEASE_SECONDS = 10.0
"""How often a kubelet renews its Lease: a quarter of its lease duration, which is 40 s by default (KEP-589)."""


class HealthReports:
    """Tells of effects: each to the log, what upstream sends as an event in upstream's words."""

    def __init__(self, send: Callable[[Notice], None]) -> None:
        self._send = send

    def begin(self, patience: Patience) -> None:
        """Warn of a grace period that is too short for kubelets that are well."""
        if patience.grace < 2.0 * LEASE_SECONDS:
            logger.warning(
                "--node-monitor-grace-period is %g s: a kubelet renews its Lease every %g s, so that a node that is"
                " well may be declared Unknown; at least %g s leave room for one renewal that is late",
                patience.grace,
                LEASE_SECONDS,
                2.0 * LEASE_SECONDS,
            )

    def tell(self, effect: h.HealthEffect) -> None:
        """Report an effect that has come true; those that are still to be carried out say nothing."""
        match effect:
            case h.DeclaredUnknown():
                self._declared(effect)
            case h.ReadyChanged(node, before, after):
                logger.info("node %s: Ready went from %s to %s", node.name, before, after)
            case h.FoundAlive(node):
                logger.info("node %s lives: its Lease was renewed, though the watch did not show it", node)
            case h.NodeRegistered(node):
                message = f"Node {node.name} event: Registered Node {node.name} in Controller"
                self._tell_node(node, "RegisteredNode", message)
            case h.PodMarked(pod):
                logger.info("pod %s marked as not ready, since node %s is not", pod.ref, pod.node)
                subject = Subject("Pod", pod.ref.name, pod.ref.uid, pod.ref.namespace)
                self._send(Notice(subject, "Warning", "NodeNotReady", "Node is not ready"))
            case _:
                pass

    def read_failed(self, read: h.LeaseRead) -> None:
        """Report that a Lease could not be read, so that nobody is declared Unknown for a while."""
        logger.warning("the Lease of node %s could not be read, every node gets time again: %s", read.node, read.detail)

    def write_failed(self, what: str, written: NodeWritten) -> None:
        """Report a write to a node that did not succeed; it is tried again."""
        level = logging.DEBUG if written.result is WriteResult.CONFLICT else logging.WARNING
        logger.log(level, "%s of node %s could not be written, trying again: %s", what, written.name, written.detail)

    def mark_ended(self, pod: Pod, written: h.PodWritten) -> None:
        """Report a write of a pod's status that did not succeed; where there is still a pod, it is tried again."""
        if written.result is h.PodResult.FAILED:
            logger.warning("pod %s could not be marked as not ready, trying again: %s", pod.ref, written.detail)
        elif written.result is not h.PodResult.DONE:
            logger.debug("pod %s was not marked as not ready: %s", pod.ref, written.detail)

    def _declared(self, effect: h.DeclaredUnknown) -> None:
        node = effect.node
        logger.warning("node %s declared Unknown: no sign of life for %.0f s", node.name, effect.silence)
        if node.ready:
            self._tell_node(node, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")

    def _tell_node(self, node: Node, reason: str, message: str) -> None:
        self._send(Notice(Subject("Node", node.name, node.uid), "Normal", reason, message))
