"""The scheduler: binds pods to nodes whose taints they tolerate, spreading what belongs together."""

import collections
from typing import ClassVar

from testbed.embedded.actors.base import Actor, controller_of, name_of
from testbed.embedded.registry import Registry
from testbed.embedded.resources import NODES, PODS, Object
from testbed.embedded.store import Change
from testbed.embedded.timestamps import now

KEEPS_AWAY = {"NoSchedule", "NoExecute"}
SCHEDULER_NAME = "default-scheduler"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class Scheduler(Actor):
    """Looks at every pod without a node, again whenever a node changes in a way that could matter to it."""

    name: ClassVar[str] = "scheduler"

    def __init__(self, registry: Registry) -> None:
        self._waiting: set[str] = set()
        self._pods: collections.Counter[str] = collections.Counter()
        self._siblings: collections.Counter[tuple[str, str]] = collections.Counter()
        super().__init__(registry)

    def notice(self, change: Change) -> None:
        """Count the pods of nodes; mark pods without a node, and the waiting ones when a node changes."""
        if change.record.kind is PODS:
            self._notice_pod(change)
        elif change.record.kind is NODES and change.type != "DELETED" and _differs(change):
            for key in self._waiting:
                self.mark(key)

    def _notice_pod(self, change: Change) -> None:
        pod = change.record.value
        before = _place(change.previous.value) if change.previous else ""
        after = _place(pod) if change.type != "DELETED" else ""
        owner = (controller_of(pod) or {}).get("uid", "")
        for node, step in ((before, -1), (after, 1)):
            if node and before != after:
                self._pods[node] += step
                self._siblings[node, owner] += step
        if change.type == "ADDED" and not pod["spec"].get("nodeName"):
            self.mark(name_of(pod))

    def look(self, key: str) -> None:
        """Bind a pod, or have it say why it cannot be bound."""
        self._waiting.discard(key)
        record = self.store.get(PODS, key)
        if record is None or not _is_ours(record.value):
            return
        pod = record.value
        nodes = [each.value for each in self.store.records(NODES)]
        fitting = [node["metadata"]["name"] for node in nodes if fits(pod["spec"], node)]
        if not fitting:
            self._waiting.add(key)
            self._explain(key, pod, len(nodes))
            return
        owner = (controller_of(pod) or {}).get("uid", "")
        best = min(fitting, key=lambda node: (self._siblings[node, owner], self._pods[node], node))
        self.registry.bind(pod["metadata"]["namespace"], pod["metadata"]["name"], best)

    def _explain(self, key: str, pod: Object, nodes: int) -> None:
        conditions = pod["status"].get("conditions") or []
        message = f"0/{nodes} nodes are available: {nodes} node(s) had untolerated taints or did not match."
        if any(each["type"] == "PodScheduled" and each["message"] == message for each in conditions):
            return
        state = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        condition = {**state, "lastProbeTime": None, "lastTransitionTime": now()}
        others = [each for each in conditions if each["type"] != "PodScheduled"]
        self.store.put(PODS, key, {**pod, "status": {**pod["status"], "conditions": [*others, condition]}})


def _is_ours(pod: Object) -> bool:
    spec = pod["spec"]
    waits = not spec.get("nodeName") and "deletionTimestamp" not in pod["metadata"]
    return waits and spec.get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME


def _place(pod: Object) -> str:
    """Return the node that a pod takes room on: one that is leaving does not stand in the way of its successor."""
    return "" if "deletionTimestamp" in pod["metadata"] else str(pod["spec"].get("nodeName", ""))


def _differs(change: Change) -> bool:
    if change.previous is None:
        return True
    old, new = change.previous.value, change.record.value
    return bool(
        old.get("spec") != new.get("spec")
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or is_ready(old) != is_ready(new)
    )


def is_ready(node: Object) -> bool:
    """Return whether a node's Ready condition is True."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def fits(pod_spec: Object, node: Object) -> bool:
    """Return whether a pod may be put on a node."""
    labels = node["metadata"].get("labels") or {}
    if not is_ready(node) or not (pod_spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    taints = list((node.get("spec") or {}).get("taints") or [])
    if (node.get("spec") or {}).get("unschedulable"):
        taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    tolerations = pod_spec.get("tolerations") or []
    return all(
        any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint["effect"] in KEEPS_AWAY
    )


def tolerates(toleration: Object, taint: Object) -> bool:
    """Return whether one toleration matches one taint."""
    if toleration.get("effect", "") not in {"", taint["effect"]} or toleration.get("key", "") not in {"", taint["key"]}:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
