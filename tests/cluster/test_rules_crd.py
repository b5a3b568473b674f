"""The definition of NodeTaintRule: what the API server takes, what it refuses, and what kubectl shows."""

import asyncio
import subprocess
from typing import Any
from uuid import uuid4

import pytest

from testbed import Cluster
from testbed.client import MERGE, ApiError, Kube
from testbed.real.build import bin_folder
from tests.cluster.rule_definition import RULES, Definition, rule
from tests.rule_specs import BAD, GOOD, spec

pytestmark = pytest.mark.only_on("real")
"""The embedded server knows the resource by heart, and nothing of the checks in its definition."""


@pytest.fixture
async def definition(cluster: Cluster, kube: Kube) -> None:
    """The definition is installed, in place of any other that a test may have left."""
    await Definition(cluster, kube).install()


def a_rule(made: Any) -> dict[str, Any]:
    return rule(made, f"rule-{uuid4().hex[:8]}")


@pytest.mark.parametrize("name", GOOD)
async def test_a_rule_that_makes_sense_is_taken(kube: Kube, definition: None, name: str) -> None:
    body = a_rule(GOOD[name])
    created = await kube.create(RULES, body)
    await kube.delete(RULES, "", body["metadata"]["name"])
    assert {"forSeconds": 0, "clearSeconds": 0, "dryRun": False, **GOOD[name]} == created["spec"]


@pytest.mark.parametrize(("made", "field"), BAD)
async def test_nonsense_is_refused_with_the_field_named(kube: Kube, definition: None, made: Any, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        await kube.create(RULES, a_rule(made))
    assert refused.value.status == 422
    fields = [cause["field"] for cause in refused.value.body["details"]["causes"]]
    assert any(named.startswith(field) for named in fields), refused.value.body["message"]
    assert field in str(refused.value)


async def test_a_rule_without_a_spec_is_refused(kube: Kube, definition: None) -> None:
    body = a_rule({})
    del body["spec"]
    with pytest.raises(ApiError, match="spec: Required value"):
        await kube.create(RULES, body)


async def test_an_edit_to_nonsense_is_refused_and_the_rule_stays_as_it_was(kube: Kube, definition: None) -> None:
    body = a_rule(spec())
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

    name = (await kube.create(RULES, a_rule(spec())))["metadata"]["name"]
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
