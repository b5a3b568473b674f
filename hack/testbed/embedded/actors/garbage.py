"""The garbage collector: what is owned goes when its owner has gone."""

from typing import ClassVar

from testbed.embedded.actors.base import Actor
from testbed.embedded.deletion import delete
from testbed.embedded.registry import Registry
from testbed.embedded.resources import Kind
from testbed.embedded.store import Change


class Garbage(Actor):
    """Deletes the dependents of deleted objects."""

    name: ClassVar[str] = "garbage"

    def __init__(self, registry: Registry) -> None:
        self._dependents: dict[str, dict[tuple[Kind, str, str], None]] = {}
        super().__init__(registry)

    def notice(self, change: Change) -> None:
        """Keep the index of dependents; mark the owner that is gone."""
        metadata, kind = change.record.value["metadata"], change.record.kind
        identity = (kind, metadata.get("namespace", ""), metadata["name"])
        for owner in metadata.get("ownerReferences") or []:
            dependents = self._dependents.setdefault(owner["uid"], {})
            if change.type == "DELETED":
                dependents.pop(identity, None)
            else:
                dependents[identity] = None
        if change.type == "DELETED" and metadata["uid"] in self._dependents:
            self.mark(metadata["uid"])

    def look(self, key: str) -> None:
        """Delete the dependents of an owner that is gone."""
        for kind, namespace, name in list(self._dependents.pop(key, {})):
            if self.store.get(kind, kind.key(namespace, name)) is not None:
                delete(self.registry, kind, namespace, name, {})
