"""Which pods an EvictionPolicy decides about, and which of them it lets stay."""

from typing import Any

import pytest

from testbed.client import Object, until
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.policy_world import Policies
from tests.cluster.world import MAINTENANCE, World, taint, toleration

EMPTY_DIR: Object = {"name": "data", "emptyDir": {}}
IN_MEMORY: Object = {"name": "data", "emptyDir": {"medium": "Memory"}}
HOST_PATH: Object = {"name": "data", "hostPath": {"path": "/var/data"}}
CLAIM: Object = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def app(*names: str) -> Object:
    """Return a selector of the pods with these ``app`` labels."""
    return {"matchExpressions": [{"key": "app", "operator": "In", "values": [*names]}]}


async def label(world: World, **labels: str) -> None:
    """Label the world's namespace."""
    await world.kube.patch("namespaces", "", world.namespace, {"metadata": {"labels": labels}})


async def annotate(world: World, pod: str, evict: str | None) -> None:
    """Annotate a pod, or take the annotation away."""
    annotations = {"taintkeeper.io/evict": evict}
    await world.kube.patch("pods", world.namespace, pod, {"metadata": {"annotations": annotations}})


async def owned(world: World, node: str) -> dict[str, Any]:
    """Return the metadata of a pod with a controller; the node will do, as it does for the kubelet's own pods."""
    uid = (await world.kube.get("nodes", "", node))["metadata"]["uid"]
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}]}


