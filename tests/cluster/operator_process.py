"""The operator as its users run it: a process of its own."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from testbed.client import until

START_SECONDS = 20.0
END_SECONDS = 10.0
RUN = (sys.executable, "-m", "taintkeeper", "run")


class OperatorProcess:
    """A running operator. ``log`` is the file that its output goes to."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        self._command = command
        self._metrics, self._probes = _free_port(), _free_port()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TAINTKEEPER_")},
            "TAINTKEEPER_METRICS_BIND_ADDRESS": f"127.0.0.1:{self._metrics}",
            "TAINTKEEPER_HEALTH_PROBE_BIND_ADDRESS": f"127.0.0.1:{self._probes}",
            **environment,
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> "OperatorProcess":
        """Start the process."""
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._environment, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self

    async def until_ready(self) -> "OperatorProcess":
        """Wait until it says that it does its work."""
        try:
            await until(self._is_ready, START_SECONDS)
        except TimeoutError:
            raise AssertionError(f"the operator did not become ready:\n{self.output()}") from None
        return self

    async def _is_ready(self) -> bool:
        return await self.probe("readyz") == 200

    async def probe(self, which: str) -> int:
        """Return the status code of ``healthz`` or ``readyz``; 0 while nothing is served."""
        return (await self._get(self._probes, which))[0]

    async def probe_text(self, which: str) -> str:
        """Return what a probe says."""
        return (await self._get(self._probes, which))[1]

    async def metric(self, name: str, **labels: str) -> float:
        """Return the sum of the samples with this name and these labels."""
        text = (await self._get(self._metrics, "metrics"))[1]
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())

    async def _get(self, port: int, path: str) -> tuple[int, str]:
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/{path}") as response:
                return response.status, await response.text()
        except aiohttp.ClientError:
            return 0, ""

    def output(self) -> str:
        """Return what it has printed so far."""
        return self.log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def end(self) -> int:
        """Wait until it has ended; return its exit code."""
        assert self._process is not None
        async with asyncio.timeout(END_SECONDS):
            return await self._process.wait()

    async def stop(self) -> int:
        """Tell it to stop and wait for that; return its exit code. One that does not stop is killed."""
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self.send(signal.SIGTERM)
        try:
            return await self.end()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            raise AssertionError(f"the operator did not end:\n{self.output()}") from None

    async def kill(self) -> None:
        """End it as a crash would."""
        self.send(signal.SIGKILL)
        await self.end()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
