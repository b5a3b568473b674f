"""The embedded cluster as a program for people."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.client import Kube, until

HACK = Path(__file__).parents[3] / "hack"


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    """The program, with three nodes in two zones."""
    command = [sys.executable, "-W", "error", "-m", "testbed.embedded", "run", "--nodes", "3", "--zones", "2"]
    environment = {**os.environ, "PYTHONPATH": str(HACK)}
    with subprocess.Popen(  # noqa: S603 - it is our own program
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as started:
        yield started
        started.kill()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_it_says_where_its_kubeconfig_is_and_leaves_nothing_behind(
    program: subprocess.Popen[str], ending: signal.Signals
) -> None:
    assert program.stdout is not None
    variable, _, kubeconfig = program.stdout.readline().strip().partition("=")
    async with Kube(Path(kubeconfig)) as kube:

        async def all_ready() -> bool:
            nodes = await kube.list("nodes")
            states = [each["status"] for node in nodes for each in node["status"].get("conditions", [])]
            return len(nodes) == 3 and states.count("True") == 3

        await until(all_ready)
    program.send_signal(ending)

    _, errors = program.communicate(timeout=10)

    assert (variable, program.returncode, errors) == ("export KUBECONFIG", 0, "")
    assert not Path(kubeconfig).parent.exists()
