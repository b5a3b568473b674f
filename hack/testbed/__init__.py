"""Control planes to test against: an embedded one in Python and a real one built from Go modules.

Both are started by a class with the same shape (:class:`Cluster`), listen on loopback only, and are reached through a
kubeconfig.
"""

from pathlib import Path
from typing import Protocol


class Cluster(Protocol):
    """A running control plane."""

    name: str
    """``embedded`` or ``real``."""
    kubeconfig: Path
    """A kubeconfig whose current context is a cluster administrator."""

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """Return a kubeconfig that acts as this service account, for tests of permissions."""
        ...

    def stop(self) -> None:
        """End every process and thread of this control plane."""
        ...
