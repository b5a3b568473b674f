"""The disruption controller: keeps the status of every PodDisruptionBudget, from which evictions are allowed or not."""

import math
from typing import Any, ClassVar

from testbed.embedded.actors.base import Actor, controller_of, name_of
from testbed.embedded.eviction import is_ready, with_allowed_condition, with_condition
from testbed.embedded.resources import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, Kind, Object
from testbed.embedded.selectors import matches_selector
from testbed.embedded.store import Change
from testbed.embedded.timestamps import now, parse

DELETION_TIMEOUT_SECONDS = 120
"""How long an accepted eviction is believed to become a deletion."""


class Unmanaged(Exception):  # noqa: N818 - it ends up as a condition, it is no error of this program
    """A pod has an owner whose number of replicas cannot be told."""


class Disruption(Actor):
    """Recomputes the budgets that a changed pod, budget or owner concerns."""

    name: ClassVar[str] = "disruption"

    def notice(self, change: Change) -> None:
        """Mark the budget itself, or those that select the pod, or all beside a workload."""
        value, kind = change.record.value, change.record.kind
        if kind is BUDGETS:
            if change.type != "DELETED":
                self.mark(name_of(value))
        elif kind is PODS:
            labels = value["metadata"].get("labels")
            self._mark_budgets(value["metadata"]["namespace"], labels)
            if change.previous is not None and change.previous.value["metadata"].get("labels") != labels:
                self._mark_budgets(value["metadata"]["namespace"], change.previous.value["metadata"].get("labels"))
        elif kind in {DEPLOYMENTS, REPLICA_SETS}:
            self._mark_budgets(value["metadata"]["namespace"], None)

    def _mark_budgets(self, namespace: str, labels: dict[str, str] | None) -> None:
        """Mark the budgets of a namespace, only those that select the labels if any are given."""
        for record in self.store.records(BUDGETS, namespace):
            if labels is None or matches_selector(record.value["spec"].get("selector"), labels):
                self.mark(name_of(record.value))

    def look(self, key: str) -> None:
        """Write the budget's status if it is not what it should be."""
        record = self.store.get(BUDGETS, key)
        if record is None:
            return
        budget = record.value
        selector = budget["spec"].get("selector")
        beside = self.store.records(PODS, budget["metadata"]["namespace"])
        pods = [each.value for each in beside if matches_selector(selector, each.value["metadata"].get("labels"))]
        try:
            status = self._status(budget, pods)
        except Unmanaged as error:
            status = _failed_status(budget, str(error))
        if status != budget.get("status"):
            self.store.put(BUDGETS, key, {**budget, "status": status})

    def _status(self, budget: Object, pods: list[Object]) -> Object:
        expected, desired = self._counts(budget["spec"], pods)
        old = budget.get("status") or {}
        disrupted = _still_disrupted(old.get("disruptedPods") or {}, pods)
        if disrupted:
            self.mark_later(name_of(budget), DELETION_TIMEOUT_SECONDS)
        healthy = sum(1 for pod in pods if _counts_as_healthy(pod, disrupted))
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        generation = budget["metadata"]["generation"]
        status: Object = {
            "conditions": with_allowed_condition(old, allowed, generation),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
        }
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def _counts(self, spec: Object, pods: list[Object]) -> tuple[int, int]:
        """Return how many pods are expected and how many of them have to be healthy."""
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods)
            return expected, max(expected - _scaled(spec["maxUnavailable"], expected), 0)
        minimum = spec.get("minAvailable")
        if isinstance(minimum, str):
            expected = self._scale(pods)
            return expected, _scaled(minimum, expected)
        return (len(pods), minimum) if minimum is not None else (0, 0)

    def _scale(self, pods: list[Object]) -> int:
        """Return how many replicas the owners of the pods want; pods without an owner count for nothing.

        Raises:
            Unmanaged: an owner is of a kind without replicas, or gone.
        """
        scales: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None and owner["uid"] not in scales:
                uid, replicas = self._top_owner(pod, owner)
                scales[owner["uid"]] = 0
                scales[uid] = replicas
        return sum(scales.values())

    def _top_owner(self, pod: Object, owner: Object) -> tuple[str, int]:
        namespace = pod["metadata"]["namespace"]
        replica_set = self._owner(REPLICA_SETS, namespace, owner)
        if replica_set is None:
            raise Unmanaged(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        above = controller_of(replica_set)
        deployment = self._owner(DEPLOYMENTS, namespace, above) if above else None
        top = deployment or replica_set
        return top["metadata"]["uid"], top["spec"]["replicas"]

    def _owner(self, kind: Kind, namespace: str, reference: Object) -> Object | None:
        if reference["kind"] != kind.kind:
            return None
        record = self.store.get(kind, kind.key(namespace, reference["name"]))
        return record.value if record and record.value["metadata"]["uid"] == reference["uid"] else None


def _scaled(amount: Any, total: int) -> int:
    """Return a number as it is, a percentage of the total rounded up."""
    return math.ceil(total * int(amount[:-1]) / 100) if isinstance(amount, str) else int(amount)


def _counts_as_healthy(pod: Object, disrupted: dict[str, str]) -> bool:
    metadata = pod["metadata"]
    return "deletionTimestamp" not in metadata and metadata["name"] not in disrupted and is_ready(pod)


def _still_disrupted(disrupted: dict[str, str], pods: list[Object]) -> dict[str, str]:
    """Return the accepted evictions whose pods are neither being deleted yet nor overdue."""
    if not disrupted:
        return {}
    moment = parse(now())
    staying = {each["metadata"]["name"] for each in pods if "deletionTimestamp" not in each["metadata"]}
    return {
        name: since
        for name, since in disrupted.items()
        if name in staying and (moment - parse(since)).total_seconds() <= DELETION_TIMEOUT_SECONDS
    }


def _failed_status(budget: Object, message: str) -> Object:
    old = budget.get("status") or {}
    generation = old.get("observedGeneration", 0)
    condition = {"status": "False", "reason": "SyncFailed", "message": message, "observedGeneration": generation}
    return {**old, "disruptionsAllowed": 0, "conditions": with_condition(old, condition)}
