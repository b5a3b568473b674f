"""The scale subresource of workloads: one number in a different wrapping."""

from typing import Any

from testbed.embedded import patching
from testbed.embedded.registry import Registry
from testbed.embedded.resources import Kind, Object
from testbed.embedded.store import Record


def scale_of(record: Record) -> Object:
    """Return the ``Scale`` object of a workload."""
    value = record.value
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = value["spec"]["selector"].get("matchLabels", {})
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: value["metadata"][name] for name in names},
        "spec": {"replicas": value["spec"]["replicas"]},
        "status": {
            "replicas": value["status"].get("replicas", 0),
            "selector": ",".join(f"{key}={text}" for key, text in labels.items()),
        },
    }


def rescale(registry: Registry, kind: Kind, namespace: str, name: str, content_type: str | None, body: Any) -> Object:
    """Set the number of replicas from a ``Scale`` object, or from a patch of one, and return the new ``Scale``.

    Raises:
        Failure: 404 without such a workload, 409 when it has been modified meanwhile.
    """
    scale = scale_of(registry.get(kind, namespace, name))
    wanted = body if content_type is None else patching.apply_patch(kind, content_type, scale, body)
    patch: Object = {"spec": {"replicas": wanted["spec"].get("replicas", 0)}}
    if version := wanted["metadata"].get("resourceVersion"):
        patch["metadata"] = {"resourceVersion": version}
    return scale_of(registry.patch(kind, namespace, name, patching.MERGE, patch))
