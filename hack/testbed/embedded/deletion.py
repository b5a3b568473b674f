"""Deletions: preconditions, the grace period of pods, finalizers, and namespaces that first become Terminating."""

from dataclasses import dataclass
from typing import Any

from testbed.embedded.failures import bad_request, precondition
from testbed.embedded.registry import Registry
from testbed.embedded.resources import NAMESPACES, PODS, Kind, Object
from testbed.embedded.store import Record
from testbed.embedded.timestamps import now, parse


@dataclass(frozen=True, slots=True)
class Deletion:
    """What came of a deletion: the last state, and whether the object is gone or on its way."""

    record: Record
    gone: bool


def delete(registry: Registry, kind: Kind, namespace: str, name: str, options: Object) -> Deletion:
    """Delete an object, or start to.

    Args:
        registry: where the object is.
        kind: its kind.
        namespace: its namespace, empty for cluster-scoped kinds.
        name: its name.
        options: a ``DeleteOptions`` object: ``gracePeriodSeconds`` and ``preconditions`` are obeyed, dependents are
            always left to the garbage collector. With ``dryRun`` nothing is done.

    Raises:
        Failure: 404, or 409 when a precondition does not hold.
    """
    current = registry.get(kind, namespace, name)
    check_preconditions(current, options)
    if options.get("dryRun"):
        return Deletion(current, gone=False)
    if kind is PODS:
        return _delete_pod(registry, current, options)
    if kind is NAMESPACES:
        return _terminate_namespace(registry, current)
    return _remove(registry, current)


def check_preconditions(current: Record, options: Object) -> None:
    """Check the preconditions of a deletion against the object.

    Raises:
        Failure: 409, the UID or the resourceVersion is another.
    """
    wanted = options.get("preconditions") or {}
    have = current.value["metadata"]
    for field, label, verb in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        if wanted.get(field) not in {None, have[field]}:
            why = (
                f"the {label} in the precondition ({wanted[field]}) does not match "
                f"the {label} in record ({have[field]}). The object might have been {verb}"
            )
            raise precondition(current.kind, have["name"], why)


def _key(current: Record) -> str:
    metadata = current.value["metadata"]
    return current.kind.key(metadata.get("namespace", ""), metadata["name"])


def _remove(registry: Registry, current: Record) -> Deletion:
    metadata = current.value["metadata"]
    if not metadata.get("finalizers"):
        return Deletion(registry.store.remove(current.kind, _key(current)), gone=True)
    if metadata.get("deletionTimestamp"):
        return Deletion(current, gone=False)
    marks = {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
    return Deletion(_marked(registry, current, marks), gone=False)


def _marked(registry: Registry, current: Record, marks: Object) -> Record:
    metadata = {**current.value["metadata"], **marks}
    if metadata.get("generation") and "deletionTimestamp" not in current.value["metadata"]:
        metadata["generation"] += 1
    return registry.store.put(current.kind, _key(current), {**current.value, "metadata": metadata})


def _terminate_namespace(registry: Registry, current: Record) -> Deletion:
    if current.value["metadata"].get("deletionTimestamp"):
        return Deletion(current, gone=False)
    value = {**current.value, "status": {**current.value["status"], "phase": "Terminating"}}
    value["metadata"] = {**current.value["metadata"], "deletionTimestamp": now()}
    return Deletion(registry.store.put(NAMESPACES, _key(current), value), gone=False)


def _delete_pod(registry: Registry, current: Record, options: Object) -> Deletion:
    metadata = current.value["metadata"]
    if metadata.get("deletionTimestamp"):
        marks = _shortened(metadata, _grace(options.get("gracePeriodSeconds")))
    else:
        seconds = _pod_grace(current.value, options)
        marks = {"deletionTimestamp": now(seconds), "deletionGracePeriodSeconds": seconds}
    if marks:
        # The API writes the mark even when the pod goes at once: a watch sees MODIFIED, then DELETED.
        current = _marked(registry, current, marks)
    if current.value["metadata"]["deletionGracePeriodSeconds"] > 0 or metadata.get("finalizers"):
        return Deletion(current, gone=False)
    return Deletion(registry.store.remove(PODS, _key(current)), gone=True)


def _grace(seconds: Any) -> int | None:
    """Return the grace period asked for: negative ones count as one second."""
    if seconds is None:
        return None
    if not isinstance(seconds, int):
        raise bad_request("gracePeriodSeconds must be an integer")
    return 1 if seconds < 0 else seconds


def _pod_grace(pod: Object, options: Object) -> int:
    asked = _grace(options.get("gracePeriodSeconds"))
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in {"Succeeded", "Failed"}:
        return 0
    own = _grace(pod["spec"].get("terminationGracePeriodSeconds", 0)) or 0
    return own if asked is None else asked


def _shortened(metadata: Object, asked: int | None) -> Object:
    """Return the marks of a pod already being deleted: its grace period can only become shorter."""
    current = metadata["deletionGracePeriodSeconds"]
    if asked is None or asked >= current:
        return {}
    remaining = (parse(metadata["deletionTimestamp"]) - parse(now())).total_seconds() - current + asked
    if remaining < 0:
        return {"deletionTimestamp": now(), "deletionGracePeriodSeconds": min(asked, 1)}
    return {"deletionTimestamp": now(remaining), "deletionGracePeriodSeconds": asked}
