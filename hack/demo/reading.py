"""What the API's objects say, read independently of the operator's own code."""

import math
from collections.abc import Iterable

from testbed.client import Object

NO_EXECUTE = "NoExecute"
MIRROR = "kubernetes.io/config.mirror"
EVICTED = "EvictionByEvictionAPI"
OWN_PREFIX = "node.kubernetes.io/"
FIRST_SEEN = "taintkeeper.io/first-seen"
"""The annotation in which the operator remembers when it first saw a taint that carries no time."""


def name_of(value: Object) -> str:
    """Return an object's name."""
    return str(value["metadata"]["name"])


def uid_of(value: Object) -> str:
    """Return an object's UID."""
    return str(value["metadata"]["uid"])


def app_of(pod: Object) -> str:
    """Return what a pod is part of, by its ``app`` label."""
    return str((pod["metadata"].get("labels") or {}).get("app", ""))


def node_of(pod: Object) -> str:
    """Return the name of the node that a pod is bound to, empty while it waits for one."""
    return str(pod["spec"].get("nodeName", ""))


def condition(value: Object, type_: str) -> Object:
    """Return a condition of a node or pod, an empty one if there is none of this type."""
    conditions = (value.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), {})


def is_ready(value: Object) -> bool:
    """Say whether a node or pod reports Ready=True."""
    return condition(value, "Ready").get("status") == "True"


def is_leaving(pod: Object) -> bool:
    """Say whether a pod has been told to end."""
    return "deletionTimestamp" in pod["metadata"]


def is_mirror(pod: Object) -> bool:
    """Say whether a pod is the image of a static pod, which only its kubelet can end."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def is_from_daemon_set(pod: Object) -> bool:
    """Say whether a DaemonSet owns a pod."""
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])


def taints_of(node: Object) -> dict[str, Object]:
    """Return a node's taints by how ``kubectl`` spells them."""
    return {spelled(taint): taint for taint in node["spec"].get("taints") or []}


def spelled(taint: Object) -> str:
    """Spell a taint as ``kubectl`` does: ``key=value:effect``."""
    value = taint.get("value", "")
    return f"{taint['key']}{'=' if value else ''}{value}:{taint['effect']}"


def listed(taints: Iterable[str]) -> str:
    """Spell several taints, each key once: ``key:NoSchedule,NoExecute``."""
    effects: dict[str, list[str]] = {}
    for taint in sorted(taints, reverse=True):
        key, _, effect = taint.rpartition(":")
        effects.setdefault(key, []).append(effect)
    return ", ".join(f"{key}:{','.join(each)}" for key, each in effects.items()) or "none"


def tolerated_seconds(pod: Object, taint: Object) -> float:
    """Return for how long a pod tolerates a taint: the first toleration that matches counts, infinity is for ever."""
    for toleration in pod["spec"].get("tolerations") or []:
        if _matches(toleration, taint):
            seconds = toleration.get("tolerationSeconds")
            return math.inf if seconds is None else max(0.0, float(seconds))
    return 0.0


def _matches(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect", "") not in ("", taint["effect"]):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    return bool(toleration["key"] == taint["key"] and (exists or toleration.get("value", "") == taint.get("value", "")))


def selects(budget: Object, pod: Object) -> bool:
    """Say whether a budget counts a pod; the demo's budgets select by labels alone."""
    wanted: dict[str, str] = budget["spec"]["selector"]["matchLabels"]
    return wanted.items() <= (pod["metadata"].get("labels") or {}).items()


def allowed(budget: Object) -> int:
    """Return how many pods of a budget may be evicted now."""
    return int((budget.get("status") or {}).get("disruptionsAllowed", 0))
