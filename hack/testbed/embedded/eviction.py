"""The eviction subresource: the API server's own order of checks, budgets first, then the condition, then the deletion.

What it answers when is the contract that an evicting controller lives by, so every branch follows
``pkg/registry/core/pod/storage/eviction.go`` of Kubernetes 1.36.
"""

from testbed.embedded.admission import check_namespace
from testbed.embedded.deletion import check_preconditions, delete
from testbed.embedded.failures import Cause, Failure, bad_request, forbidden
from testbed.embedded.registry import Registry, check_same_namespace
from testbed.embedded.resources import BUDGETS, PODS, Object
from testbed.embedded.selectors import matches_selector
from testbed.embedded.store import Record
from testbed.embedded.timestamps import now

MAX_DISRUPTED_PODS = 2000
VERSIONS = {"policy/v1", "policy/v1beta1"}
TERMINAL = {"Succeeded", "Failed"}


def evict(registry: Registry, namespace: str, name: str, body: Object) -> None:
    """Evict a pod: check its budget, mark it, delete it gracefully.

    Raises:
        Failure: 400, 403, 404, 409, 429 or 500, as the API answers.
    """
    _check_type(body)
    metadata = body.get("metadata") or {}
    check_same_namespace(metadata.get("namespace"), namespace)
    check_namespace(registry.store, PODS, namespace, name)
    if metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    pod = registry.get(PODS, namespace, name)
    rehearsal = bool(options.get("dryRun"))
    if not _ignores_budgets(pod.value):
        _pass_budget(registry, pod, rehearsal=rehearsal)
    if rehearsal:
        check_preconditions(pod, options)
    else:
        _mark_and_delete(registry, pod, options)


def _check_type(body: Object) -> None:
    kind, version = body.get("kind", "Eviction"), body.get("apiVersion", "policy/v1")
    if kind != "Eviction" or version not in VERSIONS:
        raise bad_request(
            f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a Eviction: '
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )


def _ignores_budgets(pod: Object) -> bool:
    return pod["status"].get("phase") in {*TERMINAL, "Pending"} or "deletionTimestamp" in pod["metadata"]


def _pass_budget(registry: Registry, pod: Record, *, rehearsal: bool) -> None:
    budgets = budgets_of(registry, pod.value)
    if len(budgets) > 1:
        # This one answer of the API has neither reason nor details.
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise Failure(500, "", text)
    if budgets and not _unready_pod_may_go(pod.value, budgets[0].value):
        _take_one(registry, budgets[0], pod.value["metadata"]["name"], rehearsal=rehearsal)


def budgets_of(registry: Registry, pod: Object) -> list[Record]:
    """Return the budgets whose selector matches a pod."""
    metadata = pod["metadata"]
    return [
        record
        for record in registry.store.records(BUDGETS, metadata["namespace"])
        if matches_selector(record.value["spec"].get("selector"), metadata.get("labels"))
    ]


def is_ready(pod: Object) -> bool:
    """Return whether the pod's Ready condition is True."""
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _unready_pod_may_go(pod: Object, budget: Object) -> bool:
    if is_ready(pod):
        return False
    status = budget.get("status") or {}
    healthy_enough: bool = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
    return healthy_enough or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


def _take_one(registry: Registry, budget: Record, pod_name: str, *, rehearsal: bool) -> None:
    value, name = budget.value, budget.value["metadata"]["name"]
    status = value.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < value["metadata"]["generation"]:
        raise _over_budget(f"The disruption budget {name} is still being processed by the server.", 10)
    if allowed < 0:
        raise forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(BUDGETS, name, why)
    if allowed == 0:
        raise _over_budget(_why_none(name, status), 0)
    if rehearsal:
        return
    disrupted = {**(status.get("disruptedPods") or {}), pod_name: now()}
    taken = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    if allowed == 1:
        taken["conditions"] = with_allowed_condition(status, 0, value["metadata"]["generation"])
    registry.store.put(BUDGETS, BUDGETS.key(value["metadata"]["namespace"], name), {**value, "status": taken})


def _over_budget(why: str, retry_after_seconds: int) -> Failure:
    details: Object = {"causes": [Cause("DisruptionBudget", why).as_object()]}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return Failure(429, "TooManyRequests", text, details)


def _why_none(name: str, status: Object) -> str:
    wanted, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    condition = next((each for each in status.get("conditions") or [] if each["type"] == "DisruptionAllowed"), None)
    text = condition["message"] if condition and condition["status"] == "False" else ""
    if condition and text and condition["reason"] == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {text}"
    if current <= wanted:
        return f"The disruption budget {name} needs {wanted} healthy pods and has {current} currently"
    if condition and text:
        return f"The disruption budget {name} does not allow evicting pods currently ({condition['reason']}): {text}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def with_allowed_condition(status: Object, allowed: int, generation: int) -> list[Object]:
    """Return a budget's conditions with ``DisruptionAllowed`` saying whether any disruption is allowed."""
    state, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    return with_condition(status, {"status": state, "reason": reason, "message": "", "observedGeneration": generation})


def with_condition(status: Object, condition: Object) -> list[Object]:
    """Return a budget's conditions with this ``DisruptionAllowed``; its time changes only with its status."""
    old = next((each for each in status.get("conditions") or [] if each["type"] == "DisruptionAllowed"), None)
    since = old["lastTransitionTime"] if old and old["status"] == condition["status"] else now()
    return [{"type": "DisruptionAllowed", **condition, "lastTransitionTime": since}]


def _mark_and_delete(registry: Registry, pod: Record, options: Object) -> None:
    check_preconditions(pod, options)
    marked = _with_disruption_target(registry, pod)
    wanted = dict(options.get("preconditions") or {})
    if "resourceVersion" in wanted:
        wanted["resourceVersion"] = marked.value["metadata"]["resourceVersion"]
    metadata = marked.value["metadata"]
    delete(registry, PODS, metadata["namespace"], metadata["name"], {**options, "preconditions": wanted})


def _with_disruption_target(registry: Registry, pod: Record) -> Record:
    conditions = pod.value["status"].get("conditions") or []
    old = next((each for each in conditions if each["type"] == "DisruptionTarget"), None)
    mark = {"status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    if old is not None and old.items() >= mark.items():
        return pod
    since = old["lastTransitionTime"] if old is not None and old["status"] == "True" else now()
    condition = {"type": "DisruptionTarget", "lastProbeTime": None, "lastTransitionTime": since, **mark}
    others = [each for each in conditions if each is not old]
    status = {**pod.value["status"], "conditions": [*others, condition]}
    metadata = pod.value["metadata"]
    return registry.store.put(PODS, PODS.key(metadata["namespace"], metadata["name"]), {**pod.value, "status": status})
