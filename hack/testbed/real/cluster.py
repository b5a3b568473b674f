"""A whole control plane of real programs: its start, its faults, its end."""

import atexit
import functools
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import yaml

from testbed.real import commands
from testbed.real.api import MERGE_PATCH, ApiError
from testbed.real.build import BuildError, is_built
from testbed.real.commands import Layout
from testbed.real.kubeconfig import Credentials, write_kubeconfig
from testbed.real.nodes import fake_node, is_ready, management
from testbed.real.ports import free_port
from testbed.real.processes import Component, StartError

REPLACED = ("taint-eviction-controller", "node-lifecycle-controller")
"""The controllers of kube-controller-manager that Taintkeeper replaces."""
DEFINITIONS = Path(__file__).parents[3] / "crds"
DEFINITION_KIND = "CustomResourceDefinition"
POLL_SECONDS = 0.05
TOKEN_SECONDS = 24 * 3600


class RealCluster:
    """A running control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

    The constructor returns when the API server is ready and knows Taintkeeper's own kinds, and the others are started.
    Everything ends with :meth:`stop`, which the ``with`` statement calls, and with this process, however that ends.

    A node lives as long as it carries the label ``kwok.x-k8s.io/node: fake``: kwok reports it as ready, renews its
    lease, runs its pods and removes those that are deleted. :meth:`silence` takes the label away, and with it all of
    that. Conditions of a living node can be written by tests, ``Ready: False`` and ``DiskPressure: True`` as much as
    any other: kwok writes them when a node has none, and when ``Ready`` is ``Unknown``, which no kubelet says of
    itself. The same with pods: kwok writes the status of pending ones only.

    The API server taints every new node as not ready, and it is for the node lifecycle controller to take that away:
    where nobody does its work, nothing is scheduled. :meth:`add_nodes` returns nodes without the taint.

    Args:
        controllers_off: the controllers that kube-controller-manager leaves out.
        scheduler: whether there is a scheduler; without one, pods stay pending unless they are made with a node's name.
        kubelets: whether there is kwok; without it, nodes and pods only have the status that tests write.
        audit: whether the API server writes down who evicts, deletes, taints and leads (:attr:`audit_log`).
        flags: more flags for a component, by its name, such as ``{"kwok": ["--node-lease-duration-seconds=4"]}``.
        deadline: how many seconds the API server may take to be ready, at this and every later start.

    Raises:
        BuildError: the programs are not built.
        StartError: a component ended, or the API server was not ready in time.
    """

    name = "real"

    def __init__(
        self,
        *,
        controllers_off: Iterable[str] = REPLACED,
        scheduler: bool = True,
        kubelets: bool = True,
        audit: bool = False,
        flags: Mapping[str, Sequence[str]] = MappingProxyType({}),
        deadline: float = 60.0,
    ) -> None:
        if not is_built():
            raise BuildError("the real cluster is not built: run `make real-cluster-build`")
        self._deadline = deadline
        self._files = tempfile.TemporaryDirectory(prefix="taintkeeper-real-")
        self._layout = _lay_out(Path(self._files.name))
        self._api = self._layout.api(timeout=10.0)
        # A starting API server may take a request and be long in answering: asking again is faster.
        self._probe = self._layout.api(timeout=1.0)
        self.kubeconfig = self._layout.kubeconfig
        self._components: dict[str, Component] = {}
        atexit.register(self.stop)
        lines = {
            "etcd": commands.etcd(self._layout),
            "kube-apiserver": [*commands.apiserver(self._layout), *(commands.audit(self._layout) if audit else ())],
            "kube-controller-manager": commands.controller_manager(self._layout, controllers_off),
            "kube-scheduler": commands.scheduler(self._layout) if scheduler else [],
            "kwok": commands.kwok(self._layout) if kubelets else [],
        }
        for name, line in lines.items():
            if line:
                log = self._layout.folder / f"{name}.log"
                self._components[name] = Component(name, [*line, *flags.get(name, ())], log)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """The process id of every component, by its name."""
        return {name: component.pid for name, component in self._components.items()}

    @property
    def audit_log(self) -> Path:
        """The audit log, one event a line, gone with the cluster; its policy is in ``audit.yaml``."""
        return self._layout.audit_log

    def stop(self) -> None:
        """End every process and remove the cluster's files. Nothing happens the second time."""
        atexit.unregister(self.stop)
        for component in reversed(self._components.values()):
            component.kill()
        self._files.cleanup()

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Return a kubeconfig that acts as this service account, which must exist, for a day.

        Raises:
            ApiError: the API server gives no token for it.
        """
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        token = self._api.call("POST", path, request)["status"]["token"]
        target = self._layout.folder / f"{namespace}.{service_account}.kubeconfig"
        return write_kubeconfig(target, self._layout.server, self._layout.credentials.authority, token, namespace)

    def stop_apiserver(self) -> None:
        """Kill the API server. Its graceful end would take a minute while watches are open."""
        self._components["kube-apiserver"].kill()

    def start_apiserver(self) -> None:
        """Start the API server again, on the same port, and wait until it is ready.

        Raises:
            StartError: it ended, or was not ready in time.
        """
        self._components["kube-apiserver"].start()
        self._until(self._is_api_ready, "the API server was not ready")

    def pause_apiserver(self) -> None:
        """Make the API server answer nothing while connections to it stay open."""
        self._components["kube-apiserver"].pause()

    def resume_apiserver(self) -> None:
        """End a pause."""
        self._components["kube-apiserver"].resume()

    def add_nodes(self, count: int, zones: int = 1, *, prefix: str = "node") -> list[str]:
        """Create nodes, ``node-1`` and so on, in turn in ``zone-1`` and so on; return their names when all are ready.

        Raises:
            ApiError: the API server refuses one.
            StartError: they were not ready in time, as when there is no kwok.
        """
        names = [f"{prefix}-{index + 1}" for index in range(count)]
        for index, name in enumerate(names):
            self._api.call("POST", "/api/v1/nodes", fake_node(name, f"zone-{index % zones + 1}"))
        for name in names:
            self._until(functools.partial(self._is_node_ready, name), f"{name} was not ready")
            self._patch_node(name, {"spec": {"taints": None}})
        return names

    def silence(self, node: str) -> None:
        """Make a node's kubelet die: no status, no lease, no pod started or removed. Its last status stays.

        Raises:
            ApiError: the API server refuses, as when there is no such node.
        """
        self._patch_node(node, management(managed=False))

    def wake(self, node: str) -> None:
        """Bring a silent node's kubelet back: it reports as ready if it was given up, and catches up with its pods.

        Raises:
            ApiError: the API server refuses, as when there is no such node.
        """
        self._patch_node(node, management(managed=True))

    def component_log(self, name: str) -> str:
        """Return everything that a component wrote so far, by a name such as ``kube-apiserver``.

        Raises:
            KeyError: this cluster has no such component.
        """
        return self._components[name].log.read_text(errors="replace")

    def _start(self) -> None:
        for name in ("etcd", "kube-apiserver"):
            self._components[name].start()
        self._until(self._is_api_ready, "the API server was not ready")
        kinds = _definitions()
        for made in kinds:
            self._api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made)
        for component in self._components.values():
            component.start()
        self._until(lambda: all(map(self._serves, kinds)), "the API server did not serve Taintkeeper's kinds")

    def _patch_node(self, name: str, patch: object) -> None:
        self._api.call("PATCH", f"/api/v1/nodes/{name}", patch, MERGE_PATCH)

    def _is_api_ready(self) -> bool:
        try:
            self._probe.call("GET", "/readyz")
            # Kubelets keep their leases there, and /readyz does not wait for it.
            self._probe.call("GET", "/api/v1/namespaces/kube-node-lease")
        except (ApiError, OSError):
            return False
        return True

    def _serves(self, definition: Any) -> bool:
        spec = definition["spec"]
        (version,) = spec["versions"]
        try:
            self._probe.call("GET", f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
        except (ApiError, OSError):
            return False
        return True

    def _is_node_ready(self, name: str) -> bool:
        return is_ready(self._api.call("GET", f"/api/v1/nodes/{name}"))

    def _until(self, done: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + self._deadline
        while not done():
            self._check_components()
            if time.monotonic() > end:
                logs = "\n".join(f"--- {part.name}\n{part.tail(10)}" for part in self._components.values())
                raise StartError(f"{otherwise} in {self._deadline:g} s; the ends of the logs:\n{logs}")
            time.sleep(POLL_SECONDS)

    def _check_components(self) -> None:
        for component in self._components.values():
            if component.log.exists() and not component.running:
                raise StartError(f"{component.name} ended; the end of its log:\n{component.tail()}")


def _definitions() -> list[Any]:
    read = (yaml.safe_load(path.read_text()) for path in sorted(DEFINITIONS.glob("*.yaml")))
    return [each for each in read if each["kind"] == DEFINITION_KIND]


def _lay_out(folder: Path) -> Layout:
    credentials = Credentials.create(folder)
    layout = Layout(folder, free_port(), folder / "admin.kubeconfig", credentials)
    write_kubeconfig(layout.kubeconfig, layout.server, credentials.authority, credentials.admin_token)
    return layout
