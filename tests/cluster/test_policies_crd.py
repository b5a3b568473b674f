"""The definition of EvictionPolicy: what the API server takes, what it refuses, and what kubectl shows."""

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
from tests.policy_specs import BAD, DEFAULTS, GOOD, readme_policies

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "manifests" / "examples" / "eviction-policies.yaml"
POLICIES = "evictionpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REAL = pytest.mark.only_on("real")
"""The embedded server knows the resource by heart, and nothing of the checks in its definition."""


@pytest.fixture
async def definition(kube: Kube, cluster_kind: str) -> None:
    """The definition is installed, in place of any other that a test may have left."""
    made = yaml.safe_load((ROOT / "crds" / "evictionpolicies.yaml").read_text())
    answer = await kube.request("POST", DEFINITIONS, made)
    if answer.status == 409:
        path = f"{DEFINITIONS}/{made['metadata']['name']}"
        answer = await kube.request("PATCH", path, made, MERGE)
    assert answer.status in {200, 201}, answer.body

    async def checked() -> bool:
        if cluster_kind == "embedded":
            return True
        try:
            await kube.create(POLICIES, policy({"mode": "Force"}))
        except ApiError as error:
            return error.status == 422
        return False

    await until(checked)


def policy(made: Any, name: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "taintkeeper.io/v1alpha1",
        "kind": "EvictionPolicy",
        "metadata": {"name": name or f"policy-{uuid4().hex[:8]}"},
        "spec": made,
    }


@REAL
@pytest.mark.parametrize("name", GOOD)
async def test_a_policy_that_makes_sense_is_taken(kube: Kube, definition: None, name: str) -> None:
    body = policy(GOOD[name])
    created = await kube.create(POLICIES, body)
    await kube.delete(POLICIES, "", body["metadata"]["name"])
    assert {**DEFAULTS, **GOOD[name]} == created["spec"]


@REAL
async def test_a_pattern_is_for_the_effect_no_execute_and_any_key_unless_it_says_otherwise(
    kube: Kube, definition: None
) -> None:
    body = policy({"taints": [{}, {"key": "a"}]})
    created = await kube.create(POLICIES, body)
    await kube.delete(POLICIES, "", body["metadata"]["name"])
    assert created["spec"]["taints"] == [{"key": "", "effect": "NoExecute"}, {"key": "a", "effect": "NoExecute"}]


@REAL
@pytest.mark.parametrize(("made", "field"), BAD)
async def test_nonsense_is_refused_with_the_field_named(kube: Kube, definition: None, made: Any, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        await kube.create(POLICIES, policy(made))
    assert refused.value.status == 422
    fields = [cause["field"] for cause in refused.value.body["details"]["causes"]]
    assert any(named.startswith(field) for named in fields), refused.value.body["message"]
    assert field in str(refused.value)


@REAL
async def test_a_policy_without_a_spec_is_refused(kube: Kube, definition: None) -> None:
    body = policy({})
    del body["spec"]
    with pytest.raises(ApiError, match="spec: Required value"):
        await kube.create(POLICIES, body)


@REAL
async def test_an_edit_to_nonsense_is_refused_and_the_policy_stays_as_it_was(kube: Kube, definition: None) -> None:
    body = policy({"mode": "EvictThenDelete", "blockedSeconds": 60})
    name = (await kube.create(POLICIES, body))["metadata"]["name"]
    with pytest.raises(ApiError, match=r"spec\.blockedSeconds"):
        await kube.patch(POLICIES, "", name, {"spec": {"mode": "Evict"}})
    found = await kube.get(POLICIES, "", name)
    await kube.delete(POLICIES, "", name)
    assert found["spec"]["mode"] == "EvictThenDelete"
    assert found["metadata"]["generation"] == 1


@REAL
async def test_kubectl_shows_how_a_policy_works_and_what_it_has_done(
    kube: Kube, definition: None, cluster: Cluster
) -> None:
    name = (await kube.create(POLICIES, policy({"precedence": 7})))["metadata"]["name"]
    active = {"type": "Active", "status": "True", "reason": "InForce", "message": ""}
    conditions = [{**active, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    status = {"pending": 4, "blocked": 3, "evicted": 2, "exempt": 1, "conditions": conditions}
    await kube.patch_status(POLICIES, "", name, status, MERGE)
    command = [bin_folder() / "kubectl", "--kubeconfig", cluster.kubeconfig, "get", "evp", name]

    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)

    await kube.delete(POLICIES, "", name)
    header, line = shown.stdout.splitlines()
    assert header.split() == ["NAME", "PRECEDENCE", "MODE", "PENDING", "BLOCKED", "EVICTED", "ACTIVE", "AGE"]
    assert line.split()[:-1] == [name, "7", "Evict", "4", "3", "2", "True"]


async def test_the_examples_are_taken_and_come_back_as_they_were_written(kube: Kube, definition: None) -> None:
    examples = [*yaml.safe_load_all(EXAMPLES.read_text()), readme_policies()["databases"]]
    for example in examples:
        created = await kube.create(POLICIES, example)
        await kube.delete(POLICIES, "", example["metadata"]["name"])
        assert created["spec"] == {**created["spec"], **example["spec"]}


@REAL
@pytest.mark.parametrize("name", ["system:unreachable", "system:default"])
async def test_no_policy_can_have_the_name_of_a_built_in_one(kube: Kube, definition: None, name: str) -> None:
    with pytest.raises(ApiError, match=r"metadata\.name"):
        await kube.create(POLICIES, readme_policies()[name])


async def test_the_status_is_written_apart_from_the_spec(kube: Kube, definition: None) -> None:
    name = (await kube.create(POLICIES, policy({"mode": "Ignore"})))["metadata"]["name"]
    await kube.patch_status(POLICIES, "", name, {"observedGeneration": 1, "evicted": 5}, MERGE)
    found = await kube.get(POLICIES, "", name)
    await kube.delete(POLICIES, "", name)
    assert (found["spec"]["mode"], found["status"]["evicted"], found["metadata"]["generation"]) == ("Ignore", 5, 1)
