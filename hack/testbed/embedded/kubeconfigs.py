"""The files that lead to a server: one for each user, with a token that can be replaced."""

import json
import tempfile
from pathlib import Path

from testbed.embedded.access import Access


class Kubeconfigs:
    """A folder of kubeconfigs, which goes with :meth:`remove`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._folder = tempfile.TemporaryDirectory(prefix="embedded-cluster-")
        self.server = ""
        """The URL that the files lead to."""

    def path(self, name: str) -> Path:
        """Return where the file of this name is, or would be."""
        return Path(self._folder.name, name)

    def write(self, name: str, user: str) -> Path:
        """Write a file with a new token for a user and return its path."""
        path = self.path(name)
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": self.server}}],
            "users": [{"name": user, "user": {"token": self._access.issue_token(user)}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": user}}],
            "current-context": "embedded",
        }
        path.write_text(json.dumps(content, indent=1))
        return path

    def rotate(self, path: Path) -> None:
        """Put a new token into a file and have the old one refused.

        Raises:
            KeyError: the file is none of these, or its token has been replaced already.
        """
        old = json.loads(path.read_text())["users"][0]["user"]["token"]
        self.write(path.name, self._access.revoke_token(old))

    def remove(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()
