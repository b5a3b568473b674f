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

    async def install(self) -> None:
        """Install the definition in place of any other, and wait until the resource is served as it says."""
        if isinstance(self._cluster, EmbeddedCluster):
            if self._fault is not None:
                self._cluster.faults.remove(self._fault)
            return
        made = yaml.safe_load(FILE.read_text())
        answer = await self._kube.request("POST", DEFINITIONS, made)
        if answer.status == 409:
            answer = await self._kube.request("PATCH", f"{DEFINITIONS}/{made['metadata']['name']}", made, MERGE)
        assert answer.status in {200, 201}, answer.body
        await until(self._checks)

    async def remove(self) -> None:
        """Delete the definition, and wait until the resource is no longer served."""
        if isinstance(self._cluster, EmbeddedCluster):
            self._fault = self._cluster.faults.add(Fault(path="^/apis/taintkeeper.io", status=404))
        else:
            await self._kube.request("DELETE", f"{DEFINITIONS}/{RULES}.taintkeeper.io")
        await until(self._unknown, FORGETTING_SECONDS)

    async def _checks(self) -> bool:
        try:
            await self._kube.create(RULES, rule({"condition": {}}, "nonsense"))
        except ApiError as error:
            return error.status == 422
        return False

    async def _unknown(self) -> bool:
        return (await self._kube.request("GET", RULES_PATH)).status == 404
