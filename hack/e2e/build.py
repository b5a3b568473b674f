"""Builds Kubernetes' own end-to-end tests, of the version that the real control plane has."""

from collections.abc import Callable
from pathlib import Path

from testbed.real.build import build_program, cache_folder

MODULE = Path(__file__).parent / "module"
PACKAGE = "k8s.io/kubernetes/test/e2e"


def program() -> Path:
    """Return where the tests are once they are built: outside the repository, as one program."""
    return cache_folder(sorted(MODULE.glob("go.*"))) / "e2e.test"


def build(say: Callable[[str], None]) -> Path:
    """Build the tests, which takes minutes the first time; return the program.

    Raises:
        BuildError: the build failed.
    """
    build_program(program(), MODULE, ["test", "-c"], PACKAGE, say)
    return program()
