"""What an audit log says about who was to leave when, who asked for it, and who led meanwhile.

All times are the API server's own, in seconds since the epoch.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Event = dict[str, Any]

ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that was made. ``seconds`` tells for how long it tolerates a taint, by the taint's key; for ever is inf."""

    uid: str
    name: str
    node: str
    app: str
    created: float
    seconds: Mapping[str, float]


@dataclass(slots=True)
class Taint:
    """A taint that stood on a node from ``since`` to ``until``. ``added`` is its own ``timeAdded``, if it has one."""

    node: str
    key: str
    since: float
    added: float | None = None
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a process asked the API server for: the eviction or deletion of a pod, or a write of a node.

    ``uid`` is that of the pod that is to go, empty for a node; ``status`` is the HTTP status of the answer.
    """

    by: str
    at: float
    what: str
    uid: str = ""
    status: int = 201


@dataclass(frozen=True, slots=True)
class Claim:
    """A write of the Lease that was granted. ``holder`` is the process that is in it then, empty for nobody."""

    holder: str
    sent: float
    granted: float
    lasts: float


@dataclass(slots=True)
class Facts:
    """All that is to be judged.

    ``ended`` are the pods whose kubelet has removed them, which it does to those alone that were told to leave.
    ``freed`` is when the budget of an app was last changed, ``end`` the last moment.
    """

    pods: dict[str, Pod] = field(default_factory=dict)
    taints: list[Taint] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    freed: dict[str, float] = field(default_factory=dict)
    end: float = -math.inf


def read(lines: Iterable[str], namespace: str) -> Facts:
    """Read an audit log; the pods and the operators are in this namespace.

    Raises:
        ValueError: a line is no JSON.
        KeyError: an event lacks what the audit policy has every event tell.
    """
    facts = Facts()
    for event in sorted(map(json.loads, lines), key=_done):
        facts.end = max(facts.end, _done(event))
        _note(event, namespace, facts)
    return facts


def _note(event: Event, namespace: str, facts: Facts) -> None:
    about, verb = event["objectRef"], event["verb"]
    by = _process(event, namespace)
    match about["resource"], about.get("subresource"):
        case "pods", "eviction" if by:
            facts.acts.append(_departure(event, by, "evict", event["requestObject"].get("deleteOptions")))
        case "pods", None if by and verb == "delete":
            facts.acts.append(_departure(event, by, "delete", event.get("requestObject")))
        case "nodes", None if by:
            facts.acts.append(Act(by, _sent(event), f"write {about['name']}", status=event["responseStatus"]["code"]))
    if event["responseStatus"]["code"] < 300:
        _note_success(event, namespace, facts)


def _note_success(event: Event, namespace: str, facts: Facts) -> None:
    about, verb = event["objectRef"], event["verb"]
    ours = about.get("namespace") == namespace
    match about["resource"], about.get("subresource"):
        case "pods", None if ours and verb == "create":
            pod = _pod(event)
            facts.pods[pod.uid] = pod
        case "pods", None if ours and verb == "delete" and not _process(event, namespace):
            facts.ended.add(event["responseObject"]["metadata"]["uid"])
        case "nodes", None if verb in ("create", "update", "patch"):
            _note_taints(event, facts)
        case "leases", None if ours:
            facts.claims.append(_claim(event))
        case "poddisruptionbudgets", None if ours:
            app = event["responseObject"]["spec"]["selector"]["matchLabels"]["app"]
            facts.freed[app] = _done(event)


def _process(event: Event, namespace: str) -> str:
    """Return the process that sent a request: each has an account of its own; empty for everybody else."""
    name: str = event["user"]["username"]
    prefix = f"{ACCOUNT}{namespace}:"
    return name.removeprefix(prefix) if name.startswith(prefix) else ""


def _departure(event: Event, by: str, what: str, options: Any) -> Act:
    uid = ((options or {}).get("preconditions") or {}).get("uid", "")
    return Act(by, _sent(event), f"{what} {event['objectRef']['name']}", uid, event["responseStatus"]["code"])


def _pod(event: Event) -> Pod:
    made = event["responseObject"]
    metadata, spec = made["metadata"], made["spec"]
    # The API server adds tolerations of its own, of taints that nobody sets here.
    seconds = {each["key"]: float(each.get("tolerationSeconds", math.inf)) for each in spec["tolerations"]}
    app = metadata.get("labels", {}).get("app", "")
    return Pod(metadata["uid"], metadata["name"], spec["nodeName"], app, _sent(event), seconds)


def _claim(event: Event) -> Claim:
    spec = event["responseObject"]["spec"]
    holder = (spec.get("holderIdentity") or "").partition("_")[0]
    return Claim(holder, _sent(event), _done(event), float(spec.get("leaseDurationSeconds") or 0.0))


def _note_taints(event: Event, facts: Facts) -> None:
    node = event["responseObject"]
    name = node["metadata"]["name"]
    now = {each["key"]: each for each in node["spec"].get("taints", []) if each["effect"] == "NoExecute"}
    standing = {taint.key: taint for taint in facts.taints if taint.node == name and taint.until == math.inf}
    for key, taint in standing.items():
        if key not in now:
            taint.until = _done(event)
    for key, each in now.items():
        if key not in standing:
            added = each.get("timeAdded")
            facts.taints.append(Taint(name, key, _sent(event), _seconds(added) if added else None))


def _sent(event: Event) -> float:
    return _seconds(event["requestReceivedTimestamp"])


def _done(event: Event) -> float:
    return _seconds(event["stageTimestamp"])


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
