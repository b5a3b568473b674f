"""What we may do, asked of the API server before anything is tried."""

from dataclasses import dataclass

import msgspec

from taintkeeper.cluster.client import ApiClient, Call

REVIEWS = "selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Permission:
    """One thing that must be allowed: in all namespaces unless one is given, for all objects unless one is named."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Spell it as one would for ``kubectl auth can-i``."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        subresource = f"/{self.subresource}" if self.subresource else ""
        name = f" named {self.name}" if self.name else ""
        namespace = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{subresource}{name}{namespace}"


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _ReviewStatus


async def missing_permissions(client: ApiClient, needed: list[Permission]) -> list[Permission]:
    """Return those that are not granted, by SelfSubjectAccessReview.

    Raises UnreachableError, StatusError or msgspec.DecodeError where the server gives no verdict.
    """
    return [permission for permission in needed if not await _allowed(client, permission)]


async def _allowed(client: ApiClient, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = f"/apis/authorization.k8s.io/v1/{REVIEWS}"
    reply = await client.send(Call("POST", path, "create", REVIEWS, body=body))
    reply.raise_for_status()
    return msgspec.json.decode(reply.body, type=_Review).status.allowed
