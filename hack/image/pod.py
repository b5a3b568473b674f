"""Runs what was built as the kubelet would, and sees whether it works."""

import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from image.dockerfile import ROOT, Stage

START_SECONDS = 20.0
END_SECONDS = 15.0
"""The Deployment's terminationGracePeriodSeconds."""

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {token: none}}]
current-context: nowhere
"""


class ProofError(Exception):
    """What was built does not work; the message says what was tried."""


@dataclass(frozen=True, slots=True)
class Pod:
    """Where the final stage's files are, and in which environment they run."""

    final: Stage
    root: Path
    environment: dict[str, str]
    folder: Path
    """Where files may be put that would be mounted."""

    def confine(self, command: list[str]) -> list[str]:
        """Return the command as the image's user's, on a root that cannot be written to."""
        user, group = self.final.values("USER")[0].split(":")
        variables = [f"{key}={value}" for key, value in self.environment.items()]
        drop = (
            f"setpriv --reuid={user} --regid={group} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all"
        )
        script = f'mount -o remount,bind,ro / && exec {drop} env -i "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *variables, *command]

    def output_of(self, *command: str) -> str:
        """Return what a command writes; raises ProofError when it fails."""
        done = subprocess.run(self.confine(list(command)), cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise ProofError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def check(pod: Pod) -> None:
    """See that the root is read-only and that the command works on it.

    Raises:
        ProofError: something does not.
    """
    try:
        pod.output_of("touch", str(pod.folder / "written"), "/tmp/written")  # noqa: S108 - must fail
    except ProofError as error:
        if "Read-only file system" not in str(error):
            raise
    else:
        raise ProofError("the root can be written to")
    version = re.search(r'__version__ = "(.+)"', (ROOT / "operator/taintkeeper/__init__.py").read_text())
    said = pod.output_of("taintkeeper", "--version").strip()
    if version is None or said != f"taintkeeper {version[1]}":
        raise ProofError(f"taintkeeper --version says {said!r}")
    print(said)
    if "--controllers" not in pod.output_of("taintkeeper", "run", "--help"):
        raise ProofError("taintkeeper run --help does not tell of --controllers")
    print("taintkeeper run --help tells of the flags")
    check_running(pod)


def check_running(pod: Pod) -> None:
    """Start the image's command without a cluster: alive, not ready, and gone soon after SIGTERM."""
    kubeconfig = pod.folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    kubeconfig.chmod(0o644)
    port = free_port()
    flags = [f"--kubeconfig={kubeconfig}", "--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{port}"]
    command = [*pod.final.command(), *flags]
    # unshare, sh, setpriv and env each become the next one: the process is the operator's own.
    with subprocess.Popen(pod.confine(command), cwd="/", stderr=subprocess.PIPE, text=True) as process:
        try:
            started = time.monotonic()
            while (healthy := status(port, "/healthz")) is None and process.poll() is None:
                if time.monotonic() - started > START_SECONDS:
                    break
                time.sleep(0.1)
            answers = {"/healthz": healthy, "/readyz": status(port, "/readyz")}
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            raise ProofError(f"{' '.join(command)} was still there {END_SECONDS:g} s after SIGTERM") from None
        finally:
            process.kill()
    if answers != {"/healthz": 200, "/readyz": 503} or process.returncode != 0:
        raise ProofError(f"{' '.join(command)} answered {answers} and ended with {process.returncode}:\n{log}")
    print(f"{' '.join(pod.final.command())} is alive, not ready without a cluster, and ends after SIGTERM")


def status(port: int, path: str) -> int | None:
    """Return the HTTP status of a probe, None when nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
