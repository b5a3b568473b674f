"""A whole control plane in one thread: the server, its actors and the files that lead to it."""

import asyncio
import collections
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from aiohttp import web

from testbed.embedded.access import ADMINISTRATOR, Access
from testbed.embedded.actors import Actors
from testbed.embedded.background import BackgroundLoop
from testbed.embedded.failures import generic
from testbed.embedded.faults import EvictionCall, Faults, RequestKind
from testbed.embedded.kubeconfigs import Kubeconfigs
from testbed.embedded.patching import MERGE
from testbed.embedded.registry import Registry
from testbed.embedded.resources import BY_OBJECT, BY_PLURAL, NAMESPACES, NODES, STORED, Kind, Object
from testbed.embedded.samples import sample_nodes
from testbed.embedded.server import ApiServer
from testbed.embedded.store import Store
from testbed.embedded.watching import Watch
from testbed.real.nodes import management

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
FIRST_VERSION = 100
"""A real server has a past too: version 1 is always too old to watch from."""

GOODBYE_SECONDS = 0.2
"""How long open connections get to finish when the server stops."""


class EmbeddedCluster:
    """A control plane in this process, for the demo and for tests. Every method may be called from any thread.

    Args:
        history: how many changes of each kind watches can resume from, at least.
        bookmark_seconds: how often watches get bookmarks.
        heartbeat_seconds: how often kubelets renew their leases.
        termination_seconds: how long a pod takes to end at most, whatever its grace period.
    """

    name = "embedded"

    def __init__(
        self,
        *,
        history: int = 10_000,
        bookmark_seconds: float = 60.0,
        heartbeat_seconds: float = 10.0,
        termination_seconds: float = 0.2,
    ) -> None:
        self._store = Store(history)
        self._registry = Registry(self._store)
        self._server = ApiServer(self._store, self._registry, bookmark_seconds)
        self._actors = Actors(self._registry, heartbeat_seconds, termination_seconds)
        self._kubeconfigs = Kubeconfigs(self._server.access)
        self._socket = socket.socket()
        self._loop = BackgroundLoop("embedded-cluster", self._serve)
        self.kubeconfig = self._kubeconfigs.path("kubeconfig")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Serve, and return this cluster once it answers.

        Raises:
            OSError: no loopback port is free.
        """
        self._socket.bind(("127.0.0.1", 0))
        self._store.version = FIRST_VERSION
        self._store.forget_history()
        for name in FIRST_NAMESPACES:
            self._registry.create(NAMESPACES, "", {"metadata": {"name": name}})
        self._kubeconfigs.server = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._kubeconfigs.write(self.kubeconfig.name, ADMINISTRATOR)
        self._loop.start()
        return self

    def stop(self) -> None:
        """End the server, its actors and its thread, and remove its files.

        Raises:
            ExceptionGroup: what actors failed with while the cluster ran.
        """
        try:
            self._loop.stop()
        finally:
            self._socket.close()
            self._kubeconfigs.remove()

    async def _serve(self, started: Callable[[], None], stop: asyncio.Event) -> None:
        runner = web.ServerRunner(web.Server(self._server.handle), shutdown_timeout=GOODBYE_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(actor.run()) for actor in self._actors.all()]
                started()
                await stop.wait()
                for task in running:
                    task.cancel()
        finally:
            self._server.end_watches()
            await runner.cleanup()

    # Objects, past HTTP

    def seed(self, objects: Iterable[Object]) -> None:
        """Store objects as they are, status included, with neither defaults nor checks nor HTTP.

        Each needs ``apiVersion``, ``kind`` and ``metadata.name``. Nodes get no not-ready taint.
        """
        given = [(BY_OBJECT[each["apiVersion"], each["kind"]], each) for each in objects]
        self._loop.call(lambda: [self._registry.seed(kind, value) for kind, value in given])

    def objects(self, plural: str, namespace: str = "") -> list[Object]:
        """Return the objects of a resource, in order, as they are now; they must not be changed."""
        records = self._loop.call(lambda: self._store.sorted_records(BY_PLURAL[plural], namespace))
        return [record.value for _, record in records]

    def add_nodes(self, count: int, zones: int = 1, *, prefix: str = "node") -> list[str]:
        """Add nodes with kubelets, ``node-1`` and so on, in turn in ``zone-1`` and so on, and return their names.

        They have no taint; they report as ready within a moment.
        """
        nodes = list(sample_nodes(count, zones, prefix=prefix))
        self.seed(nodes)
        return [node["metadata"]["name"] for node in nodes]

    def silence(self, node: str) -> None:
        """Make a node's kubelet die: no status, no lease, no pod started or removed. Its last status stays.

        Raises:
            Failure: there is no such node.
        """
        self._manage(node, managed=False)

    def wake(self, node: str) -> None:
        """Bring a silent node's kubelet back: it reports as ready if it was given up, and catches up with its pods.

        Raises:
            Failure: there is no such node.
        """
        self._manage(node, managed=True)

    def _manage(self, node: str, *, managed: bool) -> None:
        patch = management(managed=managed)
        self._loop.call(lambda: self._registry.patch(NODES, "", node, MERGE, patch))

    # Access

    @property
    def access(self) -> Access:
        """Tokens and denials."""
        return self._server.access

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Return a kubeconfig that acts as this service account; it may do all that nothing was said against."""
        user = f"system:serviceaccount:{namespace}:{service_account}"
        return self._kubeconfigs.write(f"{namespace}-{service_account}.kubeconfig", user)

    def rotate_token(self, kubeconfig: Path) -> None:
        """Write a new token into a kubeconfig of this cluster; from now on the old one is answered with 401."""
        self._kubeconfigs.rotate(kubeconfig)

    # Misbehaviour

    @property
    def faults(self) -> Faults:
        """Rules that delay, fail or lose answers."""
        return self._server.faults

    @property
    def requests(self) -> collections.Counter[RequestKind]:
        """How many requests of each kind there were."""
        return self._server.journal.requests

    @property
    def evictions(self) -> list[EvictionCall]:
        """The POSTs to eviction subresources, oldest first."""
        return self._server.journal.evictions

    def clear_journal(self) -> None:
        """Forget the requests and evictions counted so far."""
        self._server.journal.clear()

    def cut_watches(self, plural: str = "", *, abruptly: bool = False) -> int:
        """End the watches of a resource, or all, and return how many there were.

        Args:
            plural: the resource, empty for all.
            abruptly: tear the connections down instead of closing them in good order.
        """
        return self._for_watches(plural, lambda watch: watch.end(abruptly=abruptly))

    def freeze_watches(self, plural: str = "") -> None:
        """Keep the watches of a resource open, present and future ones, and let nothing through."""
        self._loop.call(lambda: self._server.watch_settings.frozen.update(_kinds(plural)))

    def thaw_watches(self, plural: str = "") -> None:
        """Undo :meth:`freeze_watches`; what was held back comes now."""

        def thaw() -> None:
            for kind in _kinds(plural):
                self._server.watch_settings.frozen.discard(kind)
                self._store.histories[kind].wake()

        self._loop.call(thaw)

    def inject_watch_error(self, code: int, plural: str = "", status: Object | None = None) -> int:
        """Send an ERROR event to the watches of a resource, or all, end them, and return how many there were.

        Args:
            code: the code in the event's ``Status``.
            plural: the resource, empty for all.
            status: the whole ``Status``, if not the API's own for this code.
        """
        body = status or generic(code).body()
        return self._for_watches(plural, lambda watch: watch.inject_error(body))

    def refuse_initial_events(self, *, refuse: bool = True) -> None:
        """Answer ``sendInitialEvents`` with 422, as a server older than that feature; or accept it again."""
        self._server.watch_settings.refuse_initial_events = refuse

    def forget_history(self) -> None:
        """Forget every past change and every half-read list: resuming either gets 410."""

        def forget() -> None:
            self._store.forget_history()
            self._server.lister.expire_tokens()

        self._loop.call(forget)

    def _for_watches(self, plural: str, do: Callable[[Watch], None]) -> int:
        def do_all() -> int:
            watches = self._server.watches(_kinds(plural))
            for watch in watches:
                do(watch)
            return len(watches)

        return self._loop.call(do_all)

    # Actors

    def pause(self, *actors: str) -> None:
        """Stop actors, all of them if none is named.

        Args:
            *actors: ``disruption``, ``garbage``, ``kubelets``, ``namespaces``, ``scheduler``, ``workloads``.
        """
        self._loop.call(lambda: self._actors.switch(actors, on=False))

    def resume(self, *actors: str) -> None:
        """Start paused actors again, all of them if none is named; they catch up with what they missed."""
        self._loop.call(lambda: self._actors.switch(actors, on=True))


def _kinds(plural: str) -> tuple[Kind, ...]:
    return (BY_PLURAL[plural],) if plural else STORED
