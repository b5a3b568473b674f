"""The objects of the demo."""

from testbed.client import Object
from testbed.real.nodes import fake_node

NAMESPACE = "taintkeeper-demo"
NODE_LABEL = "taintkeeper.io/demo"
IMAGE = "registry.k8s.io/pause:3.10"
ZONES = ("zone-1", "zone-2")
NODES_PER_ZONE = 3

MAINTENANCE: Object = {"key": "maintenance", "value": "true", "effect": "NoExecute"}
BATCH_SECONDS = 5
WEB_SECONDS = 3
DB_REPLICAS = 2
WEB_SPARE = 2
"""How many pods of web may be missing: as many as can be on one node."""

MIRROR_HASH = "0123456789abcdef0123456789abcdef"


def namespace() -> Object:
    """Return the namespace that everything lives in."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def nodes() -> list[Object]:
    """Return the nodes of a cluster of our own, in turn in each zone."""
    names = [f"node-{index + 1}" for index in range(NODES_PER_ZONE * len(ZONES))]
    made = [fake_node(name, ZONES[index % len(ZONES)]) for index, name in enumerate(names)]
    for node in made:
        node["metadata"]["labels"][NODE_LABEL] = "true"
    return made


def is_for_demo(node: Object) -> bool:
    """Say whether the demo may use a node."""
    return (node["metadata"].get("labels") or {}).get(NODE_LABEL) == "true"


def web_replicas(node_count: int) -> int:
    """Return how many pods web has: one on each node, and more than its budget may miss."""
    return max(node_count, 2 * WEB_SPARE)


def workloads(node_count: int) -> list[tuple[str, Object]]:
    """Return what runs on every cluster, each with its resource: two Deployments with budgets, and a DaemonSet."""
    replicas = web_replicas(node_count)
    brief = [_tolerates(f"node.kubernetes.io/{key}", WEB_SECONDS) for key in ("not-ready", "unreachable")]
    return [
        ("poddisruptionbudgets", _budget("web", replicas - WEB_SPARE)),
        ("poddisruptionbudgets", _budget("db", DB_REPLICAS)),
        ("deployments", _deployment("web", replicas, brief)),
        ("deployments", _deployment("db", DB_REPLICAS, [])),
        ("daemonsets", _daemon_set("agent")),
    ]


def cache(node: str) -> Object:
    """Return a pod with the tolerations that every pod gets from the API server: 300 s for a node that is not ready."""
    return _pod("cache", node, [])


def batch(node: str) -> Object:
    """Return a pod that tolerates maintenance for a few seconds."""
    return _pod("batch", node, [_tolerates(MAINTENANCE["key"], BATCH_SECONDS)])


def monitor(node: str) -> Object:
    """Return a pod that tolerates maintenance for ever."""
    return _pod("monitor", node, [_tolerates(MAINTENANCE["key"])])


def mirror(node: str) -> Object:
    """Return the API's image of a static pod. It tolerates nothing, yet nobody but its kubelet can end it."""
    pod = _pod("static", node, [])
    notes = {"kubernetes.io/config.mirror": MIRROR_HASH, "kubernetes.io/config.hash": MIRROR_HASH}
    pod["metadata"] |= {"name": f"static-{node}", "annotations": {**notes, "kubernetes.io/config.source": "file"}}
    return pod


def _metadata(name: str) -> Object:
    return {"name": name, "namespace": NAMESPACE, "labels": {"app": name}}


def _tolerates(key: str, seconds: int | None = None) -> Object:
    timed = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **timed}


def _spec(tolerations: list[Object]) -> Object:
    return {
        "containers": [{"name": "main", "image": IMAGE}],
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "tolerations": tolerations,
    }


def _pod(app: str, node: str, tolerations: list[Object]) -> Object:
    # Bound by its name, past the scheduler: the story needs it on this node.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(app),
        "spec": {**_spec(tolerations), "nodeName": node},
    }


def _budget(app: str, least: int) -> Object:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": _metadata(app), "spec": spec}


def _deployment(app: str, replicas: int, tolerations: list[Object]) -> Object:
    selector = {"matchLabels": {"app": app}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": selector,
    }
    pod_spec = {**_spec(tolerations), "nodeSelector": {NODE_LABEL: "true"}, "topologySpreadConstraints": [spread]}
    template = {"metadata": {"labels": {"app": app}}, "spec": pod_spec}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(app), "spec": spec}


def _daemon_set(app: str) -> Object:
    everything: Object = {"operator": "Exists"}
    pod_spec = {**_spec([everything]), "nodeSelector": {NODE_LABEL: "true"}}
    template = {"metadata": {"labels": {"app": app}}, "spec": pod_spec}
    spec = {"selector": {"matchLabels": {"app": app}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": _metadata(app), "spec": spec}
