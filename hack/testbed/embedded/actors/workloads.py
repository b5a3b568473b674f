"""The workload controllers: Deployments keep a ReplicaSet, ReplicaSets keep pods, DaemonSets one per fitting node.

A Deployment with a new template replaces all of its pods at once. Unlike the real one, the DaemonSet controller here
leaves pods alone on nodes they no longer tolerate: evicting those is what is to be watched.
"""

import hashlib
from typing import ClassVar

import msgspec

from testbed.embedded.actors.base import Actor, controller_of, is_active, name_of
from testbed.embedded.actors.scheduler import UNSCHEDULABLE, fits
from testbed.embedded.admission import NOT_READY, UNREACHABLE
from testbed.embedded.deletion import delete
from testbed.embedded.eviction import is_ready
from testbed.embedded.registry import Registry
from testbed.embedded.resources import DAEMON_SETS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS, Kind, Object
from testbed.embedded.store import Change

KINDS: dict[str, Kind] = {kind.kind: kind for kind in (DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS)}

PRESSURES = ("disk-pressure", "memory-pressure", "pid-pressure")
DAEMON_TOLERATIONS: list[Object] = [
    {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"},
    {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"},
    *({"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": "NoSchedule"} for each in PRESSURES),
    {"key": UNSCHEDULABLE, "operator": "Exists", "effect": "NoSchedule"},
]
"""What the DaemonSet controller adds to its pods."""


class Workloads(Actor):
    """Looks at the workload whose template, pods or nodes have changed."""

    name: ClassVar[str] = "workloads"

    def __init__(self, registry: Registry) -> None:
        self._owned: dict[str, set[tuple[Kind, str]]] = {}
        super().__init__(registry)

    def notice(self, change: Change) -> None:
        """Keep the index of what is owned; mark the workload, the owner, or every DaemonSet when a node changes."""
        value, kind = change.record.value, change.record.kind
        if kind in {PODS, REPLICA_SETS} and (owner := controller_of(value)) is not None:
            owned = self._owned.setdefault(owner["uid"], set())
            if change.type == "DELETED":
                owned.discard((kind, name_of(value)))
            else:
                owned.add((kind, name_of(value)))
            self.mark(f"{owner['kind']} {value['metadata']['namespace']}/{owner['name']}")
        if kind.kind in KINDS and change.type != "DELETED":
            self.mark(f"{kind.kind} {name_of(value)}")
        elif kind is NODES and (change.previous is None or _changed(change.previous.value, value)):
            for record in self.store.records(DAEMON_SETS):
                self.mark(f"DaemonSet {name_of(record.value)}")

    def look(self, key: str) -> None:
        """Make a workload what its spec says, one step at a time."""
        name, _, identity = key.partition(" ")
        kind = KINDS.get(name)
        record = self.store.get(kind, identity) if kind else None
        if kind is None or record is None or "deletionTimestamp" in record.value["metadata"]:
            return
        workload = record.value
        if kind is DEPLOYMENTS:
            status = self._look_at_deployment(workload)
        elif kind is REPLICA_SETS:
            status = self._look_at_replica_set(workload)
        else:
            status = self._look_at_daemon_set(workload)
        status["observedGeneration"] = workload["metadata"]["generation"]
        if status != workload.get("status"):
            self.store.put(kind, identity, {**workload, "status": status})

    def _of(self, workload: Object, kind: Kind) -> list[Object]:
        keys = sorted(key for each, key in self._owned.get(workload["metadata"]["uid"], ()) if each is kind)
        records = [self.store.get(kind, key) for key in keys]
        return [record.value for record in records if record is not None]

    def _look_at_deployment(self, deployment: Object) -> Object:
        metadata, spec = deployment["metadata"], deployment["spec"]
        digest = hashlib.sha256(msgspec.json.encode(spec["template"], order="sorted")).hexdigest()[:10]
        name = f"{metadata['name']}-{digest}"
        sets = self._of(deployment, REPLICA_SETS)
        current = next((each for each in sets if each["metadata"]["name"] == name), None)
        if current is None:
            current = self._create_replica_set(deployment, name, digest)
        for each in sets:
            self._rescale(each, spec["replicas"] if each["metadata"]["name"] == name else 0)
        status = {key: value for key, value in current["status"].items() if key != "fullyLabeledReplicas"}
        return {**status, "updatedReplicas": status.get("replicas", 0)}

    def _create_replica_set(self, deployment: Object, name: str, digest: str) -> Object:
        spec, extra = deployment["spec"], {"pod-template-hash": digest}
        template = _labelled(spec["template"], extra)
        selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), **extra}}
        owned = {"replicas": spec["replicas"], "selector": selector, "template": template}
        labels = template["metadata"]["labels"]
        metadata = {"name": name, "labels": labels, "ownerReferences": [_owner(deployment, DEPLOYMENTS)]}
        body = {"metadata": metadata, "spec": owned}
        return self.registry.create(REPLICA_SETS, deployment["metadata"]["namespace"], body).value

    def _rescale(self, replica_set: Object, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            spec = {**replica_set["spec"], "replicas": replicas}
            metadata = {**replica_set["metadata"], "generation": replica_set["metadata"]["generation"] + 1}
            value = {**replica_set, "metadata": metadata, "spec": spec}
            self.store.put(REPLICA_SETS, name_of(replica_set), value)

    def _look_at_replica_set(self, replica_set: Object) -> Object:
        pods = [pod for pod in self._of(replica_set, PODS) if is_active(pod)]
        wanted = replica_set["spec"]["replicas"]
        template = replica_set["spec"]["template"]
        pods += [self._create_pod(replica_set, REPLICA_SETS, template) for _ in range(wanted - len(pods))]
        # Those that do not run yet go first, as they serve nobody.
        surplus = sorted(pods, key=is_ready)[: max(len(pods) - wanted, 0)]
        for pod in surplus:
            delete(self.registry, PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], {})
        remaining = [pod for pod in pods if pod not in surplus]
        ready = sum(map(is_ready, remaining))
        counts = {"replicas": len(remaining), "fullyLabeledReplicas": len(remaining)}
        return {**counts, **({"readyReplicas": ready, "availableReplicas": ready} if ready else {})}

    def _look_at_daemon_set(self, daemon_set: Object) -> Object:
        template = daemon_set["spec"]["template"]
        spec = {**template["spec"], "tolerations": [*(template["spec"].get("tolerations") or []), *DAEMON_TOLERATIONS]}
        pods = {pod["spec"]["nodeName"]: pod for pod in self._of(daemon_set, PODS) if is_active(pod)}
        fitting = [each.value["metadata"]["name"] for each in self.store.records(NODES) if fits(spec, each.value)]
        for node in sorted(set(fitting) - set(pods)):
            bound = {**template, "spec": {**spec, "nodeName": node}}
            pods[node] = self._create_pod(daemon_set, DAEMON_SETS, bound)
        return {
            "currentNumberScheduled": len(pods),
            "desiredNumberScheduled": len(fitting),
            "numberMisscheduled": len(set(pods) - set(fitting)),
            "numberReady": sum(is_ready(pod) for pod in pods.values()),
        }

    def _create_pod(self, owner: Object, kind: Kind, template: Object) -> Object:
        metadata = {
            **template.get("metadata", {}),
            "generateName": f"{owner['metadata']['name']}-",
            "ownerReferences": [_owner(owner, kind)],
        }
        body = {"metadata": metadata, "spec": template["spec"]}
        return self.registry.create(PODS, owner["metadata"]["namespace"], body).value


def _labelled(template: Object, extra: dict[str, str]) -> Object:
    metadata = template.get("metadata", {})
    return {**template, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **extra}}}


def _owner(workload: Object, kind: Kind) -> Object:
    metadata = workload["metadata"]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _changed(old: Object, new: Object) -> bool:
    """Return whether a node changed in a way that a DaemonSet looks at: not with every heartbeat."""
    return bool(
        old.get("spec") != new.get("spec")
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or _ready_state(old) != _ready_state(new)
    )


def _ready_state(node: Object) -> list[str]:
    conditions = (node.get("status") or {}).get("conditions") or []
    return [each["status"] for each in conditions if each["type"] == "Ready"]
