"""What should become of each pod on a node that is about to be tainted, by the pod's own tolerations."""

import math
from dataclasses import dataclass

from demo.reading import allowed, is_from_daemon_set, is_mirror, name_of, tolerated_seconds
from demo.record import Record
from testbed.client import Object


@dataclass(frozen=True, slots=True)
class Forecast:
    """What should become of a pod: ``after`` so many seconds of the taint it must leave, infinity is never.

    ``held`` names the budget that will not let it go then; ``spared`` says that the taint is gone before its time.
    """

    pod: Object
    after: float
    held: str
    spared: bool
    why: str

    @property
    def leaves(self) -> bool:
        """Whether the pod should be evicted in the course of the story."""
        return self.after < math.inf and not self.spared


def forecasts(record: Record, node: str, taint: Object, lasts: float) -> list[Forecast]:
    """Return what should become of the pods on a node under a taint that stays for so many seconds."""
    return [_forecast(record, pod, taint, lasts) for pod in record.pods_on(node)]


def _forecast(record: Record, pod: Object, taint: Object, lasts: float) -> Forecast:
    seconds = tolerated_seconds(pod, taint)
    if is_mirror(pod):
        why = "should stay: it is a mirror pod, which only its kubelet can end"
        return Forecast(pod, math.inf, "", spared=False, why=why)
    if seconds == math.inf:
        whose = "its DaemonSet lets it tolerate" if is_from_daemon_set(pod) else "it tolerates"
        return Forecast(pod, seconds, "", spared=False, why=f"should stay: {whose} the taint for ever")
    if seconds > lasts:
        why = f"should stay: it tolerates the taint for {seconds:g} s, and the taint will be gone before"
        return Forecast(pod, seconds, "", spared=True, why=why)
    budget = record.budget_of(pod)
    held = name_of(budget) if budget is not None and allowed(budget) == 0 else ""
    return Forecast(pod, seconds, held, spared=False, why=_why_it_leaves(seconds, held))


def _why_it_leaves(seconds: float, held: str) -> str:
    if held:
        return f"should wait, then leave: it does not tolerate the taint, but its budget {held} is closed"
    if seconds:
        return f"should leave after {seconds:g} s: that long it tolerates the taint"
    return "should leave at once: it does not tolerate the taint"
