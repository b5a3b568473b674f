"""The programs of the real control plane as processes: none outlives its parent, all can be paused."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.real.api import Api
from testbed.real.kubeconfig import Credentials, write_kubeconfig
from testbed.real.ports import CANDIDATES, free_port
from testbed.real.processes import Component

SLEEP = ["/bin/sleep", "600"]

PARENT = """
import sys, time
from pathlib import Path
from testbed.real.processes import Component
component = Component("sleep", ["/bin/sleep", "600"], Path(sys.argv[1]))
component.start()
print(component.pid, flush=True)
time.sleep(600)
"""


def state(pid: int) -> str:
    """Return the state letter of a process, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def component(tmp_path: Path) -> Iterator[Component]:
    """A program that does nothing for a long time."""
    program = Component("sleep", SLEEP, tmp_path / "log")
    yield program
    program.kill()


def test_a_killed_parent_takes_its_components_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as parent:  # noqa: S603
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert eventually(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        parent.send_signal(signal.SIGKILL)

    # Gone, or a zombie where nobody collects orphans.
    assert eventually(lambda: state(pid) in {"", "Z"})


def test_a_component_outlives_the_thread_that_started_it(component: Component) -> None:
    thread = threading.Thread(target=component.start)
    thread.start()
    thread.join()
    assert eventually(lambda: Path(f"/proc/{component.pid}/comm").read_text() == "sleep\n")

    time.sleep(0.1)
    assert component.running


def test_pause_and_resume(component: Component) -> None:
    component.start()
    component.pause()
    assert eventually(lambda: state(component.pid) == "T")
    assert component.running

    component.resume()
    assert eventually(lambda: state(component.pid) == "S")


def test_a_paused_component_can_be_killed_and_started_again(component: Component) -> None:
    component.start()
    first = component.pid
    component.pause()
    component.kill()
    assert not component.running
    assert state(first) == ""

    component.start()
    assert component.running
    assert component.pid != first


def test_the_log_tells_why_a_program_ended(tmp_path: Path) -> None:
    component = Component("echo", ["/bin/sh", "-c", "seq 1 30 >&2"], tmp_path / "log")
    assert component.tail() == ""
    component.start()

    assert eventually(lambda: not component.running)
    assert component.tail(2) == "29\n30"


def test_a_component_that_was_never_started_has_no_process(component: Component) -> None:
    assert not component.running
    component.kill()
    with pytest.raises(RuntimeError, match="never started"):
        component.pause()


def test_ports_are_not_those_of_clients() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())

    assert free_port() in CANDIDATES
    assert not set(CANDIDATES) & set(range(first, last + 1))


def test_secrets_are_for_their_owner(tmp_path: Path) -> None:
    credentials = Credentials.create(tmp_path)
    path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", credentials.authority, "secret", "ns")

    assert path.stat().st_mode & 0o077 == 0
    assert "namespace: ns" in path.read_text()


def test_no_server_is_an_os_error(tmp_path: Path) -> None:
    credentials = Credentials.create(tmp_path)

    with pytest.raises(OSError, match="refused"):
        Api(free_port(), credentials.authority, "secret", timeout=1.0).call("GET", "/readyz")
