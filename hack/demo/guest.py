"""Playing on a cluster that is not ours: what it must have, what its owner is asked, and how it is left."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

from demo import manifests
from demo.reading import (
    FIRST_SEEN,
    NO_EXECUTE,
    is_leaving,
    is_mirror,
    is_ready,
    name_of,
    spelled,
    taints_of,
    tolerated_seconds,
)
from demo.stage import take_taint
from testbed.client import ApiError, Credentials, Kube, Object, until

OPERATOR_SECONDS = 5.0
GOODBYE_SECONDS = 90.0


class RefusedError(Exception):
    """The demo does not play on this cluster; the message is one line that says why."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A cluster that the demo could play on, with its nodes and how many pods would have to leave each of them."""

    kubeconfig: Path
    server: str
    context: str
    displaced: dict[str, int]

    def plan(self) -> list[str]:
        """Return what its owner should know before saying yes."""
        nodes = ", ".join(f"{name} (other pods evicted from it: {count})" for name, count in self.displaced.items())
        return [
            f"Cluster   {self.server}, context {self.context}",
            f"The demo  makes the namespace {manifests.NAMESPACE}, with two Deployments, a DaemonSet and two pods;",
            f"          taints one of these nodes {spelled(manifests.MAINTENANCE)} for about half a minute: {nodes};",
            "          runs the operator on this machine, with your rights and its controller taint-eviction alone;",
            "          and takes all of that away at the end. It touches no node's status.",
        ]


def find_kubeconfig() -> Path:
    """Return the kubeconfig that ``kubectl`` would use.

    Raises:
        RefusedError: there is none, or KUBECONFIG names several.
    """
    named = os.environ.get("KUBECONFIG", "")
    paths = [Path(each).expanduser() for each in (named or "~/.kube/config").split(os.pathsep) if each]
    if len(paths) != 1:
        raise RefusedError(f"KUBECONFIG names {len(paths)} files, the demo needs exactly one: {named}")
    if not paths[0].is_file():
        raise RefusedError(f"there is no kubeconfig {paths[0]}")
    return paths[0]


async def inspect(kubeconfig: Path) -> Visit:
    """Look at a cluster, without changing anything.

    Raises:
        RefusedError: the demo cannot play there.
    """
    server, context = _target(kubeconfig)
    try:
        async with Kube(kubeconfig) as kube:
            nodes, namespaces, pods = [await kube.list(each) for each in ("nodes", "namespaces", "pods")]
    except (ApiError, aiohttp.ClientError, TimeoutError) as error:
        raise RefusedError(f"{server} cannot be used: {error}") from None
    _check(nodes, namespaces, pods)
    return Visit(
        kubeconfig,
        server,
        context,
        {name_of(node): _displaced(node, pods) for node in filter(manifests.is_for_demo, nodes)},
    )


def _target(kubeconfig: Path) -> tuple[str, str]:
    try:
        return Credentials.load(kubeconfig).server, yaml.safe_load(kubeconfig.read_text())["current-context"]
    except (OSError, KeyError, TypeError, ValueError, StopIteration, yaml.YAMLError) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise RefusedError(f"{kubeconfig} is no kubeconfig with a usable current context: {why}") from None


def _check(nodes: list[Object], namespaces: list[Object], pods: list[Object]) -> None:
    chosen, label = list(filter(manifests.is_for_demo, nodes)), f"{manifests.NODE_LABEL}=true"
    if len(chosen) < 2:
        raise RefusedError(f"{len(chosen)} nodes have the label, two are needed: kubectl label node NAME {label}")
    if unusable := [name_of(node) for node in chosen if not _is_usable(node)]:
        raise RefusedError(
            f"nodes with the label {label} must be ready, uncordoned and untainted: {', '.join(unusable)}"
        )
    if any(name_of(namespace) == manifests.NAMESPACE for namespace in namespaces):
        raise RefusedError(f"the namespace {manifests.NAMESPACE} is there already, and would be deleted at the end")
    # The operator sees every node, and would evict from these as well.
    evicting = [f"{name_of(n)} ({t})" for n in nodes for t, v in taints_of(n).items() if v["effect"] == NO_EXECUTE]
    if evicting:
        raise RefusedError(f"there are NoExecute taints already, the demo must not act on them: {', '.join(evicting)}")
    if any(_evicts_by_itself(pod) for pod in pods):
        raise RefusedError(
            "kube-controller-manager's own taint-eviction-controller runs here and would delete pods past their "
            "budgets: it must be off (--controllers=*,-taint-eviction-controller, see hack/kind)"
        )


def _is_usable(node: Object) -> bool:
    return is_ready(node) and not node["spec"].get("unschedulable") and not taints_of(node)


def _displaced(node: Object, pods: list[Object]) -> int:
    here = [pod for pod in pods if pod["spec"].get("nodeName") == name_of(node) and not is_leaving(pod)]
    return sum(not is_mirror(pod) and not tolerated_seconds(pod, manifests.MAINTENANCE) for pod in here)


def _evicts_by_itself(pod: Object) -> bool:
    """Say whether a pod is a kube-controller-manager that also evicts; where its pods are hidden, nobody can tell."""
    if pod["metadata"].get("labels", {}).get("component") != "kube-controller-manager":
        return False
    command = [part for container in pod["spec"]["containers"] for part in container.get("command") or []]
    return not any("-taint-eviction-controller" in part for part in command if part.startswith("--controllers="))


@asynccontextmanager
async def leaving_no_trace(kube: Kube, nodes: list[str]) -> AsyncIterator[None]:
    """Take off the taint at the end, wait until the operator has forgotten it, and delete the namespace.

    Raises:
        TimeoutError: the namespace was not gone in time.
    """
    try:
        yield
    finally:
        for node in nodes:
            await take_taint(kube, node, manifests.MAINTENANCE)
        for node in nodes:
            await _forget(kube, node)
        if await _namespace_exists(kube):
            await kube.delete("namespaces", "", manifests.NAMESPACE)
            await until(lambda: _is_gone(kube), GOODBYE_SECONDS)


async def _forget(kube: Kube, node: str) -> None:
    async def forgotten() -> bool:
        return FIRST_SEEN not in ((await kube.get("nodes", "", node))["metadata"].get("annotations") or {})

    try:
        await until(forgotten, OPERATOR_SECONDS)
    except TimeoutError:
        await kube.patch("nodes", "", node, {"metadata": {"annotations": {FIRST_SEEN: None}}})


async def _namespace_exists(kube: Kube) -> bool:
    return any(name_of(namespace) == manifests.NAMESPACE for namespace in await kube.list("namespaces"))


async def _is_gone(kube: Kube) -> bool:
    await asyncio.sleep(0.2)
    return not await _namespace_exists(kube)