async def daemon(world: World, node: str) -> str:
    """Make a DaemonSet for this node; return the name of its pod once that is there."""
    await world.kube.patch_status("nodes", "", node, {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}})
    labels = {"app": "daemon"}
    spec = {
        "containers": [{"name": "main", "image": "none"}],
        "nodeSelector": {"topology.kubernetes.io/region": world.namespace},
        "terminationGracePeriodSeconds": 0,
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    metadata = {"name": "daemon", "namespace": world.namespace}
    body = {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    await world.kube.create("daemonsets", body)
    found: list[Object] = []

    async def placed() -> bool:
        found[:] = await world.kube.list("pods", world.namespace, fieldSelector=f"spec.nodeName={node}")
        return bool(found)

    await until(placed)
    return str(found[0]["metadata"]["name"])


async def exempt(operator: OperatorProcess, **reasons: int) -> None:
    """Wait until so many pods have been told to stay for these reasons."""

    async def told() -> bool:
        names = {reason: reason.replace("_", "-") for reason in reasons}
        found = {
            reason: await operator.metric("taintkeeper_pods_skipped_total", reason=names[reason]) for reason in reasons
        }
        return found == reasons

    await until(told)


async def test_a_namespace_is_selected_by_its_labels_as_they_are_now(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    await label(world, team="a", stage="production")
    node = await world.node()
    await world.pod(node, "web")
    selector = {
        "matchLabels": {"team": "a"},
        "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}],
    }
    name = await policies.make(mode="Ignore", namespaceSelector=selector)
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    await exempt(operator, policy=1)
    await policies.counts(name, exempt=1)
    await world.told("web", "EvictionSkipped", f"because of taint maintenance:NoExecute: policy {name} has the mode")
    assert await world.pods() == {"web"}
    await label(world, stage="test")
    await world.gone("web")


async def test_pods_are_selected_by_all_parts_of_a_selector(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    for name, labels in {
        "all": {"tier": "db", "size": "big"},
        "in": {"tier": "queue"},
        "not-in": {"tier": "web"},
        "without": {},
        "marked": {"tier": "db", "moving": ""},
        "small": {"tier": "db", "size": "small"},
    }.items():
        await world.pod(node, name, labels=labels)
    expressions = [
        {"key": "tier", "operator": "In", "values": ["db", "queue"]},
        {"key": "tier", "operator": "Exists"},
        {"key": "moving", "operator": "DoesNotExist"},
        {"key": "size", "operator": "NotIn", "values": ["small"]},
    ]
    name = await policies.make(mode="Ignore", podSelector={"matchExpressions": expressions})
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    for leaving in ("not-in", "without", "marked", "small"):
        await world.gone(leaving)
    await policies.counts(name, exempt=2)
    assert await world.pods() == {"all", "in"}


async def test_the_highest_precedence_decides_and_of_equal_ones_the_first_by_name(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    for name in ("kept", "leaving", "tied"):
        await world.pod(node, name)
    everything = await policies.make(mode="Delete", precedence=-5)
    lower = await policies.make(mode="Ignore", precedence=10, podSelector=app("kept", "leaving"))
    higher = await policies.make(mode="Evict", precedence=11, podSelector=app("leaving"))
    tied = sorted([await policies.make(dryRun=True, podSelector=app("tied")) for _ in range(2)])
    await policies.obeyed(everything, lower, higher, *tied)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone("leaving")
    await policies.counts(higher, evicted=1)
    await policies.counts(lower, exempt=1)
    await policies.counts(tied[0], pending=1)
    await policies.counts(tied[1], pending=0)
    await policies.counts(everything, evicted=0)
    assert await world.pods() == {"kept", "tied"}
    await policies.delete(tied[0])
    await policies.counts(tied[1], pending=1)


async def test_a_policy_that_can_never_decide_says_which_other_does(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    over = await policies.make(precedence=2)
    under = await policies.make(precedence=1, taints=[{"key": "any"}])
    await policies.obeyed(over, under)
    why = f"Decides about nothing: {over} with more precedence, or first by name, decides."
    await policies.tells(under, "Active", "False", "Superseded", why)
    await policies.delete(over)
    await policies.tells(
        under, "Active", "True", "InForce", "Pods are evicted as soon as their disruption budgets allow it."
    )


@pytest.mark.reported("kubernetes/kubernetes#119886")
async def test_a_pod_with_the_annotation_stays_for_as_long_as_it_has_it(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "kept", annotations={"taintkeeper.io/evict": "false"})
    await world.pod(node, "leaving", annotations={"taintkeeper.io/evict": "true"})
    name = await policies.make(mode="Delete")
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone("leaving")
    await exempt(operator, annotation=1)
    await world.told("kept", "EvictionSkipped", 'the pod has the annotation taintkeeper.io/evict: "false"')
    await policies.counts(name, exempt=1, evicted=1)
    assert await world.pods() == {"kept"}
    await annotate(world, "kept", None)
    await world.gone("kept")


@pytest.mark.reported("kubernetes/kubernetes#119886")
async def test_the_annotation_cancels_a_countdown_that_runs(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "kept", toleration(MAINTENANCE, 3))
    await world.pod(node, "witness", toleration(MAINTENANCE, 4))
    await world.add_taint(node, taint(MAINTENANCE))
    await until(lambda: _counting(operator, 2))
    await annotate(world, "kept", "false")
    await world.told("kept", "TaintManagerEviction", "Cancelling deletion of Pod")
    await world.gone("witness")
    assert await world.pods() == {"kept"}


async def _counting(operator: OperatorProcess, count: int) -> bool:
    return await operator.metric("taintkeeper_pending_evictions", reason="toleration") == count


@pytest.mark.reported("kubernetes/kubernetes#97832")
async def test_a_pod_that_no_controller_would_replace_stays_where_a_policy_says_so(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "bare")
    await world.pod(node, "owned", **await owned(world, node))
    name = await policies.make(unmanagedPods="Ignore")
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone("owned")
    await exempt(operator, unmanaged=1)
    await world.told("bare", "EvictionSkipped", f"policy {name} ignores pods that no controller would replace")
    assert await world.pods() == {"bare"}
    await policies.edit(name, unmanagedPods="Evict")
    await world.gone("bare")


@pytest.mark.reported("kubernetes/kubernetes#41738")
async def test_a_pod_of_a_daemon_set_stays_where_a_policy_says_so(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    pod = await daemon(world, node)
    await world.pod(node, "other")
    # Because of NoExecute, kube-controller-manager's own DaemonSet controller would delete it.
    name = await policies.make(daemonSetPods="Ignore", taints=[{"key": "drain", "effect": "NoSchedule"}])
    await policies.obeyed(name)
    await world.add_taint(node, taint("drain", "NoSchedule"))
    await world.gone("other")
    await exempt(operator, daemon_set=1)
    await world.told(pod, "EvictionSkipped", f"policy {name} ignores pods of DaemonSets")
    assert await world.pods() == {pod}
    await policies.edit(name, daemonSetPods="Evict")
    await world.gone(pod)


@pytest.mark.reported("kubernetes/kubernetes#115779")
async def test_a_pod_with_data_on_its_node_stays_where_a_policy_says_so(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "scratch", volumes=[EMPTY_DIR])
    await world.pod(node, "host", volumes=[HOST_PATH])
    await world.pod(node, "memory", volumes=[IN_MEMORY])
    await world.pod(node, "none")
    name = await policies.make(podsWithLocalStorage="Ignore")
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    await world.gone("memory")
    await world.gone("none")
    await exempt(operator, local_storage=2)
    await world.told("scratch", "EvictionSkipped", f"policy {name} ignores pods with data on the node")
    assert await world.pods() == {"scratch", "host"}


@pytest.mark.reported("kubernetes/kubernetes#115779")
async def test_a_claim_that_is_bound_to_a_local_volume_has_its_data_on_the_node(
    world: World, policies: Policies, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "web", volumes=[CLAIM])
    await world.volume("local", "data", node)
    name = await policies.make(podsWithLocalStorage="Ignore")
    await policies.obeyed(name)
    await world.add_taint(node, taint(MAINTENANCE))
    await exempt(operator, local_storage=1)
    assert await world.pods() == {"web"}
    await world.remove_volume("local")
    await world.gone("web")
