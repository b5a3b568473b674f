"""The operator is killed at random moments, and the API server's audit log shows that nobody noticed."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

HACK = Path(__file__).parents[2] / "hack"
KILLS = 5


@pytest.mark.only_on("real")
@pytest.mark.timeout(300)
@pytest.mark.reported("kubernetes/kubernetes#108268", "kubernetes/kubernetes#42394")
async def test_whenever_it_is_killed_every_pod_leaves_once_and_in_its_time(cluster_kind: str) -> None:
    assert cluster_kind == "real"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "crash", f"--kills={KILLS}"),
        env={**os.environ, "PYTHONPATH": str(HACK)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert "All of it is right" in output.decode()
