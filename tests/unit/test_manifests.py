"""Manifests, image and kind clusters agree with the operator and with one another."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from image.dockerfile import DOCKERFILE, ROOT, parse_dockerfile
from taintkeeper import __version__
from taintkeeper.cli import build_parser
from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.custom_kind import GROUP
from taintkeeper.cluster.elector import RELEASE_SECONDS
from taintkeeper.cluster.lease_lock import lock_permissions
from taintkeeper.controllers.node_health import NodeHealth
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.rivals import Rivals
from taintkeeper.controllers.shell import ANSWER_SECONDS
from taintkeeper.controllers.taint_eviction import TaintEviction
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from taintkeeper.core.tolerations import first_match
from taintkeeper.flags import NODE_HEALTH, NODE_TAINT, TAINT_EVICTION
from taintkeeper.runtime import EVENT_PERMISSIONS, FAREWELL_SECONDS
from taintkeeper.settings import Settings, given_flags, parse_settings
from testbed.real.build import bin_folder

MANIFESTS = ROOT / "manifests"
CONTROLLERS = {"full": {NODE_TAINT, NODE_HEALTH, TAINT_EVICTION}, "eviction-only": {TAINT_EVICTION}}
PERMISSIONS = {
    NODE_TAINT: NodeTaint.permissions,
    NODE_HEALTH: NodeHealth.permissions,
    TAINT_EVICTION: TaintEviction.permissions,
}
REPLACED = {
    "full": {"node-lifecycle-controller", "taint-eviction-controller"},
    "eviction-only": {"taint-eviction-controller"},
}
DEFINITION = "CustomResourceDefinition"
KEYS = "node.kubernetes.io/"

Manifest = dict[str, Any]
Objects = dict[str, Manifest]
"""Objects by kind; of each kind there is one, but for definitions of kinds: those are told by what they define."""


@pytest.fixture(scope="module")
def kustomize() -> Callable[[Path], Objects]:
    """Build what a folder describes."""
    kubectl = shutil.which("kubectl") or shutil.which(bin_folder() / "kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl; `make real-cluster-build` builds one")

    def build(folder: Path) -> Objects:
        command = [kubectl, "kustomize", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        assert done.returncode == 0, done.stderr
        objects = list(yaml.safe_load_all(done.stdout))
        definitions = [each for each in objects if each["kind"] == DEFINITION]
        by_kind = {each["kind"]: each for each in objects if each not in definitions}
        assert len(by_kind) + len(definitions) == len(objects)
        return by_kind | {f"{DEFINITION} {each['spec']['names']['kind']}": each for each in definitions}

    return build


@pytest.fixture(params=CONTROLLERS, scope="module")
def overlay(request: pytest.FixtureRequest) -> str:
    """The name of an overlay."""
    return str(request.param)


@pytest.fixture(scope="module")
def objects(overlay: str, kustomize: Callable[[Path], Objects]) -> Objects:
    """What the overlay consists of."""
    return kustomize(MANIFESTS / "overlays" / overlay)


@pytest.fixture(scope="module")
def pod(objects: Objects) -> Manifest:
    """The spec of the Deployment's pods."""
    spec: Manifest = objects["Deployment"]["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="module")
def container(pod: Manifest) -> Manifest:
    """The only container."""
    (only,) = pod["containers"]
    return dict(only)


@pytest.fixture
def settings(container: Manifest) -> Settings:
    """What the operator makes of the container's arguments."""
    return parse_settings(given_flags(build_parser().parse_args(container["args"])), {})


def test_an_overlay_runs_the_controllers_that_it_is_named_for(overlay: str, settings: Settings) -> None:
    assert settings.controllers == CONTROLLERS[overlay]


def test_probes_ask_where_they_are_answered(container: Manifest, settings: Settings) -> None:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert settings.health_probe_bind_address == ("", ports["health"])
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}


def test_metrics_are_scraped_where_they_are_served(objects: Objects, container: Manifest, settings: Settings) -> None:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    service = objects["Service"]["spec"]
    assert settings.metrics_bind_address == ("", ports["metrics"])
    assert service["ports"] == [{"name": "metrics", "port": ports["metrics"], "targetPort": "metrics"}]
    assert service["selector"].items() <= objects["Deployment"]["spec"]["template"]["metadata"]["labels"].items()


