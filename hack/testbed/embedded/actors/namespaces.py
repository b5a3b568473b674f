"""The namespace controller: empties a namespace that is being deleted, then lets it go."""

from typing import ClassVar

from testbed.embedded.actors.base import Actor
from testbed.embedded.deletion import delete
from testbed.embedded.resources import NAMESPACES, STORED
from testbed.embedded.store import Change


class Namespaces(Actor):
    """Finishes the deletion of namespaces."""

    name: ClassVar[str] = "namespaces"

    def notice(self, change: Change) -> None:
        """Mark a namespace that terminates, and one that loses an object while it does."""
        value = change.record.value
        if change.record.kind is NAMESPACES:
            if change.type != "DELETED" and value["status"]["phase"] == "Terminating":
                self.mark(value["metadata"]["name"])
        elif change.type == "DELETED" and change.record.kind.namespaced:
            namespace = self.store.get(NAMESPACES, value["metadata"]["namespace"])
            if namespace is not None and namespace.value["status"]["phase"] == "Terminating":
                self.mark(value["metadata"]["namespace"])

    def look(self, key: str) -> None:
        """Delete what is still in the namespace; remove it once nothing is."""
        if self.store.get(NAMESPACES, key) is None:
            return
        remaining = 0
        for kind in STORED:
            for record in list(self.store.records(kind, key)) if kind.namespaced else []:
                remaining += not delete(self.registry, kind, key, record.value["metadata"]["name"], {}).gone
        if not remaining:
            self.store.remove(NAMESPACES, key)
