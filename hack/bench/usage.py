"""What a process uses, as the kernel has it."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.05


@dataclass(slots=True)
class Use:
    """CPU share of one core, and the most memory in MB that was seen, while a block ran."""

    cpu: float = 0.0
    peak: float = 0.0


def peak_megabytes(pid: int) -> float:
    """Return the most memory that the process has had since its start."""
    return _megabytes(pid, "VmHWM")


def megabytes(pid: int) -> float:
    """Return the memory that the process has now."""
    return _megabytes(pid, "VmRSS")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that the process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def watched(pid: int) -> AsyncIterator[Use]:
    """Find out what the process uses while the block runs; what is yielded is filled in at its end."""
    use = Use()
    begun, cpu = time.monotonic(), cpu_seconds(pid)
    sampling = asyncio.create_task(_sample(pid, use))
    try:
        yield use
    finally:
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)
        use.cpu = (cpu_seconds(pid) - cpu) / (time.monotonic() - begun)


async def _sample(pid: int, use: Use) -> None:
    while True:
        use.peak = max(use.peak, megabytes(pid))
        await asyncio.sleep(SAMPLE_SECONDS)


def _megabytes(pid: int, field: str) -> float:
    (kilobytes,) = re.findall(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1024
