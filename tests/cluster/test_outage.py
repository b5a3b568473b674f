"""Nodes, a zone, everything, the API server and the operator itself fail, one after another."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

HACK = Path(__file__).parents[2] / "hack"


@pytest.mark.only_on("real")
@pytest.mark.timeout(400)
@pytest.mark.reported("kubernetes/kubernetes#125824", "kubernetes/kubernetes#77733", "k3s-io/k3s#1264")
async def test_only_what_has_failed_is_tainted_and_everything_recovers(cluster_kind: str) -> None:
    assert cluster_kind == "real"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "outage", "--short"),
        env={**os.environ, "PYTHONPATH": str(HACK)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert "All of it came out right" in output.decode()
