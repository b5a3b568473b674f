"""Build the control plane's binaries from Go modules, once per machine and per set of versions."""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"


class BuildError(Exception):
    """The binaries cannot be built; the message is one line that says why."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One program: its file name, the folder of the Go module that pins its version, its Go package."""

    name: str
    module: Path
    package: str

    @property
    def path(self) -> Path:
        """Where the program is once it is built."""
        return bin_folder() / self.name


BINARIES = (
    Binary("etcd", MODULES / "kubernetes", "go.etcd.io/etcd/server/v3"),
    Binary("kube-apiserver", MODULES / "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Binary("kube-controller-manager", MODULES / "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Binary("kube-scheduler", MODULES / "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Binary("kubectl", MODULES / "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Binary("kwok", MODULES / "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)


def kubernetes_version() -> str:
    """Return the version of Kubernetes that is built, such as ``v1.36.3``."""
    return _pinned(r"^\s*k8s\.io/kubernetes (v\S+)")


def bin_folder() -> Path:
    """Return the folder of the binaries: outside the repository, named after the versions that it holds."""
    return cache_folder(sorted(MODULES.glob("*/go.*"))) / "bin"


def cache_folder(pins: Iterable[Path]) -> Path:
    """Return the folder for what is built by these files, which pin the versions of everything in it."""
    home = os.environ.get("TAINTKEEPER_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "taintkeeper"
    digest = hashlib.sha256(_linker_flags().encode())
    for file in pins:
        digest.update(file.read_bytes())
    return Path(home).expanduser().absolute() / digest.hexdigest()[:16]


def is_built() -> bool:
    """Say whether every binary is there."""
    return all(binary.path.exists() for binary in BINARIES)


def can_build() -> bool:
    """Say whether this machine has what a build needs. It does not try the network."""
    try:
        check_prerequisites()
    except BuildError:
        return False
    return True


def check_prerequisites() -> None:
    """Look for a Go toolchain that is new enough.

    Raises:
        BuildError: there is none, or this is not Linux.
    """
    if platform.system() != "Linux":
        raise BuildError("the real cluster runs on Linux only")
    needed = _pinned(r"^go (\S+)")
    if shutil.which("go") is None:
        raise BuildError(f"the real cluster is built with Go >= {needed}, and there is no `go` in PATH")
    answer = subprocess.run(["go", "env", "GOVERSION"], env=_environment(), capture_output=True, text=True, check=False)
    found = answer.stdout.strip().removeprefix("go")
    if answer.returncode or _ordered(found) < _ordered(needed):
        raise BuildError(
            f"the real cluster is built with Go >= {needed}, and this is Go {found or 'of no known version'}"
        )


def build(say: Callable[[str], None]) -> None:
    """Build what is not built yet. Builds of several processes wait for each other.

    Args:
        say: is given one line of progress at a time.

    Raises:
        BuildError: Go is missing, too old, or failed.
    """
    if is_built():
        say(f"built already: {bin_folder()}")
        return
    check_prerequisites()
    started = time.monotonic()
    for binary in BINARIES:
        build_program(binary.path, binary.module, ["build"], binary.package, say)
    say(f"built in {time.monotonic() - started:.0f} s: {bin_folder()}")


def build_program(target: Path, module: Path, how: Sequence[str], package: str, say: Callable[[str], None]) -> None:
    """Build one program if it is not there yet; whoever wants the same at the same time waits.

    Args:
        target: the file that it becomes.
        module: the folder of the Go module that pins its version.
        how: what ``go`` is told to do, such as ``["build"]``.
        package: its Go package.
        say: is given one line of progress at a time.

    Raises:
        BuildError: the build failed.
    """
    with _alone(target.parent):
        if target.exists():
            return
        say(f"building {target.name} ...")
        started = time.monotonic()
        # A name of its own until it is whole: whoever sees the real name can run it.
        unfinished = target.with_name(f".{target.name}.unfinished")
        options = ["-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(), "-o", str(unfinished)]
        command = ["go", *how, *options, package]
        if subprocess.run(command, cwd=module, env=_environment(), check=False).returncode:
            raise BuildError(f"`go {' '.join(how)} {package}` failed in {module}, see above")
        unfinished.rename(target)
    say(f"building {target.name} took {time.monotonic() - started:.0f} s, {target.stat().st_size / 1e6:.0f} MB")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _environment() -> dict[str, str]:
    # A toolchain fetched behind the user's back would hide that theirs is too old; a workspace would change versions.
    return os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _linker_flags() -> str:
    # Kubernetes learns its version from its linker: without it /version says v0.0.0-master.
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    return f"-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"


def _pinned(pattern: str) -> str:
    found = re.search(pattern, (MODULES / "kubernetes" / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{MODULES / 'kubernetes' / 'go.mod'} has no line like {pattern}")
    return found[1]


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
