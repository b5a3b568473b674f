"""The kubelets of all fake nodes: they report as ready, renew leases, run and end pods.

A node has a kubelet as long as it carries the label ``kwok.x-k8s.io/node: fake``, as with kwok on the real control
plane. Removing the label silences the node: nothing happens on it any more, as when a machine loses its network. A
condition that somebody else sets on a living node stays; only Unknown is answered, with Ready.
"""

import zlib
from typing import ClassVar

from testbed.embedded.actors.base import Actor, name_of
from testbed.embedded.deletion import delete
from testbed.embedded.registry import Registry
from testbed.embedded.resources import LEASES, NODES, PODS, Object
from testbed.embedded.store import Change
from testbed.embedded.timestamps import now, now_micro, parse
from testbed.real.nodes import MANAGED_LABEL, MANAGED_VALUE

LEASE_NAMESPACE = "kube-node-lease"
LEASE_DURATION_SECONDS = 40
REPORT_SECONDS = 300
"""How often a kubelet reports an unchanged status; between two reports only its lease says that it lives."""

NODE_CONDITIONS = (
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
)
CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "250"}


class Kubelets(Actor):
    """One actor for the kubelets of all nodes.

    Args:
        registry: where the objects are.
        heartbeat_seconds: how often a lease is renewed.
        termination_seconds: how long a pod takes to end at most, whatever its grace period.
    """

    name: ClassVar[str] = "kubelets"

    def __init__(self, registry: Registry, heartbeat_seconds: float, termination_seconds: float) -> None:
        self._heartbeat_seconds = heartbeat_seconds
        self._termination_seconds = termination_seconds
        self._pods_by_node: dict[str, set[str]] = {}
        self._beating: set[str] = set()
        self._ending: set[str] = set()
        super().__init__(registry)

    def notice(self, change: Change) -> None:
        """Mark pods that are bound, and nodes that appear or come back with all of their pods."""
        value = change.record.value
        if change.record.kind is PODS:
            self._notice_pod(value, deleted=change.type == "DELETED")
        elif change.record.kind is NODES and change.type != "DELETED" and is_fake(value):
            name = value["metadata"]["name"]
            if change.previous is None or not is_fake(change.previous.value) or _needs_report(value):
                self.mark(f"node {name}")
                for pod in self._pods_by_node.get(name, ()):
                    self.mark(f"pod {pod}")

    def _notice_pod(self, pod: Object, *, deleted: bool) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        key = name_of(pod)
        if deleted:
            self._pods_by_node.get(node, set()).discard(key)
            self._ending.discard(pod["metadata"]["uid"])
            return
        self._pods_by_node.setdefault(node, set()).add(key)
        if pod["status"].get("phase") == "Pending" or "deletionTimestamp" in pod["metadata"]:
            self.mark(f"pod {key}")

    def look(self, key: str) -> None:
        """Do what the kubelet does about a node, a pod, a heartbeat that is due or a pod that has had its time."""
        what, _, name = key.partition(" ")
        if what == "pod":
            self._look_at_pod(name)
        elif what == "end":
            self._end(name)
        elif what == "node":
            self._look_at_node(name)
        else:
            self._beat(name)

    def _node(self, name: str) -> Object | None:
        record = self.store.get(NODES, name)
        return record.value if record is not None and is_fake(record.value) else None

    def _look_at_node(self, name: str) -> None:
        node = self._node(name)
        if node is None:
            return
        if _needs_report(node):
            self._report(node)
        if name not in self._beating:
            self._beating.add(name)
            self._renew(name)
            # Spread over the interval, so that thousands of nodes do not beat at once.
            share = (zlib.crc32(name.encode()) % 1000) / 1000
            self.mark_later(f"beat {name}", self._heartbeat_seconds * (0.5 + share / 2))

    def _beat(self, name: str) -> None:
        node = self._node(name)
        if node is None:
            self._beating.discard(name)
            return
        self._renew(name)
        if _report_age_seconds(node) >= REPORT_SECONDS:
            self._report(node)
        self.mark_later(f"beat {name}", self._heartbeat_seconds)

    def _report(self, node: Object) -> None:
        status, moment = node.get("status") or {}, now()
        have = {each["type"]: each for each in status.get("conditions") or []}
        for name, state, reason, message in NODE_CONDITIONS:
            old = have.get(name)
            if old is None or old["status"] == "Unknown":
                fresh = {"type": name, "status": state, "reason": reason, "message": message}
                have[name] = {**fresh, "lastTransitionTime": moment, "lastHeartbeatTime": moment}
            else:
                have[name] = {**old, "lastHeartbeatTime": moment}
        status = {"capacity": CAPACITY, "allocatable": CAPACITY, **status, "conditions": list(have.values())}
        self.store.put(NODES, node["metadata"]["name"], {**node, "status": status})

    def _renew(self, name: str) -> None:
        key = LEASES.key(LEASE_NAMESPACE, name)
        record = self.store.get(LEASES, key)
        if record is None:
            spec: Object = {"holderIdentity": name, "leaseDurationSeconds": LEASE_DURATION_SECONDS}
            body = {"metadata": {"name": name}, "spec": {**spec, "renewTime": now_micro()}}
            self.registry.create(LEASES, LEASE_NAMESPACE, body)
            return
        spec = {**record.value["spec"], "renewTime": now_micro()}
        self.store.put(LEASES, key, {**record.value, "spec": spec})

    def _look_at_pod(self, key: str) -> None:
        record = self.store.get(PODS, key)
        if record is None or self._node(record.value["spec"]["nodeName"]) is None:
            return
        pod = record.value
        if "deletionTimestamp" in pod["metadata"]:
            uid = pod["metadata"]["uid"]
            if uid not in self._ending:
                self._ending.add(uid)
                grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
                self.mark_later(f"end {key} {uid}", min(grace, self._termination_seconds))
        elif pod["status"].get("phase") == "Pending":
            self.store.put(PODS, key, {**pod, "status": _running_status(pod)})

    def _end(self, name: str) -> None:
        key, _, uid = name.partition(" ")
        self._ending.discard(uid)
        record = self.store.get(PODS, key)
        if record is None or record.value["metadata"]["uid"] != uid:
            return
        if self._node(record.value["spec"]["nodeName"]) is not None:
            namespace, _, pod = key.partition("/")
            delete(self.registry, PODS, namespace, pod, {"gracePeriodSeconds": 0})


def is_fake(node: Object) -> bool:
    """Return whether a node has a kubelet here."""
    return bool((node["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGED_VALUE)


def _needs_report(node: Object) -> bool:
    states = {each["type"]: each["status"] for each in (node.get("status") or {}).get("conditions") or []}
    return any(states.get(name, "Unknown") == "Unknown" for name, *_ in NODE_CONDITIONS)


def _report_age_seconds(node: Object) -> float:
    beats = [each["lastHeartbeatTime"] for each in node["status"]["conditions"] if each.get("lastHeartbeatTime")]
    return (parse(now()) - parse(max(beats))).total_seconds() if beats else float(REPORT_SECONDS)


def _running_status(pod: Object) -> Object:
    moment, status = now(), pod["status"]
    have = {each["type"]: each for each in status.get("conditions") or []}
    for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
        old = have.get(name)
        if old is None or old["status"] != "True":
            have[name] = {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": moment}
    containers = [
        {
            "name": each["name"],
            "image": each.get("image", ""),
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": moment}},
        }
        for each in pod["spec"].get("containers") or []
    ]
    return {
        **status,
        "phase": "Running",
        "startTime": status.get("startTime", moment),
        "conditions": list(have.values()),
        "containerStatuses": containers,
    }
