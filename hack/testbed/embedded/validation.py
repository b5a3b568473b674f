"""What makes an object invalid: those of the API's checks that a client of these kinds can run into."""

import json
import re
from collections.abc import Callable
from typing import Any

from testbed.embedded.failures import Cause
from testbed.embedded.resources import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    REPLICA_SETS,
    Kind,
    Object,
)
from testbed.embedded.selectors import matches_selector

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNHEALTHY_POLICIES = ("AlwaysAllow", "IfHealthyBudget")

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def required(field: str, detail: str = "") -> Cause:
    """Return the cause for a missing field."""
    return Cause("FieldValueRequired", "Required value" + (f": {detail}" if detail else ""), field)


def wrong(field: str, value: Any, detail: str) -> Cause:
    """Return the cause for a value that cannot be."""
    return Cause("FieldValueInvalid", f"Invalid value: {json.dumps(value, separators=(',', ':'))}: {detail}", field)


def unsupported(field: str, value: Any, supported: tuple[str, ...]) -> Cause:
    """Return the cause for a value that is none of the known ones."""
    known = ", ".join(f'"{each}"' for each in supported)
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {known}', field)


def denied(field: str, detail: str) -> Cause:
    """Return the cause for a field that may not be set or changed."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def problems(kind: Kind, value: Object) -> list[Cause]:
    """Return what is wrong with an object, whether it is new or changed."""
    check = _CHECKS.get(kind)
    return [*_metadata(value["metadata"]), *(check(value) if check else [])]


def _metadata(metadata: Object) -> list[Cause]:
    name = metadata.get("name", "")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    causes = [] if SUBDOMAIN.fullmatch(name) else [wrong("metadata.name", name, SUBDOMAIN_RULE)]
    for key, value in (metadata.get("labels") or {}).items():
        if not LABEL_NAME.fullmatch(key):
            causes.append(wrong("metadata.labels", key, LABEL_NAME_RULE))
        if not LABEL_VALUE.fullmatch(value):
            causes.append(wrong("metadata.labels", value, LABEL_VALUE_RULE))
    return causes


def _node(value: Object) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(value.get("spec", {}).get("taints") or []):
        field = f"metadata.taints[{index}]"
        causes += _label_name(f"{field}.key", taint.get("key", ""))
        if not LABEL_VALUE.fullmatch(taint.get("value", "")):
            causes.append(wrong(f"{field}.value", taint["value"], LABEL_VALUE_RULE))
        causes += _effect(f"{field}.effect", taint.get("effect", ""))
        identity = (taint.get("key", ""), taint.get("effect", ""))
        if identity in seen:
            causes.append(_duplicate_taint(field, taint))
        seen.add(identity)
    return causes


def _duplicate_taint(field: str, taint: Object) -> Cause:
    shown = {"Key": taint.get("key", ""), "Value": taint.get("value", ""), "Effect": taint.get("effect", "")}
    text = json.dumps({**shown, "TimeAdded": taint.get("timeAdded")}, separators=(",", ":"))
    return Cause("FieldValueDuplicate", f"Duplicate value: {text}: taints must be unique by key and effect pair", field)


def _label_name(field: str, name: str) -> list[Cause]:
    if not name:
        return [wrong(field, name, "name part must be non-empty"), wrong(field, name, LABEL_NAME_RULE)]
    return [] if LABEL_NAME.fullmatch(name) else [wrong(field, name, LABEL_NAME_RULE)]


def _effect(field: str, effect: str) -> list[Cause]:
    if not effect:
        return [required(field)]
    return [] if effect in EFFECTS else [unsupported(field, effect, EFFECTS)]


def _pod(value: Object) -> list[Cause]:
    spec = value.get("spec", {})
    causes = [] if spec.get("containers") else [required("spec.containers")]
    for index, container in enumerate(spec.get("containers") or []):
        causes += [] if container.get("name") else [required(f"spec.containers[{index}].name")]
        causes += [] if container.get("image") else [required(f"spec.containers[{index}].image")]
    for index, toleration in enumerate(spec.get("tolerations") or []):
        causes += _toleration(f"spec.tolerations[{index}]", toleration)
    return causes


def _toleration(field: str, toleration: Object) -> list[Cause]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    causes = _label_name(f"{field}.key", key) if key else []
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append(wrong(f"{field}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        causes.append(wrong(f"{field}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if operator == "Exists" and value:
        causes.append(wrong(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'"))
    if operator not in {"", "Equal", "Exists"}:
        known = ("Equal", "Exists", "Lt", "Gt") if operator in {"Lt", "Gt"} else ("Equal", "Exists")
        causes.append(unsupported(f"{field}.operator", operator, known))
    return causes + (_effect(f"{field}.effect", effect) if effect else [])


def _budget(value: Object) -> list[Cause]:
    spec = value.get("spec", {})
    causes = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        causes.append(wrong("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        causes += _amount(f"spec.{name}", spec[name]) if name in spec else []
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in UNHEALTHY_POLICIES:
        causes.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, UNHEALTHY_POLICIES))
    return causes


def _amount(field: str, amount: int | str) -> list[Cause]:
    if isinstance(amount, int):
        return [wrong(field, amount, "must be greater than or equal to 0")] if amount < 0 else []
    if not re.fullmatch(r"[0-9]+%", amount):
        return [wrong(field, amount, PERCENT_RULE)]
    return [wrong(field, amount, "must not be greater than 100%")] if int(amount[:-1]) > 100 else []


def _lease(value: Object) -> list[Cause]:
    spec = value.get("spec") or {}
    causes = []
    if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
        causes.append(wrong("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        detail = "must be greater than or equal to 0"
        causes.append(wrong("spec.leaseTransitions", spec["leaseTransitions"], detail))
    return causes


def _event(value: Object) -> list[Cause]:
    involved = (value.get("involvedObject") or {}).get("namespace", "")
    namespace = value["metadata"]["namespace"]
    fitting = {involved} if involved else {"default", "kube-system"} if value.get("eventTime") else {"default"}
    if not (value.get("eventTime") and involved) and namespace not in fitting:
        return [wrong("involvedObject.namespace", involved, "does not match event.namespace")]
    if not value.get("eventTime"):
        return []
    return [
        required(field)
        for field in ("reportingComponent", "reportingInstance", "action", "reason")
        if not value.get(field)
    ]


def _workload(value: Object) -> list[Cause]:
    spec = value.get("spec", {})
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if not spec.get("selector"):
        return [required("spec.selector")]
    if not matches_selector(spec["selector"], labels):
        return [wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")]
    return []


_CHECKS: dict[Kind, Callable[[Object], list[Cause]]] = {
    NODES: _node,
    PODS: _pod,
    BUDGETS: _budget,
    LEASES: _lease,
    EVENTS: _event,
    DEPLOYMENTS: _workload,
    REPLICA_SETS: _workload,
    DAEMON_SETS: _workload,
}


def pod_change_problems(old: Object, new: Object) -> list[Cause]:
    """Return what is wrong with a change of a pod's spec: hardly anything of it may change."""
    causes = []
    for toleration in old.get("tolerations") or []:
        if not any(_same_toleration(toleration, each) for each in new.get("tolerations") or []):
            detail = "existing toleration can not be modified except its tolerationSeconds"
            causes.append(denied("spec.tolerations", detail))
            break
    if _fixed_part(old) != _fixed_part(new):
        allowed = (
            "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
            "`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
        )
        causes.append(denied("spec", f"pod updates may not change fields other than {allowed}"))
    return causes


def _same_toleration(one: Object, other: Object) -> bool:
    return {**one, "tolerationSeconds": None} == {**other, "tolerationSeconds": None}


def _fixed_part(spec: Object) -> Object:
    fixed = {key: value for key, value in spec.items() if key not in {"tolerations", "activeDeadlineSeconds"}}
    return {**fixed, "containers": [{**each, "image": ""} for each in spec.get("containers") or []]}