def test_the_pod_can_do_nothing_that_it_need_not(objects: Objects, pod: Manifest, container: Manifest) -> None:
    confined = pod["securityContext"]
    assert confined["runAsNonRoot"]
    assert confined["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & pod.keys()
    assert objects["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_role_grants_what_the_controllers_ask_for_and_no_more(overlay: str, objects: Objects) -> None:
    needed = {permission for name in CONTROLLERS[overlay] for permission in PERMISSIONS[name]}
    assert set(granted(objects)) == needed | set(EVENT_PERMISSIONS) | set(Rivals.permissions)


def test_what_is_watched_of_our_own_kinds_is_defined(objects: Objects) -> None:
    defined = {name.removeprefix(f"{DEFINITION} ") for name in objects if name.startswith(DEFINITION)}
    assert defined == {"EvictionPolicy", "NodeTaintRule"}
    plurals = {objects[f"{DEFINITION} {kind}"]["spec"]["names"]["plural"] for kind in defined}
    assert {each.resource for each in granted(objects) if each.group == GROUP} <= plurals


def test_nothing_but_pods_is_deleted_nothing_is_replaced_and_no_secret_is_seen(objects: Objects) -> None:
    for permission in granted(objects):
        if permission == Permission("delete", "pods"):
            continue
        assert permission.verb in {"get", "list", "watch", "create", "patch"}
        assert permission.resource not in {"*", "secrets"}
        assert permission.group != "*"
        assert permission.resource != "pods" or permission.subresource or permission.verb in {"get", "list", "watch"}


def test_the_only_lease_that_it_may_touch_is_the_one_by_which_it_is_elected(
    objects: Objects, settings: Settings
) -> None:
    role = objects["Role"]
    namespace = role["metadata"]["namespace"]
    assert namespace == objects["Deployment"]["metadata"]["namespace"]
    assert [
        Permission(verb, resource, group, namespace=namespace, name=name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    ] == list(lock_permissions(namespace, settings.leader_elect_resource_name))


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_the_role_is_bound_to_the_account_of_the_pod(kind: str, objects: Objects, pod: Manifest) -> None:
    binding, account = objects[f"{kind}Binding"], objects["ServiceAccount"]["metadata"]
    assert binding["metadata"].get("namespace") == objects[kind]["metadata"].get("namespace")
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, objects[kind]["metadata"]["name"])
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]
    assert pod["serviceAccountName"] == account["name"]
    assert pod["automountServiceAccountToken"]


def test_there_are_two_of_which_one_is_elected_and_an_update_leaves_neither_alone(
    objects: Objects, settings: Settings
) -> None:
    deployment = objects["Deployment"]["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert settings.leader_elect
    assert settings.leader_elect_resource_namespace is None, "it has to be in the namespace that the pod is in"


def test_one_node_does_not_get_both_where_there_is_another(objects: Objects, pod: Manifest) -> None:
    labels = objects["Deployment"]["spec"]["selector"]["matchLabels"]
    (spread,) = pod["topologySpreadConstraints"]
    (apart,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    for each in (spread, apart["podAffinityTerm"]):
        assert each["topologyKey"] == "kubernetes.io/hostname"
        assert each["labelSelector"]["matchLabels"].items() <= labels.items()
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"


def test_a_pod_is_given_the_time_that_a_clean_end_may_take(pod: Manifest) -> None:
    longest = ANSWER_SECONDS + 2.0 * FAREWELL_SECONDS + RELEASE_SECONDS
    assert pod["terminationGracePeriodSeconds"] >= longest + 5.0


def test_the_pod_knows_its_own_name(container: Manifest) -> None:
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    assert fields == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}


@pytest.mark.parametrize("pressure", ["memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"])
@pytest.mark.parametrize("effect", [NO_SCHEDULE, NO_EXECUTE])
def test_pressure_neither_keeps_the_operator_away_nor_ends_it(pod: Manifest, pressure: str, effect: str) -> None:
    toleration = first_match(tolerations(pod), Taint(KEYS + pressure, effect))
    assert toleration is not None
    assert toleration.seconds is None


@pytest.mark.parametrize("failure", ["not-ready", "unreachable"])
def test_the_operator_leaves_a_node_that_stays_down(pod: Manifest, failure: str) -> None:
    toleration = first_match(tolerations(pod), Taint(KEYS + failure, NO_EXECUTE))
    assert toleration is not None
    assert toleration.seconds == 60


def test_the_operator_can_start_where_only_it_takes_the_first_taint_away(overlay: str, pod: Manifest) -> None:
    tolerated = first_match(tolerations(pod), Taint(KEYS + "not-ready", NO_SCHEDULE)) is not None
    assert tolerated == (NODE_TAINT in CONTROLLERS[overlay])


def test_a_drain_can_move_the_operator(objects: Objects, pod: Manifest) -> None:
    assert first_match(tolerations(pod), Taint(KEYS + "unschedulable", NO_SCHEDULE)) is None
    assert "PodDisruptionBudget" not in objects


def test_image_and_labels_carry_the_version(objects: Objects, container: Manifest) -> None:
    assert container["image"] == f"taintkeeper:{__version__}"
    for each in objects.values():
        assert each["metadata"]["labels"]["app.kubernetes.io/version"] == __version__


def test_the_service_monitor_finds_the_service(
    overlay: str, kustomize: Callable[[Path], Objects], tmp_path: Path
) -> None:
    # Where a kustomization lies on a disk, it may only name others by relative paths.
    manifests = os.path.relpath(MANIFESTS, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [{manifests}/overlays/{overlay}]\ncomponents: [{manifests}/components/service-monitor]\n"
    )
    built = kustomize(tmp_path)
    monitor, service = built["ServiceMonitor"], built["Service"]
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["spec"]["endpoints"]] == [
        port["name"] for port in service["spec"]["ports"]
    ]


def test_the_image_runs_as_the_user_that_the_pod_asks_for(pod: Manifest) -> None:
    _, final = parse_dockerfile(DOCKERFILE.read_text())
    confined = pod["securityContext"]
    assert final.values("USER") == [f"{confined['runAsUser']}:{confined['runAsGroup']}"]


def test_the_image_has_the_python_that_its_environment_was_made_with() -> None:
    builder, final = parse_dockerfile(DOCKERFILE.read_text())
    assert builder.image == final.image


def test_the_image_runs_the_operator_unless_told_otherwise() -> None:
    _, final = parse_dockerfile(DOCKERFILE.read_text())
    command = final.command()
    assert command[0] == "taintkeeper"
    assert build_parser().parse_args(command[1:]).command == "run"


def test_the_builder_is_sent_what_it_copies_and_nothing_else() -> None:
    builder, _ = parse_dockerfile(DOCKERFILE.read_text())
    copied = {source for copy in builder.copies() for source in copy.sources}
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    assert "*" in ignored
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == copied
    assert all((ROOT / source).exists() for source in copied)


@pytest.mark.parametrize("name", REPLACED)
def test_a_kind_cluster_leaves_to_the_operator_what_its_overlay_does(name: str) -> None:
    patches = [yaml.safe_load(patch) for patch in kind_cluster(name)["kubeadmConfigPatches"]]
    assert [patch["apiVersion"] for patch in patches] == ["kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta3"]
    (newer,) = patches[0]["controllerManager"]["extraArgs"]
    older = patches[1]["controllerManager"]["extraArgs"]
    assert {newer["name"]: newer["value"]} == older
    entries = older["controllers"].split(",")
    assert {entry.removeprefix("-") for entry in entries if entry.startswith("-")} == REPLACED[name]
    # Without these of kubeadm's, workers cannot join.
    assert {"*", "bootstrapsigner", "tokencleaner"} <= set(entries)


@pytest.mark.parametrize("name", REPLACED)
def test_a_kind_cluster_has_three_zones(name: str) -> None:
    workers = [node for node in kind_cluster(name)["nodes"] if node["role"] == "worker"]
    assert len({worker["labels"]["topology.kubernetes.io/zone"] for worker in workers}) == 3


@pytest.mark.parametrize("name", REPLACED)
def test_what_a_kind_cluster_says_to_run_exists(name: str) -> None:
    text = (ROOT / "hack" / "kind" / f"{name}.yaml").read_text()
    assert set(re.findall(r"(?:manifests|hack)/[\w/.-]+", text)) == {
        f"hack/kind/{name}.yaml",
        f"manifests/overlays/{name}",
    }
    assert set(re.findall(r"taintkeeper:(\S+)", text)) == {__version__}


def granted(objects: Objects) -> Iterator[Permission]:
    """Take the role's rules apart."""
    for rule in objects["ClusterRole"]["rules"]:
        assert rule.keys() == {"apiGroups", "resources", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name, _, subresource = resource.partition("/")
                yield from (Permission(verb, name, group, subresource) for verb in rule["verbs"])


def tolerations(pod: Manifest) -> list[Toleration]:
    """Return the pod's tolerations as the operator sees them."""
    return [
        Toleration(each["key"], each["operator"], effect=each.get("effect", ""), seconds=each.get("tolerationSeconds"))
        for each in pod["tolerations"]
    ]


def kind_cluster(name: str) -> Manifest:
    """Return a kind cluster's configuration."""
    cluster: Manifest = yaml.safe_load((ROOT / "hack" / "kind" / f"{name}.yaml").read_text())
    assert cluster["apiVersion"] == "kind.x-k8s.io/v1alpha4"
    return cluster
