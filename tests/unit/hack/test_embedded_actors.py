"""The actors around the server: kubelets, scheduler, workloads, budgets, namespaces and the garbage collector."""

import asyncio
from typing import Any

import pytest

from testbed.client import Kube, until
from testbed.embedded import EmbeddedCluster
from testbed.embedded.actors.scheduler import tolerates
from testbed.embedded.samples import sample_pods

LABELS = {"app": "web"}
FAKE = {"kwok.x-k8s.io/node": "fake"}
TAINT = {"key": "example.com/a", "effect": "NoSchedule"}


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "kind": kind,
        "apiVersion": "apps/v1",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }


def pods(embedded: EmbeddedCluster, *, alive: bool = True) -> list[dict[str, Any]]:
    found = embedded.objects("pods", "default")
    return [pod for pod in found if not alive or "deletionTimestamp" not in pod["metadata"]]


def running(embedded: EmbeddedCluster) -> list[dict[str, Any]]:
    return [pod for pod in pods(embedded) if pod["status"]["phase"] == "Running"]


def condition(value: dict[str, Any], kind: str) -> str:
    conditions = value.get("status", {}).get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == kind), "")


async def test_a_fake_node_becomes_ready_and_renews_its_lease(embedded: EmbeddedCluster) -> None:
    embedded.add_nodes(1)
    await until(lambda: condition(embedded.objects("nodes")[0], "Ready") == "True")
    lease = embedded.objects("leases", "kube-node-lease")[0]

    await until(lambda: embedded.objects("leases", "kube-node-lease")[0]["spec"] != lease["spec"])

    assert lease["metadata"]["name"] == "node-1"
    assert lease["spec"]["holderIdentity"] == "node-1"


async def test_a_silenced_node_does_nothing_until_it_is_woken(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    embedded.seed(sample_pods(1, 1))
    await until(lambda: bool(embedded.objects("leases", "kube-node-lease")))

    embedded.silence("node-1")
    await asyncio.sleep(0.25)
    lease = embedded.objects("leases", "kube-node-lease")[0]
    await kube.evict("default", "pod-1")
    await asyncio.sleep(0.25)

    assert embedded.objects("leases", "kube-node-lease")[0] == lease
    assert len(pods(embedded, alive=False)) == 1
    embedded.wake("node-1")
    await until(lambda: not pods(embedded, alive=False))
    await until(lambda: embedded.objects("leases", "kube-node-lease")[0] != lease)


async def test_a_living_node_answers_unknown_and_keeps_what_others_set(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    await until(lambda: condition(embedded.objects("nodes")[0], "Ready") == "True")

    conditions = [{"type": "Ready", "status": "Unknown"}, {"type": "DiskPressure", "status": "True"}]
    await kube.patch_status("nodes", "", "node-1", {"conditions": conditions})
    await until(lambda: condition(embedded.objects("nodes")[0], "Ready") == "True")
    await asyncio.sleep(0.2)

    assert condition(embedded.objects("nodes")[0], "DiskPressure") == "True"


async def test_a_deployment_keeps_its_pods_through_an_eviction(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(3)
    await kube.create("deployments", workload("Deployment", replicas=3))
    await until(lambda: len(running(embedded)) == 3)
    before = {pod["metadata"]["uid"] for pod in running(embedded)}

    victim = running(embedded)[0]["metadata"]
    assert (await kube.evict("default", victim["name"], victim["uid"])).status == 201
    await until(lambda: len(running(embedded)) == 3 and len(pods(embedded, alive=False)) == 3)

    after = {pod["metadata"]["uid"] for pod in running(embedded)}
    assert victim["uid"] not in after
    assert len(after & before) == 2
    assert {pod["spec"]["nodeName"] for pod in running(embedded)} == {"node-1", "node-2", "node-3"}
    deployment = embedded.objects("deployments")[0]
    assert deployment["status"]["readyReplicas"] == 3


async def test_a_deployment_scales_and_takes_a_new_template(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    await kube.create("deployments", workload("Deployment", replicas=1))
    await until(lambda: len(running(embedded)) == 1)

    scale = await kube.patch("deployments", "default", "web", {"spec": {"replicas": 3}}, subresource="scale")
    await until(lambda: len(running(embedded)) == 3)
    containers = [{"name": "c", "image": "new"}]
    await kube.patch("deployments", "default", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
    await until(lambda: len(running(embedded)) == 3 and len(pods(embedded, alive=False)) == 3)

    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 3)
    await until(lambda: {pod["spec"]["containers"][0]["image"] for pod in running(embedded)} == {"new"})
    await kube.patch("deployments", "default", "web", {"spec": {"replicas": 1}})
    await until(lambda: len(pods(embedded, alive=False)) == 1)


async def test_what_a_deployment_owns_goes_with_it(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    await kube.create("deployments", workload("Deployment", replicas=2))
    await until(lambda: len(running(embedded)) == 2)

    await kube.delete("deployments", "default", "web")

    await until(lambda: not pods(embedded, alive=False) and not embedded.objects("replicasets"))


async def test_a_daemon_set_has_a_pod_on_every_node_that_fits(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(2)
    await kube.create("nodes", {"metadata": {"name": "tainted", "labels": FAKE}, "spec": {"taints": [TAINT]}})
    await kube.patch("nodes", "", "node-2", {"spec": {"unschedulable": True}})

    await kube.create("daemonsets", workload("DaemonSet"))
    await until(lambda: len(running(embedded)) == 2)
    await kube.patch("nodes", "", "tainted", {"spec": {"taints": None}})
    await until(lambda: len(running(embedded)) == 3)

    assert {pod["spec"]["nodeName"] for pod in running(embedded)} == {"node-1", "node-2", "tainted"}
    await until(lambda: embedded.objects("daemonsets")[0]["status"]["numberReady"] == 3)


async def test_a_pod_that_fits_nowhere_waits_and_says_why(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    await kube.patch("nodes", "", "node-1", {"spec": {"taints": [TAINT]}})
    body = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await kube.create("pods", body)
    await until(lambda: condition(pods(embedded)[0], "PodScheduled") == "False")

    await kube.patch("nodes", "", "node-1", {"spec": {"taints": None}})

    await until(lambda: bool(running(embedded)))
    assert condition(pods(embedded)[0], "PodScheduled") == "True"


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "a", "value": "v"}, True),
        ({"key": "a", "operator": "Equal", "value": "w"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, True),
    ],
)
def test_the_scheduler_knows_what_is_tolerated(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates(toleration, {"key": "a", "value": "v", "effect": "NoSchedule"}) is expected


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 2, 2),
        ({"minAvailable": "50%"}, 2, 2),
        ({"minAvailable": "51%"}, 3, 1),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "30%"}, 2, 2),
        ({"minAvailable": 9}, 9, 0),
    ],
)
async def test_a_budget_counts_what_its_limits_allow(
    embedded: EmbeddedCluster, kube: Kube, spec: dict[str, Any], desired: int, allowed: int
) -> None:
    embedded.add_nodes(2)
    await kube.create("deployments", workload("Deployment", replicas=4))
    await until(lambda: len(running(embedded)) == 4)

    await kube.create("poddisruptionbudgets", budget(**spec))
    await until(lambda: embedded.objects("poddisruptionbudgets")[0]["status"].get("observedGeneration") == 1)

    status = embedded.objects("poddisruptionbudgets")[0]["status"]
    assert (status["currentHealthy"], status["expectedPods"]) == (4, 4)
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)


