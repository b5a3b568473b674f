"""From a parsed request to the answer: which operation it is, and what its success looks like."""

from collections.abc import Mapping
from typing import Any

import msgspec

from testbed.embedded.access import Access
from testbed.embedded.deletion import Deletion, delete
from testbed.embedded.eviction import evict
from testbed.embedded.failures import Failure, bad_request, generic, success
from testbed.embedded.listing import Lister
from testbed.embedded.registry import Registry
from testbed.embedded.resources import ACCESS_REVIEWS, NAMESPACES, PODS, Kind, Object
from testbed.embedded.routes import Route
from testbed.embedded.scaling import rescale, scale_of
from testbed.embedded.store import Record

JSON = "application/json"

Answer = tuple[int, bytes]
"""A status code and the JSON to send."""


class Dispatcher:
    """Carries out every request that has one answer, that is all but watches."""

    def __init__(self, registry: Registry, lister: Lister, access: Access) -> None:
        self._registry = registry
        self._lister = lister
        self._access = access

    def carry_out(
        self, method: str, route: Route, parameters: Mapping[str, str], content_type: str, body: bytes, user: str
    ) -> Answer:
        """Return the answer to a request.

        Raises:
            Failure: any answer other than success.
        """
        if parameters.get("dryRun"):
            raise bad_request("this server for tests has no dry run")
        if method == "GET":
            return self._read(route, parameters)
        if method != "PATCH" and body and not content_type.startswith("application/json"):
            raise generic(
                415, f"the body of the request was in an unknown format - accepted media types include: {JSON}"
            )
        content = _decoded(body)
        if method == "POST":
            return self._post(route, content, user)
        if not route.name or route.subresource not in _WRITABLE:
            raise _not_allowed()
        if method == "DELETE" and not route.subresource:
            return self._delete(route, parameters, content)
        if method in {"PUT", "PATCH"}:
            return 200, self._write(route, content_type if method == "PATCH" else None, content)
        raise _not_allowed()

    def _read(self, route: Route, parameters: Mapping[str, str]) -> Answer:
        if route.kind is ACCESS_REVIEWS or route.subresource not in _WRITABLE:
            raise _not_allowed()
        if not route.name:
            return 200, self._lister.answer(route.kind, route.namespace, parameters)
        record = self._registry.get(route.kind, route.namespace, route.name)
        return 200, msgspec.json.encode(scale_of(record)) if route.subresource == "scale" else record.full

    def _post(self, route: Route, content: Any, user: str) -> Answer:
        if not isinstance(content, dict):
            raise bad_request("the object provided is unrecognized (must be of type JSON object)")
        if route.kind is ACCESS_REVIEWS:
            return 201, msgspec.json.encode(self._access.review(content, user))
        if route.kind is PODS and route.subresource == "eviction":
            evict(self._registry, route.namespace, route.name, content)
            return 201, msgspec.json.encode(success(code=201))
        if route.kind is PODS and route.subresource == "binding":
            target = (content.get("target") or {}).get("name", "")
            self._registry.bind(route.namespace, route.name, target)
            return 201, msgspec.json.encode(success(code=201))
        if route.name:
            raise _not_allowed()
        namespace = route.namespace if route.kind.namespaced else ""
        return 201, self._registry.create(route.kind, namespace, content).full

    def _write(self, route: Route, content_type: str | None, content: Any) -> bytes:
        target = (route.kind, route.namespace, route.name)
        if route.subresource == "scale":
            return msgspec.json.encode(rescale(self._registry, *target, content_type, content))
        if content_type is not None:
            return self._registry.patch(*target, content_type, content, route.subresource).full
        if not isinstance(content, dict):
            raise bad_request("the object provided is unrecognized (must be of type JSON object)")
        return self._registry.replace(*target, content, route.subresource).full

    def _delete(self, route: Route, parameters: Mapping[str, str], content: Any) -> Answer:
        options: Object = content if isinstance(content, dict) else {}
        if "gracePeriodSeconds" in parameters:
            options = {**options, "gracePeriodSeconds": int(parameters["gracePeriodSeconds"])}
        deletion = delete(self._registry, route.kind, route.namespace, route.name, options)
        return 200, _deletion_answer(route.kind, deletion)


_WRITABLE = {"", "status", "scale"}


def _not_allowed() -> Failure:
    return generic(405)


def _decoded(body: bytes) -> Any:
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _deletion_answer(kind: Kind, deletion: Deletion) -> bytes:
    if not deletion.gone or kind in {PODS, NAMESPACES}:
        return deletion.record.full
    return msgspec.json.encode(success(_removed(kind, deletion.record)))


def _removed(kind: Kind, record: Record) -> Object:
    metadata = record.value["metadata"]
    group = {"group": kind.group} if kind.group else {}
    return {"name": metadata["name"], **group, "kind": kind.plural, "uid": metadata["uid"]}
