"""What the conformance tests are written in: a row per call with the answer expected, and a world to make it in."""

import secrets
import string
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from testbed.client import ApiError, Kube, until

Object = dict[str, Any]
Step = Callable[["World"], Awaitable[None]]
"""Something to do or to check before or after a call."""

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

POD: Final = "/api/v1/namespaces/$ns/pods/p"
"""The pod that most calls are about."""

ABSENT: Final = object()
"""Expected of a field: not to be there."""

MISSING: Final = object()
"""Stands for a field that was not answered."""

NULL: Final = object()
"""Expected of a field: to be there, as null."""

READY: Final = {"type": "Ready", "status": "True"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One call and what every API server has to answer; ``$names`` in it are filled in from the world."""

    name: str
    given: Step | None = None
    """What has to be there before."""
    method: str
    path: str
    body: Any = None
    params: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    status: int
    answer: Any = None
    """What the body of the answer has to contain."""
    headers: Mapping[str, Any] = field(default_factory=dict)
    then: Step | None = None
    """What has to be true afterwards."""


class World:
    """A namespace and a node without kubelet for one test, and the names that its calls may use."""

    def __init__(self, kube: Kube) -> None:
        mark = secrets.token_hex(4)
        self.kube = kube
        self.namespace = f"conformance-{mark}"
        self.node = f"conformance-{mark}"
        self.names: dict[str, str] = {"ns": self.namespace, "node": self.node, "none": f"none-{mark}"}

    async def __aenter__(self) -> Self:
        await self.kube.create("namespaces", {"metadata": {"name": self.namespace}})
        # The annotation is the one that a controller would add soon, and with it a version in the middle of a test.
        metadata = {"name": self.node, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}}
        node = await self.kube.create("nodes", {"metadata": metadata})
        self.remember("node", node)
        return self

    async def __aexit__(self, *_: object) -> None:
        for pod in await self.kube.list("pods", self.namespace):
            if pod["metadata"].get("finalizers"):
                await self.kube.patch(
                    "pods", self.namespace, pod["metadata"]["name"], {"metadata": {"finalizers": None}}
                )
            await self._delete("pods", self.namespace, pod["metadata"]["name"])
        await self._delete("namespaces", "", self.namespace)
        await self._delete("nodes", "", self.node)

    async def _delete(self, resource: str, namespace: str, name: str) -> None:
        try:
            await self.kube.delete(resource, namespace, name, gracePeriodSeconds=0)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise

    def remember(self, what: str, found: Object) -> None:
        """Have ``$what_uid`` and ``$what_version`` stand for those of an object."""
        self.names[f"{what}_uid"] = found["metadata"]["uid"]
        self.names[f"{what}_version"] = found["metadata"]["resourceVersion"]

    def fill(self, value: Any) -> Any:
        """Return a value with every ``$name`` in it replaced."""
        if isinstance(value, str):
            return string.Template(value).safe_substitute(self.names)
        if isinstance(value, Mapping):
            return {self.fill(key): self.fill(each) for key, each in value.items()}
        return [self.fill(each) for each in value] if isinstance(value, list) else value

    async def pod(
        self, name: str = "p", *, ready: bool = True, phase: str = "Running", bound: bool = True, **metadata: Any
    ) -> Object:
        """Create a pod in a given state and remember it under its name."""
        spec: Object = {"containers": [{"name": "c", "image": "example.com/c"}]}
        spec |= {"nodeName": self.node} if bound else {"schedulerName": "nobody"}
        body = {
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"app": "x"}, **metadata},
            "spec": spec,
        }
        await self.kube.create("pods", body)
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"phase": phase, "conditions": conditions}
        found = await self.kube.patch_status("pods", self.namespace, name, status)
        self.remember(name, found)
        return found

    async def budget(self, name: str = "b", *, settled: bool = True, **spec: Any) -> None:
        """Create a budget for the pods of the test and wait until its status counts them."""
        body = {
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
        }
        await self.kube.create("poddisruptionbudgets", body)
        if settled:
            await until(lambda: self._counted(name))

    async def _counted(self, name: str) -> bool:
        status = (await self.kube.get("poddisruptionbudgets", self.namespace, name))["status"]
        pods = await self.kube.list("pods", self.namespace, labelSelector="app=x")
        ready = [each for pod in pods for each in pod["status"]["conditions"] if differ(READY, each) == []]
        return bool(status.get("observedGeneration") and status["currentHealthy"] == len(ready))


async def check(world: World, row: Row) -> None:
    """Make the call of a row and compare the answer."""
    if row.given is not None:
        await row.given(world)
    answer = await world.kube.request(
        row.method, world.fill(row.path), world.fill(row.body), row.content_type, world.fill(row.params)
    )
    assert answer.status == row.status, answer.body
    differences = list(differ(world.fill(row.answer), answer.body))
    assert not differences, answer.body
    for name, value in row.headers.items():
        assert answer.headers.get(name, ABSENT) == value
    if row.then is not None:
        await row.then(world)


def differ(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Return where a value does not contain what is expected: objects may have more fields, lists must be as long."""
    if expected is None:
        return []
    if expected is ABSENT:
        return [f"{path} is there"] if actual is not MISSING else []
    if expected is NULL:
        return [f"{path} is {actual!r}"] if actual is not None else []
    if isinstance(expected, Mapping):
        found = actual if isinstance(actual, Mapping) else {}
        return [
            each for key, value in expected.items() for each in differ(value, found.get(key, MISSING), f"{path}.{key}")
        ]
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            return [f"{path} is {actual}"]
        both = enumerate(zip(expected, actual, strict=True))
        return [each for index, pair in both for each in differ(*pair, f"{path}[{index}]")]
    return [] if expected == actual else [f"{path} is {actual!r}, not {expected!r}"]


def failure(reason: Any, message: str | None = None, **details: Any) -> Object:
    """Return what a failed call's ``Status`` has to contain."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason}
    if message is not None:
        status["message"] = message
    return {**status, "details": details} if details else status


def cause(reason: str, where: str | None = None, message: str | None = None) -> Object:
    """Return what a cause in ``details.causes`` has to contain."""
    return {"reason": reason, "field": where, "message": message}


def pod(**state: Any) -> Step:
    """Return the step that makes the pod ``p`` in this state."""

    async def given(world: World) -> None:
        await world.pod(**state)

    return given


async def is_gone(world: World) -> None:
    """Check that the pod ``p`` is no more."""
    assert (await world.kube.request("GET", world.fill(POD))).status == 404


async def is_untouched(world: World) -> None:
    """Check that nothing happened to the pod ``p``."""
    found = await world.kube.get("pods", world.namespace, "p")
    assert "deletionTimestamp" not in found["metadata"]
    assert not [each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget"]


async def terminating_pod(world: World) -> None:
    """Make the pod ``p`` and start its eviction."""
    await world.pod()
    assert (await world.kube.evict(world.namespace, "p")).status == 201
