"""The definition of NodeTaintRule: what the API server takes, what it refuses, and what kubectl shows."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from testbed import Cluster
from testbed.client import MERGE, ApiError, Kube, until
from testbed.real.build import bin_folder
from tests.rule_specs import BAD, GOOD, spec

pytestmark = pytest.mark.only_on("real")
"""The embedded server knows the resource by heart, and nothing of the checks in its definition."""

FILE = Path(__file__).parents[2] / "crds" / "nodetaintrules.yaml"
RULES = "nodetaintrules"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
async def definition(kube: Kube) -> None:
    """The definition is installed, in place of any other that a test may have left."""
    made = yaml.safe_load(FILE.read_text())
    answer = await kube.request("POST", DEFINITIONS, made)
    if answer.status == 409:
        path = f"{DEFINITIONS}/{made['metadata']['name']}"
        answer = await kube.request("PATCH", path, made, MERGE)
    assert answer.status in {200, 201}, answer.body

    async def checked() -> bool:
        try:
            await kube.create(RULES, rule({"condition": {}}))
        except ApiError as error:
            return error.status == 422
        return False

    await until(checked)


def rule(made: Any, name: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "taintkeeper.io/v1alpha1",
        "kind": "NodeTaintRule",
        "metadata": {"name": name or f"rule-{uuid4().hex[:8]}"},
        "spec": made,
    }


@pytest.mark.parametrize("name", GOOD)
async def test_a_rule_that_makes_sense_is_taken(kube: Kube, definition: None, name: str) -> None:
    body = rule(GOOD[name])
    created = await kube.create(RULES, body)
    await kube.delete(RULES, "", body["metadata"]["name"])
    assert {"forSeconds": 0, "clearSeconds": 0, "dryRun": False, **GOOD[name]} == created["spec"]


@pytest.mark.parametrize(("made", "field"), BAD)
async def test_nonsense_is_refused_with_the_field_named(kube: Kube, definition: None, made: Any, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        await kube.create(RULES, rule(made))
    assert refused.value.status == 422
    fields = [cause["field"] for cause in refused.value.body["details"]["causes"]]
    assert any(named.startswith(field) for named in fields), refused.value.body["message"]
    assert field in str(refused.value)


async def test_a_rule_without_a_spec_is_refused(kube: Kube, definition: None) -> None:
    body = rule({})
    del body["spec"]
    with pytest.raises(ApiError, match="spec: Required value"):
        await kube.create(RULES, body)


async def test_an_edit_to_nonsense_is_refused_and_the_rule_stays_as_it_was(kube: Kube, definition: None) -> None:
    body = rule(spec())
    name = (await kube.create(RULES, body))["metadata"]["name"]
    with pytest.raises(ApiError, match=r"spec\.taint\.effect"):
        await kube.patch(RULES, "", name, {"spec": {"taint": {"effect": "Evict"}}})
    found = await kube.get(RULES, "", name)
    await kube.delete(RULES, "", name)
    assert found["spec"]["taint"]["effect"] == "NoSchedule"
    assert found["metadata"]["generation"] == 1


async def test_kubectl_shows_what_a_rule_is_about_and_what_it_does(
    kube: Kube, definition: None, cluster: Cluster
) -> None:

    name = (await kube.create(RULES, rule(spec())))["metadata"]["name"]
    active = {"type": "Active", "status": "True", "reason": "InForce", "message": ""}
    status = {"tainted": 2, "heldBack": 3, "conditions": [{**active, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    await kube.patch_status(RULES, "", name, status, MERGE)
    command = [bin_folder() / "kubectl", "--kubeconfig", cluster.kubeconfig, "get", "ntr", name]

    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)

    await kube.delete(RULES, "", name)
    header, line = shown.stdout.splitlines()
    assert header.split() == ["NAME", "CONDITION", "STATUS", "TAINT", "EFFECT", "TAINTED", "HELD-BACK", "ACTIVE", "AGE"]
    expected = [name, "KernelDeadlock", "True", "example.com/kernel-deadlock", "NoSchedule", "2", "3", "True"]
    assert line.split()[:-1] == expected
