"""Paths of the API: which kind, object and subresource a request is about, and what RBAC calls that."""

from dataclasses import dataclass

from testbed.embedded.access import Call
from testbed.embedded.resources import BY_PATH, Kind

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Route:
    """What a path points at; an empty name is the whole collection, an empty namespace all of them."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    def call(self, method: str, *, watch: bool) -> Call:
        """Return the request in the words of RBAC."""
        reading = "get" if self.name else "watch" if watch else "list"
        return Call(
            verb=VERBS.get(method, reading),
            group=self.kind.group,
            resource=self.kind.plural,
            subresource=self.subresource,
            namespace=self.namespace,
            name=self.name,
        )


def parse_path(path: str) -> Route | None:
    """Return what a path points at, or None if it is no path of a resource served here."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        return None
    return Route(kind, namespace, *(*rest[1:], "", "")[:2])
