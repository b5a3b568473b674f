"""Kubeconfigs to read, written as kubectl writes them."""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

EXEC_PLUGIN = """\
import json, os, pathlib, sys
folder = pathlib.Path({folder!r})
(folder / "runs").open("a").write("x")
assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"
if (folder / "broken").exists():
    sys.exit("no network")
status = json.loads((folder / "status.json").read_text())
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
"""


def kubeconfig(
    path: Path, *, server: str = "https://k8s.example.com:6443/", user: Any = None, name: str = "main", **cluster: Any
) -> Path:
    """Write a kubeconfig with a single context and return its path."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


class ExecPlugin:
    """A program that hands out credentials, and counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._script = folder / "plugin.py"
        self._script.write_text(EXEC_PLUGIN.format(folder=str(folder)))

    def hand_out(self, **status: str) -> None:
        """Set what it answers from now on."""
        (self._folder / "status.json").write_text(json.dumps(status))

    def fail(self) -> None:
        """Have it fail from now on."""
        (self._folder / "broken").touch()

    def mend(self) -> None:
        """Have it work again."""
        (self._folder / "broken").unlink()

    @property
    def runs(self) -> int:
        """How often it ran."""
        return len((self._folder / "runs").read_text())

    @property
    def user(self) -> dict[str, Any]:
        """The user in the kubeconfig."""
        api = "client.authentication.k8s.io/v1"
        return {"exec": {"apiVersion": api, "command": sys.executable, "args": [str(self._script)]}}
