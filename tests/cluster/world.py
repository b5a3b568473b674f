"""A small world on a control plane: nodes and pods that a test makes, tells about, and leaves no trace of."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from testbed.client import ApiError, Kube, Object, until

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
MAINTENANCE = "maintenance"
MISSING = object()


def toleration(key: str, seconds: int | None = None) -> Object:
    """Return a toleration of the NoExecute taint with this key, for ever or for so many seconds."""
    timed = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **timed}


def taint(key: str, effect: str = "NoExecute", **rest: Any) -> Object:
    """Return a taint as the API spells it."""
    return {"key": key, "effect": effect, **rest}


class World:
    """Makes nodes and pods with names of its own; :meth:`leave` removes them.

    No kubelet runs here: a test says itself what a node or a pod reports, and pods have no grace period unless given.
    """

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self.namespace = f"world-{uuid4().hex[:8]}"
        self._nodes: list[str] = []
        self._volumes: list[str] = []

    async def enter(self) -> "World":
        """Make the namespace."""
        await self.kube.create("namespaces", {"metadata": {"name": self.namespace}})
        return self

    async def leave(self) -> None:
        """Delete what was made; pods at once, since no kubelet would end them."""
        for pod in await self.kube.list("pods", self.namespace):
            await self._delete("pods", self.namespace, pod["metadata"]["name"], gracePeriodSeconds=0)
        for budget in await self.kube.list("poddisruptionbudgets", self.namespace):
            await self._delete("poddisruptionbudgets", self.namespace, budget["metadata"]["name"])
        for name in self._nodes:
            await self._delete("nodes", "", name)
        for name in self._volumes:
            await self._delete("persistentvolumes", "", name)
        await self._delete("namespaces", "", self.namespace)

    async def _delete(self, resource: str, namespace: str, name: str, **options: Any) -> None:
        try:
            await self.kube.delete(resource, namespace, name, **options)
        except ApiError as error:
            if error.status != 404:
                raise

    # Nodes

    async def node(self, *taints: Object, zone: str = "a", ready: str = "True") -> str:
        """Make a node in this zone that reports Ready with this status; return its name."""
        name = f"{self.namespace}-{len(self._nodes)}"
        self._nodes.append(name)
        labels = {"topology.kubernetes.io/region": self.namespace, "topology.kubernetes.io/zone": zone}
        await self.kube.create("nodes", {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [*taints]}})
        await self.report(name, Ready=ready)
        return name

    async def nodes(self, count: int, zone: str = "a") -> list[str]:
        """Make several nodes that are ready."""
        return [await self.node(zone=zone) for _ in range(count)]

    async def report(self, node: str, **conditions: str) -> None:
        """Have a node report conditions: type to status."""
        status = {"conditions": [{"type": type_, "status": value} for type_, value in conditions.items()]}
        await self.kube.patch_status("nodes", "", node, status)

    async def set_taints(self, node: str, *taints: Object) -> None:
        """Replace all taints of a node, as an administrator would."""
        await self.kube.patch("nodes", "", node, {"spec": {"taints": [*taints]}})

    async def add_taint(self, node: str, added: Object) -> None:
        """Add a taint to those that the node has."""
        await self.set_taints(node, *(await self.taints(node)), added)

    async def taints(self, node: str) -> list[Object]:
        """Return the taints of a node."""
        found: list[Object] = (await self.kube.get("nodes", "", node))["spec"].get("taints", [])
        return found

    async def taint_ids(self, node: str) -> set[str]:
        """Return the taints of a node as ``key:effect``."""
        return {f"{each['key']}:{each['effect']}" for each in await self.taints(node)}

    # Pods

    async def pod(
        self,
        node: str,
        name: str,
        *tolerations: Object,
        grace: int = 0,
        volumes: Sequence[Object] = (),
        **metadata: Any,
    ) -> Object:
        """Make a pod on this node that runs and is ready; return it."""
        labels = {"app": name} | metadata.pop("labels", {})
        spec = {
            "nodeName": node,
            "containers": [{"name": "main", "image": "none"}],
            "terminationGracePeriodSeconds": grace,
            "tolerations": [*tolerations],
            "volumes": [*volumes],
        }
        body = {"metadata": {"name": name, "namespace": self.namespace, "labels": labels, **metadata}, "spec": spec}
        created = await self.kube.create("pods", body)
        await self.phase(name, "Running")
        return created

    async def phase(self, pod: str, phase: str) -> None:
        """Have a pod report its phase; a running pod is ready."""
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        await self.kube.patch_status("pods", self.namespace, pod, {"phase": phase, "conditions": [ready]})

    async def pods(self) -> set[str]:
        """Return the names of the pods that there are and that are not terminating."""
        pods = await self.kube.list("pods", self.namespace)
        return {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    async def gone(self, pod: str, seconds: float = 10.0) -> float:
        """Wait until a pod is gone or terminating; return the time then, on the event loop's clock."""
        await until(lambda: self._is_gone(pod), seconds)
        return asyncio.get_running_loop().time()

    async def _is_gone(self, pod: str) -> bool:
        return pod not in await self.pods()

    # Volumes

    async def volume(self, name: str, claim: str, node: str) -> None:
        """Make a volume with a disk of this node, bound to this claim."""
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "claimRef": {"namespace": self.namespace, "name": claim},
        }
        self._volumes.append(f"{self.namespace}-{name}")
        await self.kube.create("persistentvolumes", {"metadata": {"name": self._volumes[-1]}, "spec": spec})

    async def remove_volume(self, name: str) -> None:
        """Delete a volume."""
        await self.kube.delete("persistentvolumes", "", f"{self.namespace}-{name}")

    # Budgets

    async def budget(self, name: str, app: str, **spec: Any) -> None:
        """Make a disruption budget for the pods with this ``app`` label, and wait until it is observed."""
        selector = {"matchLabels": {"app": app}}
        metadata = {"name": name, "namespace": self.namespace}
        await self.kube.create("poddisruptionbudgets", {"metadata": metadata, "spec": {"selector": selector, **spec}})
        await self.observed(name)

    async def observed(self, name: str) -> None:
        """Wait until the disruption controller has caught up with a budget."""

        async def caught_up() -> bool:
            found = await self.kube.get("poddisruptionbudgets", self.namespace, name)
            return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

        await until(caught_up)

    # Events

    async def events(self, name: str) -> list[Object]:
        """Return the events that Taintkeeper sent about the node, or the world's own object, with this name.

        The oldest comes first. Objects of the same name that other worlds had may have left events of their own.
        """
        events = await self.kube.list("events", fieldSelector=f"involvedObject.name={name}")
        ours = [event for event in events if event.get("source", {}).get("component") == "taintkeeper"]
        ours = [event for event in ours if event["involvedObject"].get("namespace", "") in ("", self.namespace)]
        return sorted(ours, key=lambda event: int(event["metadata"]["resourceVersion"]))

    async def told(self, name: str, reason: str, text: str, seconds: float = 10.0) -> Object:
        """Wait for an event with this reason whose message holds the text; return it."""
        found: list[Object] = []

        async def there() -> bool:
            found[:] = [e for e in await self.events(name) if e["reason"] == reason and text in e["message"]]
            return bool(found)

        await until(there, seconds)
        return found[0]
