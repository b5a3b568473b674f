"""Objects as a real API server sends them, with all that the operator has no use for."""

from typing import Any

BORN = "2026-01-01T00:00:00Z"
BAD_TIMES: tuple[Any, ...] = (
    *("0000-01-01T00:00:00Z", "-0001-12-31T10:00:00Z", "10000-01-01T13:59:59Z"),
    *("2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "yesterday", "", 5, 1e300, True, [], {"seconds": 5}),
)
"""What stands where a time should be: first what a real API server may send, then what it should not."""


def metadata(name: str, *, namespace: str = "", **more: Any) -> dict[str, Any]:
    """Return the metadata of an object; its UID is its name with "-uid" behind it unless ``uid`` says otherwise."""
    where = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        **where,
        "uid": f"{name}-uid",
        "resourceVersion": "17",
        "generation": 1,
        "creationTimestamp": BORN,
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:metadata": {}}}],
        **more,
    }


def node(name: str = "n1", *taints: dict[str, Any], meta: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a node that is ready; ``conditions`` may be given as a mapping of type to status."""
    conditions = more.pop("conditions", {"MemoryPressure": "False", "Ready": "True"})
    spec = {"podCIDR": "10.0.0.0/24", "providerID": f"example://{name}", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, **(meta or {})),
        "spec": spec | ({"taints": list(taints)} if taints else {}),
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "reason": f"Kubelet{type_}",
                    "message": "as it is",
                    "lastHeartbeatTime": BORN,
                    "lastTransitionTime": BORN,
                }
                for type_, status in conditions.items()
            ],
            "images": [{"names": ["example.com/app:1"], "sizeBytes": 1_000}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Linux"},
        },
    }


def pod(
    name: str = "p1",
    *,
    meta: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a running pod on node n1 that tolerates nothing."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace="default", **(meta or {})),
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "image": "example.com/app:1", "resources": {"limits": {"cpu": "1"}}}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            **(spec or {}),
        },
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}], "qosClass": "Burstable", **(status or {})},
    }


def condition(type_: str, status: str = "True", at: str | None = BORN) -> dict[str, Any]:
    """Return a condition of a pod."""
    return {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": at}


def budget(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """Return a disruption budget over everything that allows one disruption."""
    seen = {
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "disruptionsAllowed": 1,
        "expectedPods": 3,
        "observedGeneration": 1,
    }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata("b1", namespace="default", **meta),
        "spec": {"minAvailable": 2, "selector": {}} if spec is None else spec,
        "status": seen if status is None else status,
    }
