"""What the API fills in when an object is created or changed: defaults, and what its built-in admission adds."""

from collections.abc import Callable
from typing import Any

from testbed.embedded.failures import Cause, Failure, forbidden, not_found
from testbed.embedded.resources import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    Kind,
    Object,
)
from testbed.embedded.store import Store

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
DEFAULT_TOLERATION_SECONDS = 300

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

POD_DEFAULTS: Object = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
EVENT_DEFAULTS: Object = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
CONTAINER_DEFAULTS: Object = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}


def check_namespace(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Check that new content may be created in a namespace.

    Raises:
        Failure: 404, it does not exist; 403, it is being deleted.
    """
    if not kind.namespaced:
        return
    record = store.get(NAMESPACES, namespace)
    if record is None:
        raise not_found(NAMESPACES, namespace)
    if record.value["status"]["phase"] == "Terminating":
        raise _terminating(kind, namespace, name)


def _terminating(kind: Kind, namespace: str, name: str) -> Failure:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    return forbidden(kind, name, why, (cause,))


def completed(store: Store, kind: Kind, value: Object) -> Object:
    """Return a new object with the defaults of its kind.

    Raises:
        Failure: 403, a pod asks for a priority it may not have.
    """
    if kind is PODS:
        return _pod(store, value)
    if kind.custom:
        return {key: each for key, each in value.items() if key != "status"}
    complete = _COMPLETE.get(kind)
    return complete(value) if complete else value


def _node(value: Object) -> Object:
    spec = value.get("spec") or {}
    taints = spec.get("taints") or []
    if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        taints = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
    return {**value, "spec": {**spec, "taints": taints}, "status": value.get("status") or {}}


def _namespace(value: Object) -> Object:
    metadata = value["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    spec = {"finalizers": ["kubernetes"]}
    return {**value, "metadata": {**metadata, "labels": labels}, "spec": spec, "status": {"phase": "Active"}}


def _workload(value: Object) -> Object:
    return {**value, "spec": {"replicas": 1, **(value.get("spec") or {})}, "status": {}}


def _daemon_set(value: Object) -> Object:
    return {**value, "status": {}}


def _budget(value: Object) -> Object:
    counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    return {**value, "status": dict.fromkeys(counts, 0)}


def _event(value: Object) -> Object:
    return {**EVENT_DEFAULTS, **value}


def _lease(value: Object) -> Object:
    return {**value, "spec": value.get("spec") or {}}


def _pod(store: Store, value: Object) -> Object:
    spec = {**POD_DEFAULTS, **(value.get("spec") or {})}
    containers = [{**CONTAINER_DEFAULTS, **each} for each in spec.get("containers") or []]
    tolerations = with_default_tolerations(spec.get("tolerations") or [])
    priority = _priority(store, value["metadata"], spec)
    spec |= {"containers": containers, "tolerations": tolerations, "priority": priority}
    return {**value, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


_COMPLETE: dict[Kind, Callable[[Object], Object]] = {
    NODES: _node,
    NAMESPACES: _namespace,
    DEPLOYMENTS: _workload,
    REPLICA_SETS: _workload,
    DAEMON_SETS: _daemon_set,
    BUDGETS: _budget,
    EVENTS: _event,
    LEASES: _lease,
}


def with_default_tolerations(tolerations: list[Any]) -> list[Any]:
    """Return the tolerations of a pod with those for not-ready and unreachable nodes, unless it has its own."""
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_TOLERATION_SECONDS}
        for key in (NOT_READY, UNREACHABLE)
        if not any(
            each.get("key", "") in {"", key} and each.get("effect", "") in {"", "NoExecute"} for each in tolerations
        )
    ]
    return [*tolerations, *added]


def _priority(store: Store, metadata: Object, spec: Object) -> int:
    name = spec.get("priorityClassName", "")
    computed = SYSTEM_PRIORITIES.get(name, 0)
    if name and name not in SYSTEM_PRIORITIES:
        record = store.get(PRIORITY_CLASSES, name)
        if record is None:
            raise forbidden(PODS, metadata["name"], f"no PriorityClass with name {name} was found")
        computed = record.value["value"]
    if spec.get("priority", computed) != computed:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name"
        )
        raise forbidden(PODS, metadata["name"], why)
    return computed