async def test_a_budget_opens_again_once_the_evicted_pod_is_replaced(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(2)
    await kube.create("deployments", workload("Deployment", replicas=2))
    await kube.create("poddisruptionbudgets", budget(minAvailable=1))
    await until(lambda: embedded.objects("poddisruptionbudgets")[0]["status"].get("disruptionsAllowed") == 1)
    embedded.pause("workloads")
    first, second = (pod["metadata"]["name"] for pod in running(embedded))

    assert (await kube.evict("default", first)).status == 201
    refused = await kube.evict("default", second)
    embedded.resume("workloads")
    await until(lambda: embedded.objects("poddisruptionbudgets")[0]["status"]["disruptionsAllowed"] == 1)
    accepted = await kube.evict("default", second)

    assert (refused.status, accepted.status) == (429, 201)


async def test_a_paused_disruption_controller_leaves_budgets_unobserved(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.pause("disruption")
    embedded.seed(sample_pods(1, 1))
    await kube.create("poddisruptionbudgets", budget(minAvailable=0, selector={"matchLabels": {"app": "sample"}}))

    refused = await kube.evict("default", "pod-1")
    embedded.resume("disruption")
    await until(lambda: embedded.objects("poddisruptionbudgets")[0]["status"].get("observedGeneration") == 1)

    assert refused.body["details"]["causes"][0]["message"].endswith("is still being processed by the server.")


async def test_a_budget_over_pods_of_an_unknown_owner_allows_nothing(embedded: EmbeddedCluster, kube: Kube) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "u", "controller": True}
    pod = next(sample_pods(1, 1))
    embedded.seed([{**pod, "metadata": {**pod["metadata"], "labels": LABELS, "ownerReferences": [owner]}}])

    await kube.create("poddisruptionbudgets", budget(maxUnavailable=1))
    await until(lambda: bool(embedded.objects("poddisruptionbudgets")[0]["status"].get("conditions")))

    status = embedded.objects("poddisruptionbudgets")[0]["status"]
    assert status["conditions"][0]["reason"] == "SyncFailed"
    assert status["disruptionsAllowed"] == 0


async def test_a_deleted_namespace_empties_itself_first(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    await kube.create("namespaces", {"metadata": {"name": "going"}})
    embedded.seed(sample_pods(2, 1, namespace="going"))
    await kube.create("leases", {"metadata": {"name": "l", "namespace": "going"}})
    embedded.pause("kubelets")

    await kube.delete("namespaces", "", "going")
    await until(lambda: not embedded.objects("leases", "going"))
    phase = (await kube.get("namespaces", "", "going"))["status"]["phase"]
    embedded.resume("kubelets")

    assert phase == "Terminating"
    await until(lambda: "going" not in [each["metadata"]["name"] for each in embedded.objects("namespaces")])
    assert not embedded.objects("pods", "going")


async def test_a_pod_with_a_finalizer_stays_until_that_is_gone(embedded: EmbeddedCluster, kube: Kube) -> None:
    embedded.add_nodes(1)
    pod = next(sample_pods(1, 1))
    embedded.seed([{**pod, "metadata": {**pod["metadata"], "finalizers": ["example.com/held"]}}])

    await kube.evict("default", "pod-1")
    await asyncio.sleep(0.2)
    assert len(pods(embedded, alive=False)) == 1
    await kube.patch("pods", "default", "pod-1", {"metadata": {"finalizers": None}})

    await until(lambda: not pods(embedded, alive=False))


async def test_a_pod_can_be_bound_by_hand_once(embedded: EmbeddedCluster, kube: Kube) -> None:
    body = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await kube.create("pods", body)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "somewhere"}}
    path = "/api/v1/namespaces/default/pods/p/binding"

    answers = [(await kube.request("POST", path, binding)).status for _ in range(2)]

    assert answers == [201, 409]
    assert pods(embedded)[0]["spec"]["nodeName"] == "somewhere"
