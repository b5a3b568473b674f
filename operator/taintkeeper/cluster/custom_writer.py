"""Writes the status of objects of our own kinds, and nothing else of them."""

import logging
from typing import Any, Protocol

from taintkeeper.cluster.client import MERGE_PATCH, ApiClient, Call, UnreachableError, status_message
from taintkeeper.cluster.custom_kind import CustomKind, Status

logger = logging.getLogger("taintkeeper")


class CustomWriter(Protocol):
    """Writes statuses. Nothing here raises."""

    async def write_status(self, kind: CustomKind[Any, Status], name: str, status: Status) -> bool:
        """Write a status in place of the one that the object has; return whether that is done, and say why not."""
        ...


class ApiCustomWriter:
    """Writes through the API."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def write_status(self, kind: CustomKind[Any, Status], name: str, status: Status) -> bool:
        """See :class:`CustomWriter`. An object that is gone needs no status.

        For another object that has got the name meanwhile it is wrong until that one is seen: the API server looks at
        no UID here (``statusStrategy`` in k8s.io/apiextensions-apiserver ``pkg/registry/customresource``).
        """
        body = {"status": kind.encode_status(status)}
        resource, path = f"{kind.resource}/status", f"{kind.path}/{name}/status"
        call = Call("PATCH", path, "patch", resource, body=body, content_type=MERGE_PATCH)
        try:
            reply = await self._client.send(call)
        except UnreachableError as error:
            return _failed(kind, name, str(error))
        if reply.status < 300 or reply.status == 404:
            return True
        return _failed(kind, name, f"{reply.status}: {status_message(reply.body)}")


class DryCustomWriter:
    """Writes nothing, and answers as if it had."""

    async def write_status(self, kind: CustomKind[Any, Status], name: str, status: Status) -> bool:  # noqa: ARG002
        """See :class:`CustomWriter`."""
        return True


def _failed(kind: CustomKind[Any, Any], name: str, why: str) -> bool:
    logger.warning("status of %s %s could not be written, trying again: %s", kind.resource, name, why)
    return False
