"""The operator without Kopf, for tests against the embedded control plane."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp

from taintkeeper.cluster.credentials import load_credentials
from taintkeeper.runtime import Taintkeeper
from taintkeeper.settings import parse_settings
from testbed.client import Kube
from testbed.embedded import EmbeddedCluster

TAINT = {"key": "foo", "effect": "NoExecute"}
SECONDS = 10.0
ACCOUNT = ("taintkeeper", "taintkeeper")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make(cluster: EmbeddedCluster, **flags: str) -> Taintkeeper:
    """Return the operator with the rights of its service account."""
    given = {"kubeconfig": str(cluster.kubeconfig_for(*ACCOUNT)), "metrics-bind-address": "0"}
    given |= {"health-probe-bind-address": "0", **{name.replace("_", "-"): text for name, text in flags.items()}}
    settings = parse_settings(given, {})
    return Taintkeeper(settings, load_credentials(settings.kubeconfig, settings.context))


@asynccontextmanager
async def running(cluster: EmbeddedCluster, **flags: str) -> AsyncIterator[Taintkeeper]:
    """Run the operator; it is ready when the block begins and stopped when it ends."""
    operator = make(cluster, **flags)
    await operator.start()
    try:
        await operator.wait_for_access()
        operator.serve()
        await until(lambda: not any(operator.readiness().values()))
        yield operator
    finally:
        await operator.stop()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, for some seconds at most."""
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)


async def taint(cluster: EmbeddedCluster, operator: Taintkeeper, name: str = "node-1") -> None:
    """Taint a node, and pass the event on as Kopf would."""
    async with Kube(cluster.kubeconfig) as kube:
        node = await kube.patch("nodes", "", name, {"spec": {"taints": [TAINT]}})
    operator.node_event({"type": "MODIFIED", "object": node})


async def get(port: int, path: str) -> tuple[int, str]:
    """Ask the operator's own server; return code and body."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()
