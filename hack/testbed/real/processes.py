"""Child processes that never outlive this one, and their logs."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The kernel kills a child when the *thread* that started it ends, so that all are started by one that ends last.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="testbed-spawner")

# Asks the kernel (PR_SET_PDEATHSIG is 1) for a SIGKILL at the parent's death, then becomes the program. The check
# covers a parent that died before it asked. It is a program of its own since code between fork and exec may deadlock
# when there are threads.
_GUARD = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
os.getppid() == int(sys.argv[1]) or os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class StartError(Exception):
    """A component ended, or was not ready in time; the message ends with what it wrote last."""


class Component:
    """One program of the control plane.

    Args:
        name: what it is called in messages.
        command: the program's path and its arguments.
        log: the file that its output is appended to.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the last start.

        Raises:
            RuntimeError: it was never started.
        """
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program. A running one is left alone."""
        if not self.running:
            self._process = _SPAWNER.submit(self._spawn).result()

    def kill(self) -> None:
        """End the process with SIGKILL and wait for its end. One that has ended, or never started, is left alone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop the process with SIGSTOP: it keeps its connections and answers nothing."""
        self._started().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._started().send_signal(signal.SIGCONT)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process

    def _spawn(self) -> subprocess.Popen[bytes]:
        guarded = [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *self._command]
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C is for the parent, which ends the components in order.
            return subprocess.Popen(
                guarded, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
