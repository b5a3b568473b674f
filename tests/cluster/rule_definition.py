"""Installs the definition of NodeTaintRule on a control plane, and removes it."""

from pathlib import Path
from typing import Any

import yaml

from testbed import Cluster
from testbed.client import MERGE, ApiError, Kube, until
from testbed.embedded import EmbeddedCluster
from testbed.embedded.faults import Fault

FILE = Path(__file__).parents[2] / "crds" / "nodetaintrules.yaml"
RULES = "nodetaintrules"
RULES_PATH = f"/apis/taintkeeper.io/v1alpha1/{RULES}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FORGETTING_SECONDS = 60.0
CHECKS = "x-kubernetes-validations"
NONSENSE = {
    "condition": {"type": "KernelDeadlock", "status": "True"},
    "taint": {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"},
}
"""What the definition's own checks alone refuse."""


def rule(spec: Any, name: str) -> dict[str, Any]:
    """Return a NodeTaintRule."""
    return {
        "apiVersion": "taintkeeper.io/v1alpha1",
        "kind": "NodeTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


class Definition:
    """The definition on one control plane.

    An embedded server knows the resource by heart, without any of the checks in its definition; it is made to answer
    as if it did not know it.
    """

    def __init__(self, cluster: Cluster, kube: Kube) -> None:
        self._cluster = cluster
        self._kube = kube
        self._fault: Fault | None = None

    async def install(self, *, checked: bool = True) -> None:
        """Install the definition in place of any other, and wait until the resource is served as it says.

        Without ``checked`` it is one without checks in CEL, as API servers had it that knew none.
        """
        if isinstance(self._cluster, EmbeddedCluster):
            if self._fault is not None:
                self._cluster.faults.remove(self._fault)
            return
        made = yaml.safe_load(FILE.read_text())
        made = made if checked else _unchecked(made)
        answer = await self._kube.request("POST", DEFINITIONS, made)
        if answer.status == 409:
            answer = await self._kube.request("PATCH", f"{DEFINITIONS}/{made['metadata']['name']}", made, MERGE)
        assert answer.status in {200, 201}, answer.body
        await until(self._checks if checked else self._takes_nonsense)

    async def remove(self) -> None:
        """Delete the definition, and wait until the resource is no longer served."""
        if isinstance(self._cluster, EmbeddedCluster):
            self._fault = self._cluster.faults.add(Fault(path="^/apis/taintkeeper.io", status=404))
        else:
            await self._kube.request("DELETE", f"{DEFINITIONS}/{RULES}.taintkeeper.io")
        await until(self._unknown, FORGETTING_SECONDS)

    async def _checks(self) -> bool:
        try:
            await self._kube.create(RULES, rule(NONSENSE, "nonsense"))
        except ApiError as error:
            return error.status == 422
        await self._kube.delete(RULES, "", "nonsense")
        return False

    async def _takes_nonsense(self) -> bool:
        try:
            await self._kube.create(RULES, rule(NONSENSE, "nonsense"))
        except ApiError:
            return False
        await self._kube.delete(RULES, "", "nonsense")
        return True

    async def _unknown(self) -> bool:
        return (await self._kube.request("GET", RULES_PATH)).status == 404


def _unchecked(made: Any) -> Any:
    if isinstance(made, dict):
        return {name: _unchecked(value) for name, value in made.items() if name != CHECKS}
    return [_unchecked(each) for each in made] if isinstance(made, list) else made
