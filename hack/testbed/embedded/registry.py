"""Create, replace, patch: the way of a write from a request's body to the store, with every check in between."""

import secrets
import uuid
from typing import Any

from testbed.embedded import patching
from testbed.embedded.admission import check_namespace, completed, with_default_tolerations
from testbed.embedded.failures import (
    Cause,
    Failure,
    already_exists,
    bad_request,
    conflict,
    invalid,
    modified,
    not_found,
    other_name,
    other_uid,
    unconditional_update,
    unreadable_patch,
)
from testbed.embedded.resources import NODES, PODS, STRICT_UPDATES, Kind, Object
from testbed.embedded.store import Record, Store
from testbed.embedded.timestamps import now
from testbed.embedded.validation import pod_change_problems, problems, wrong
from testbed.embedded.wire import canonical, check_shape

SYSTEM_METADATA = ("namespace", "name", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
"""What of the metadata no client can change."""

GENERATED_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Registry:
    """All writes that a client can make, apart from deletions and evictions."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        """Return one object.

        Raises:
            Failure: 404, there is none of this name.
        """
        record = self.store.get(kind, kind.key(namespace, name))
        if record is None:
            raise not_found(kind, name)
        return record

    def create(self, kind: Kind, namespace: str, body: Object) -> Record:
        """Store a new object and return it.

        Raises:
            Failure: it exists, it is invalid, or its namespace takes nothing new.
        """
        check_kind(kind, body)
        check_shape(kind, body)
        value = self._new_object(kind, namespace, body)
        name = value["metadata"].get("name", "")
        check_namespace(self.store, kind, namespace, name)
        _refuse(kind, name, problems(kind, value))
        value = canonical(kind, completed(self.store, kind, value))
        _refuse(kind, name, problems(kind, value))
        key = kind.key(namespace, name)
        if self.store.get(kind, key) is not None:
            raise already_exists(kind, name)
        return self.store.put(kind, key, value)

    def seed(self, kind: Kind, value: Object) -> Record:
        """Store an object as it is given, status included, with neither defaults nor checks."""
        metadata = value["metadata"]
        namespace = metadata.get("namespace", "default") if kind.namespaced else ""
        seeded = self._new_object(kind, namespace, value)
        return self.store.put(kind, kind.key(namespace, metadata["name"]), seeded)

    def _new_object(self, kind: Kind, namespace: str, body: Object) -> Object:
        metadata = {key: each for key, each in (body.get("metadata") or {}).items() if key not in _SERVER_FIELDS}
        if kind.namespaced:
            check_same_namespace(metadata.get("namespace"), namespace)
            metadata["namespace"] = namespace
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(secrets.choice(GENERATED_NAME_LETTERS) for _ in range(5))
            metadata["name"] = metadata["generateName"] + suffix
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        if kind.counts_generation:
            metadata["generation"] = 1
        return {"metadata": metadata, **{key: each for key, each in body.items() if key not in _ENVELOPE}}

    def replace(self, kind: Kind, namespace: str, name: str, body: Object, subresource: str = "") -> Record:
        """Replace an object, or its status, and return it.

        Raises:
            Failure: it does not exist, has been modified since it was read, or would become invalid.
        """
        check_kind(kind, body)
        check_shape(kind, body)
        metadata = body.get("metadata") or {}
        if metadata.get("name") != name:
            raise other_name(metadata.get("name", ""), name)
        if kind.namespaced:
            check_same_namespace(metadata.get("namespace"), namespace)
        current = self.get(kind, namespace, name)
        uid = current.value["metadata"]["uid"]
        if metadata.get("uid", uid) != uid:
            raise other_uid(kind, kind.key(namespace, name), metadata["uid"], uid)
        if kind in STRICT_UPDATES and not metadata.get("resourceVersion"):
            raise unconditional_update(kind, name)
        return self._update(current, {key: each for key, each in body.items() if key not in _TYPE}, subresource)

    def patch(
        self, kind: Kind, namespace: str, name: str, content_type: str, patch: Any, subresource: str = ""
    ) -> Record:
        """Apply a patch to an object, or to its status, and return it.

        Raises:
            Failure: it does not exist, the patch does not apply, or the object would become invalid.
        """
        current = self.get(kind, namespace, name)
        wanted = patching.apply_patch(kind, content_type, current.value, patch)
        if wanted["metadata"].get("name") != name:
            raise other_name(wanted["metadata"].get("name", ""), name)
        ignored = kind.custom and subresource == "status"  # there, no metadata counts but the version
        if wanted["metadata"].get("uid") != current.value["metadata"]["uid"] and not ignored:
            # Unlike in a PUT this is no precondition, and two parts of the API complain about it.
            raise invalid(kind, name, [wrong("metadata.uid", wanted["metadata"].get("uid"), "field is immutable")] * 2)
        try:
            wanted = canonical(kind, wanted)
        except Failure as failure:
            raise unreadable_patch(failure.message) from None
        return self._update(current, {key: each for key, each in wanted.items() if key not in _TYPE}, subresource)

    def _update(self, current: Record, wanted: Object, subresource: str) -> Record:
        kind, name = current.kind, current.value["metadata"]["name"]
        stated = wanted["metadata"].get("resourceVersion", "")
        if stated not in {"", current.value["metadata"]["resourceVersion"]}:
            raise modified(kind, name)
        value = canonical(kind, _merged_parts(current.value, wanted, kind, subresource))
        causes = problems(kind, value)
        if kind is NODES:
            causes *= 2  # the API looks at a changed node twice, as at a new one and as at a changed one
        if kind is PODS and not subresource:
            value["spec"]["tolerations"] = with_default_tolerations(value["spec"].get("tolerations") or [])
            causes += pod_change_problems(current.value["spec"], value["spec"])
        _refuse(kind, name, causes)
        return self._store(current, value)

    def _store(self, current: Record, value: Object) -> Record:
        kind, metadata = current.kind, value["metadata"]
        key = kind.key(metadata.get("namespace", ""), metadata["name"])
        if value == current.value:
            return current  # a write that changes nothing is no change: no new version, no watch event
        if kind.counts_generation and value.get("spec") != current.value.get("spec"):
            metadata["generation"] = metadata.get("generation", 0) + 1
        record = self.store.put(kind, key, value)
        was_held = current.value["metadata"].get("finalizers")
        if metadata.get("deletionTimestamp") and was_held and not metadata.get("finalizers"):
            return self.store.remove(kind, key)
        return record

    def bind(self, namespace: str, name: str, node: str) -> Record:
        """Assign a pod to a node, as the binding subresource does.

        Raises:
            Failure: 404 without such a pod, 409 when it is being deleted or has a node.
        """
        current = self.get(PODS, namespace, name)
        pod = current.value
        if pod["metadata"].get("deletionTimestamp"):
            raise conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise conflict(PODS, name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
        bound = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now()}
        others = [each for each in pod["status"].get("conditions") or [] if each["type"] != "PodScheduled"]
        status = {**pod["status"], "conditions": [*others, bound]}
        value = {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}
        return self.store.put(PODS, PODS.key(namespace, name), value)


_TYPE = {"apiVersion", "kind"}
_ENVELOPE = {*_TYPE, "metadata"}
_SERVER_FIELDS = {
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
}


def check_kind(kind: Kind, body: Object) -> None:
    """Check that a body is of the kind its path says; a body may leave both of them out.

    Raises:
        Failure: 400, it is another kind.
    """
    if body.get("kind", kind.kind) != kind.kind or body.get("apiVersion", kind.api_version) != kind.api_version:
        raise bad_request(
            f'{body.get("kind")} in version "{body.get("apiVersion")}" cannot be handled as a {kind.kind}'
        )


def check_same_namespace(stated: str | None, namespace: str) -> None:
    """Check that an object names no other namespace than the request.

    Raises:
        Failure: 400, it does.
    """
    if stated and stated != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _refuse(kind: Kind, name: str, causes: list[Cause]) -> None:
    if causes:
        raise invalid(kind, name, causes)


def _merged_parts(current: Object, wanted: Object, kind: Kind, subresource: str) -> Object:
    """Return what a write makes of an object: status only through its subresource, the rest only without it."""
    if subresource == "status" and kind.custom:
        metadata = dict(current["metadata"])
        kept = {key: value for key, value in current.items() if key != "status"}
    else:
        metadata = {**wanted["metadata"], **{key: current["metadata"][key] for key in _kept(current)}}
        for key in SYSTEM_METADATA:
            if key not in current["metadata"]:
                metadata.pop(key, None)
        metadata.pop("managedFields", None)
        kept = {"spec": current["spec"]} if "spec" in current else {}
    if subresource == "status":
        return {**kept, "metadata": metadata, "status": wanted.get("status") or {}}
    if kind.status:
        rest = {key: value for key, value in wanted.items() if key != "status"}
        status = {"status": current["status"]} if "status" in current else {}
        return {**rest, "metadata": metadata, **status}
    return {**wanted, "metadata": metadata}


def _kept(current: Object) -> list[str]:
    return [key for key in (*SYSTEM_METADATA, "resourceVersion", "generation") if key in current["metadata"]]
