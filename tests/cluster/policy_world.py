"""EvictionPolicies on a control plane: their definition, and policies that a test makes and leaves no trace of."""

from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from testbed import Cluster
from testbed.client import MERGE, ApiError, Kube, Object, path_to, until
from testbed.embedded import EmbeddedCluster
from testbed.embedded.faults import Fault

FILE = Path(__file__).parents[2] / "crds" / "evictionpolicies.yaml"
POLICIES = "evictionpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FORGETTING_SECONDS = 60.0
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def policy(spec: Any, name: str) -> Object:
    """Return an EvictionPolicy."""
    return {
        "apiVersion": "taintkeeper.io/v1alpha1",
        "kind": "EvictionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def definition(*, checked: bool = True) -> Object:
    """Return the definition; without its checks it is as good as on an API server that knows no CEL."""
    made: Object = yaml.safe_load(FILE.read_text())
    if not checked:
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = ANYTHING
    return made


class Policies:
    """Makes policies with names of their own; :meth:`leave` removes them.

    Whoever makes or edits one while an operator works waits with :meth:`obeyed` until that has taken it in.
    """

    def __init__(self, kube: Kube, cluster: Cluster) -> None:
        self._kube = kube
        self._cluster = cluster
        self._made: list[str] = []
        self._fault: Fault | None = None

    async def enter(self) -> "Policies":
        """Install the definition, in place of any other that a test may have left."""
        await self.define()
        return self

    async def define(self, *, checked: bool = True) -> None:
        """Install the definition and wait until it is served; an embedded server knows it by heart, and no checks."""
        if isinstance(self._cluster, EmbeddedCluster):
            if self._fault is not None:
                self._cluster.faults.remove(self._fault)
                self._fault = None
            return
        made = definition(checked=checked)
        answer = await self._kube.request("POST", DEFINITIONS, made)
        if answer.status == 409:
            answer = await self._kube.request("PATCH", f"{DEFINITIONS}/{made['metadata']['name']}", made, MERGE)
        assert answer.status in {200, 201}, answer.body

        async def served() -> bool:
            try:
                await self._kube.create(POLICIES, policy({"mode": "Force"}, f"probe-{uuid4().hex[:8]}"))
            except ApiError as error:
                return checked and error.status == 422
            return not checked

        await until(served)

    async def undefine(self) -> None:
        """Delete the definition and with it all policies, and wait until the resource is no longer served."""
        if isinstance(self._cluster, EmbeddedCluster):
            for name in self._made:
                await self._kube.delete(POLICIES, "", name)
            self._made.clear()
            self._fault = self._cluster.faults.add(Fault(path="^/apis/taintkeeper.io", status=404))
            self._cluster.cut_watches(POLICIES)
        else:
            await self._kube.request("DELETE", f"{DEFINITIONS}/{POLICIES}.taintkeeper.io")
        await until(self._is_unknown, FORGETTING_SECONDS)

    async def _is_unknown(self) -> bool:
        return (await self._kube.request("GET", path_to(POLICIES))).status == 404

    async def leave(self) -> None:
        """Delete what was made, and what was made to see whether the definition is served."""
        if await self._is_unknown():
            return
        for found in await self._kube.list(POLICIES):
            name = found["metadata"]["name"]
            if name in self._made or name.startswith("probe-"):
                await self._kube.delete(POLICIES, "", name)

    async def make(self, name: str = "", **spec: Any) -> str:
        """Make a policy; return its name, which ends with the one that is given."""
        name = f"policy-{uuid4().hex[:8]}{name and '-'}{name}"
        self._made.append(name)
        await self._kube.create(POLICIES, policy(spec, name))
        return name

    async def edit(self, name: str, **spec: Any) -> None:
        """Change fields of a policy; None takes one away."""
        await self._kube.patch(POLICIES, "", name, {"spec": spec})

    async def delete(self, name: str) -> None:
        """Delete a policy."""
        await self._kube.delete(POLICIES, "", name)

    async def obeyed(self, *names: str, seconds: float = 15.0) -> None:
        """Wait until an operator has told of these policies as they are now, in their status."""
        for name in names:
            await until(partial(self._is_obeyed, name), seconds)

    async def _is_obeyed(self, name: str) -> bool:
        found = await self._kube.get(POLICIES, "", name)
        return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

    async def status(self, name: str) -> Object:
        """Return the status of a policy; nothing before it has one."""
        found: Object = (await self._kube.get(POLICIES, "", name)).get("status", {})
        return found

    async def condition(self, name: str, type_: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition."""
        found = next(each for each in (await self.status(name))["conditions"] if each["type"] == type_)
        return found["status"], found["reason"], found["message"]

    async def tells(self, name: str, type_: str, *told: str) -> None:
        """Wait until a condition has this status, reason and message."""

        async def as_told() -> bool:
            return await self.condition(name, type_) == told

        await until(as_told)

    async def counts(self, name: str, seconds: float = 15.0, **numbers: int) -> None:
        """Wait until the status tells these numbers."""
        told: Object = {}

        async def as_told() -> bool:
            told.update(await self.status(name))
            return all(told.get(field) == number for field, number in numbers.items())

        try:
            await until(as_told, seconds)
        except TimeoutError:
            raise AssertionError(f"told {told}, not {numbers}") from None
