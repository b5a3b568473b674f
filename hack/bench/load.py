"""Fills a cluster, at over a thousand objects a second."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial

from bench.command import say
from testbed.client import Kube, Object

NAMESPACE = "bench"
LEASES = "kube-node-lease"
CREATORS = 24
TELL_SECONDS = 10.0

NOT_TAINTED = {"kube-apiserver": ["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"]}
"""Flags with which nodes are made without the taint that somebody would have to take away again."""
LABELS = {
    f"{prefix}kubernetes.io/{name}": value
    for prefix in ("", "beta.")
    for name, value in {"os": "linux", "arch": "amd64"}.items()
}


def small_node(name: str, zone: str = "zone-1") -> Object:
    """Return a node that is ready, and that nobody has to label."""
    labels = LABELS | {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    kinds = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": f"Kubelet{kind}",
            "message": "as the kubelet of a real node has it, in about as many words as this",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, status in kinds.items()
    ]
    return {"metadata": {"name": name, "labels": labels}, "status": {"conditions": conditions}}


def large_node(name: str, zone: str = "zone-1") -> Object:
    """Return a node of 10 KB, most of it images, as real ones have them."""
    node = small_node(name, zone)
    image = "registry.example.com/team/application"
    node["status"]["images"] = [
        {"names": [f"{image}-{number}@sha256:{number:064x}", f"{image}-{number}:v1.{number}"], "sizeBytes": 100_000_000}
        for number in range(50)
    ]
    return node


def small_pod(name: str, node: str, namespace: str = NAMESPACE, **spec: object) -> Object:
    """Return a pod that is gone as soon as it is evicted."""
    container = {"name": "main", "image": "none"}
    whole = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": "small"}}, "spec": whole}


def large_pod(name: str, node: str, app: int) -> Object:
    """Return a pod of 4 KB of one of many applications."""
    pod = small_pod(name, node)
    variables = [{"name": f"VARIABLE_{number}", "value": "x" * 60} for number in range(20)]
    pod["spec"]["containers"][0] |= {"env": variables, "image": f"registry.example.com/app-{app}:v1"}
    pod["metadata"]["labels"] = {"app": f"app-{app}", "pod-template-hash": f"{app:010}"}
    return pod


def lease(node: str) -> Object:
    """Return the Lease of a node."""
    spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"metadata": {"name": node, "namespace": LEASES}, "spec": spec}


async def make_namespace(kube: Kube, name: str = NAMESPACE) -> None:
    """Make a namespace for pods."""
    await kube.create("namespaces", {"metadata": {"name": name}})


async def create(kube: Kube, resource: str, objects: Iterable[Object], what: str) -> float:
    """Create objects, tell how far it is, and return how many there were a second."""
    begun = told = time.monotonic()
    made = 0

    async def one(body: Object) -> None:
        nonlocal made, told
        await kube.create(resource, body)
        made += 1
        if time.monotonic() - told > TELL_SECONDS:
            told = time.monotonic()
            say(f"  {made} {what}, {made / (told - begun):.0f} a second")

    await in_parallel(partial(one, body) for body in objects)
    return made / (time.monotonic() - begun)


async def in_parallel(work: Iterable[Callable[[], Awaitable[object]]], at_once: int = CREATORS) -> None:
    """Do all of this, so much of it at a time."""
    waiting: Iterator[Callable[[], Awaitable[object]]] = iter(work)

    async def some() -> None:
        for call in waiting:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(some())
