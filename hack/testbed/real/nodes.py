"""Nodes whose kubelet is kwok."""

from typing import Any

MANAGED_LABEL = "kwok.x-k8s.io/node"
MANAGED_VALUE = "fake"


def fake_node(name: str, zone: str) -> dict[str, Any]:
    """Return a node as its kubelet would create it. Kwok fills in its status."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                MANAGED_LABEL: MANAGED_VALUE,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": zone,
            },
            "annotations": {MANAGED_LABEL: MANAGED_VALUE},
        },
    }


def management(*, managed: bool) -> dict[str, Any]:
    """Return the merge patch that gives a node to kwok or takes it away.

    Only the label counts here. The annotation, which says the same by kwok's convention, is kept in step with it.
    """
    value = MANAGED_VALUE if managed else None
    return {"metadata": {"labels": {MANAGED_LABEL: value}, "annotations": {MANAGED_LABEL: value}}}


def is_ready(node: dict[str, Any]) -> bool:
    """Say whether a node reports Ready=True."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
