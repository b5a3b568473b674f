"""Who is measured: Taintkeeper, and kube-controller-manager with and without its limits."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import aiohttp

from bench.command import say
from bench.report import OURS
from testbed.client import until
from testbed.real import RealCluster
from testbed.real.ports import free_port
from testbed.real.processes import Component, StartError

KCM = "kube-controller-manager"
UNTHROTTLED, THROTTLED = "kcm, no limits", "kcm"
LIMITS = {
    UNTHROTTLED: ("--kube-api-qps=20000", "--kube-api-burst=20000"),
    THROTTLED: ("--kube-api-qps=20", "--kube-api-burst=30"),
}
READY_SECONDS = 600.0
POLL_SECONDS = 0.1
QUIET_SECONDS = 15.0
"""After so long in which no further cache was synced, the last one that was counts."""
PATIENCE = aiohttp.ClientTimeout(total=10.0)
EVICTION = "--controllers=taint-eviction"

Flags = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Evictor:
    """One that is measured, at work in a cluster."""

    name: str
    cluster: RealCluster
    pid: int


class Program:
    """One that is measured, as a process of its own. ``probe`` is the page that it answers by itself, if it has any."""

    def __init__(self, name: str, command: Sequence[str], log: Path, probe: str = "") -> None:
        self.name = name
        self.probe = probe
        self.ready_at = 0.0
        """When it was ready, on the monotonic clock, once :meth:`wait_until_ready` has returned."""
        self._component = Component(name, command, log)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._component.pid

    def begin(self) -> None:
        """Start it; it works once :meth:`wait_until_ready` returns."""
        self._component.start()

    def end(self) -> None:
        """End it."""
        self._component.kill()
        self._component.log.unlink(missing_ok=True)

    async def wait_until_ready(self) -> None:
        """Wait until it does its work.

        Raises:
            StartError: it has ended.
            TimeoutError: it takes too long.
        """
        async with asyncio.timeout(READY_SECONDS):
            while not await self._knows_everything():
                if not self._component.running:
                    raise StartError(f"{self.name} has ended:\n{self._component.tail()}")
                await asyncio.sleep(POLL_SECONDS)

    async def _knows_everything(self) -> bool:
        raise NotImplementedError


class Operator(Program):
    """Taintkeeper."""

    def __init__(self, kubeconfig: Path, *flags: str) -> None:
        address = f"127.0.0.1:{free_port()}"
        addresses = ("--metrics-bind-address=0", f"--health-probe-bind-address={address}")
        command = [sys.executable, "-m", "taintkeeper", "run", f"--kubeconfig={kubeconfig}", *addresses, *flags]
        super().__init__(OURS, command, kubeconfig.with_name("taintkeeper.log"), f"http://{address}/healthz")
        self._ready = f"http://{address}/readyz"

    async def _knows_everything(self) -> bool:
        self.ready_at = time.monotonic()
        try:
            async with aiohttp.ClientSession(timeout=PATIENCE) as session, session.get(self._ready) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


class Manager(Program):
    """The kube-controller-manager of a cluster, taken out of its hands, with more flags."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        super().__init__("kcm", command, folder / "measured-kcm.log")
        self._synced = 0

    async def _knows_everything(self) -> bool:
        log = self._component.log.read_text(errors="replace")
        waiting, synced = log.count('"Waiting for caches to sync"'), log.count('"Caches are synced"')
        if synced != self._synced:
            self._synced, self.ready_at = synced, time.monotonic()
        # In a large cluster some of its controllers never say so, nor does it say which.
        return synced > 0 and (synced == waiting or time.monotonic() > self.ready_at + QUIET_SECONDS)


async def take_over(cluster: RealCluster, *flags: str) -> Manager:
    """End the cluster's kube-controller-manager; return it to be started again, with these flags as well."""
    pid = cluster.pids[KCM]
    command: list[str] = []

    def runs() -> bool:
        command[:] = Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
        return command[0].endswith(KCM)

    await until(runs)
    os.kill(pid, signal.SIGKILL)
    return Manager([*command, *flags], cluster.kubeconfig.parent)


@asynccontextmanager
async def taintkeeper(cluster_flags: Flags = MappingProxyType({})) -> AsyncIterator[Evictor]:
    """Run Taintkeeper in a control plane of its own, whose kube-controller-manager does not evict."""
    with RealCluster(scheduler=False, kubelets=False, flags=cluster_flags) as cluster:
        operator = Operator(cluster.kubeconfig, EVICTION)
        operator.begin()
        try:
            await operator.wait_until_ready()
            yield Evictor(OURS, cluster, operator.pid)
        finally:
            operator.end()


@asynccontextmanager
async def kcm(name: str, cluster_flags: Flags = MappingProxyType({})) -> AsyncIterator[Evictor]:
    """Run kube-controller-manager with its own taint-eviction-controller; ``name`` is one of :data:`LIMITS`."""
    flags = {**cluster_flags, KCM: LIMITS[name]}
    off = ("node-lifecycle-controller",)
    with RealCluster(controllers_off=off, scheduler=False, kubelets=False, flags=flags) as cluster:
        yield Evictor(name, cluster, cluster.pids[KCM])


async def let_settle(seconds: float) -> None:
    """Wait until whoever evicts has seen what there is, which only Taintkeeper tells."""
    say(f"  giving everybody {seconds:g} s to see it")
    await asyncio.sleep(seconds)
