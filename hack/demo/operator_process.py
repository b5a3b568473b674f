"""The operator as users run it: a process of its own that reaches the cluster over HTTP."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import aiohttp

from testbed.real.ports import free_port

END_SECONDS = 10.0
TAIL_LINES = 25
PATIENCE = aiohttp.ClientTimeout(total=2.0)


class OperatorProcess:
    """Runs while the ``async with`` block does.

    Args:
        kubeconfig: how it reaches the cluster.
        flags: its flags, beside those that say where it serves.
        log: the file that its output goes to.
        environment: what is set for it beside our own environment.
    """

    def __init__(
        self, kubeconfig: Path, flags: Sequence[str], log: Path, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.flags = tuple(flags)
        self.exit_code: int | None = None
        """How it ended, once it has."""
        self._log = log
        self._environment = environment
        self._metrics, self._probes = free_port(), free_port()
        addresses = [
            f"--metrics-bind-address=127.0.0.1:{self._metrics}",
            f"--health-probe-bind-address=127.0.0.1:{self._probes}",
        ]
        self._command = [sys.executable, "-m", "taintkeeper", "run", f"--kubeconfig={kubeconfig}", *addresses, *flags]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        # What is set for another operator is not meant for this one.
        ours = {name: value for name, value in os.environ.items() if not name.startswith("TAINTKEEPER_")}
        environment = ours | dict(self._environment)
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.returncode is None

    def pause(self) -> None:
        """Make it stand still, as a frozen machine would."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    async def kill(self) -> None:
        """End it as a crash would."""
        self._send(signal.SIGKILL)
        await self.stop()

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    async def is_ready(self) -> bool:
        """Say whether it does its work."""
        return (await self._get(self._probes, "readyz"))[0] == 200

    async def is_settled(self) -> bool:
        """Say whether it does its work, or has ended and never will."""
        return not self.running or await self.is_ready()

    async def metrics(self) -> str:
        """Return what it tells Prometheus, empty if it does not answer."""
        return (await self._get(self._metrics, "metrics"))[1]

    async def stop(self) -> None:
        """Tell it to end and wait for that; one that does not end is killed. Nothing happens the second time."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(END_SECONDS):
                self.exit_code = await self._process.wait()
        except TimeoutError:
            self._process.kill()
            self.exit_code = await self._process.wait()

    def tail(self) -> list[str]:
        """Return the last lines of its log."""
        return self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:]

    async def _get(self, port: int, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{port}/{path}"
        try:
            async with aiohttp.ClientSession(timeout=PATIENCE) as session, session.get(url) as response:
                return response.status, await response.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0, ""
