"""Puts into words what is seen to happen."""

from demo.facts import BudgetMoved, Fact, Gone, Left, Runs, TaintsChanged, Told
from demo.reading import EVICTED, OWN_PREFIX, allowed, condition, is_leaving, listed, name_of, node_of
from demo.record import BLOCKED, CANCELLED, Record
from demo.timeline import Timeline, Tone
from testbed.client import Object

HELD_SECONDS = 0.5
"""A pod that leaves this late, or later, was held by its budget if that was closed."""

HOW = {
    EVICTED: "evicted",
    "DeletionByTaintManager": "DELETED BY KUBE-CONTROLLER-MANAGER",
}
CONDITIONS = {
    "not-ready": "Ready",
    "unreachable": "Ready",
    "memory-pressure": "MemoryPressure",
    "disk-pressure": "DiskPressure",
    "pid-pressure": "PIDPressure",
    "network-unavailable": "NetworkUnavailable",
}
"""The condition that each taint of the operator's stands for."""


class Narrator:
    """Tells facts as lines of the timeline once it has begun. Of pods it tells once ``pods_too`` is set."""

    def __init__(self, timeline: Timeline, record: Record) -> None:
        self.pods_too = False
        self._timeline = timeline
        self._record = record
        self._closed: set[str] = set()

    def begin(self) -> None:
        """Tell what happens from now on."""
        self._record.listeners.append(self._tell)

    def end(self) -> None:
        """Tell nothing of what happens from now on."""
        self._record.listeners.clear()

    def _tell(self, fact: Fact) -> None:
        if isinstance(fact, TaintsChanged):
            self._taints(fact)
        elif self.pods_too:
            self._pods(fact)

    def _pods(self, fact: Fact) -> None:
        match fact:
            case Runs(pod=pod):
                self._timeline.happened(name_of(pod), f"runs on {node_of(pod)}", Tone.GOOD)
            case Left():
                self._left(fact)
            case Gone(pod=pod) if self._was_on_failed_node(pod):
                text = f"has ended at last: the kubelet of {node_of(pod)} is back"
                self._timeline.happened(name_of(pod), text, Tone.ASIDE)
            case BudgetMoved(budget=budget) if allowed(budget) and name_of(budget) in self._closed:
                self._closed.remove(name_of(budget))
                text = f"opens, {allowed(budget)} may be evicted: {_numbers(budget)}"
                self._timeline.happened(f"budget {name_of(budget)}", text, Tone.HELD)
            case Told(about=about, reason="EvictionBlocked"):
                self._blocked(about)
            case Told(about=about, message=message) if message.startswith(CANCELLED):
                self._timeline.happened(about, "may stay: its countdown is cancelled", Tone.GOOD)
            case _:
                pass

    def _taints(self, fact: TaintsChanged) -> None:
        name = name_of(fact.node)
        if fact.added:
            self._timeline.happened(name, f"tainted {listed(fact.added)} {_why_added(fact)}", Tone.TAINT)
        if fact.removed:
            why = "(Ready is True)" if _ours(fact.removed) else "(by hand)"
            self._timeline.happened(name, f"untainted {listed(fact.removed)} {why}", Tone.GOOD)

    def _blocked(self, about: str) -> None:
        """Tell of a pod that is held. Events may be late: for one that has left meanwhile, it is no longer true."""
        for pod in self._record.pods.values():
            budget = self._record.budget_of(pod)
            if name_of(pod) == about and not is_leaving(pod) and budget is not None:
                text = f"has to wait: its budget {name_of(budget)} allows no eviction, {_numbers(budget)}"
                self._timeline.happened(about, text, Tone.HELD)
                self._closed.add(name_of(budget))

    def _was_on_failed_node(self, pod: Object) -> bool:
        left = self._record.left(pod)
        sentence = self._record.sentence(left) if left else None
        return sentence is not None and sentence[0].taint["key"].startswith(OWN_PREFIX)

    def _left(self, fact: Left) -> None:
        how = HOW.get(fact.how, "DELETED, NOT EVICTED")
        sentence = self._record.sentence(fact)
        if sentence is None:
            self._timeline.happened(name_of(fact.pod), f"{how} from {node_of(fact.pod)} FOR NO REASON", Tone.BAD)
            return
        span, seconds = sentence
        due = span.start + seconds
        tolerance = f"tolerates the taint for {seconds:g} s only" if seconds else "does not tolerate the taint"
        text = f"{how} from {node_of(fact.pod)}: {tolerance}; due at {due:.2f}, {_late(fact.at - due)}"
        if (opened := self._freed(fact, due)) is not None:
            text += f", {max(0.0, fact.at - opened):.2f} s after its budget opened"
        self._timeline.happened(name_of(fact.pod), text, Tone.LEAVES)

    def _freed(self, fact: Left, due: float) -> float | None:
        budget = self._record.budget_of(fact.pod)
        if budget is None or fact.at - due < HELD_SECONDS or not self._record.told(name_of(fact.pod), BLOCKED):
            return None
        return self._record.opened(name_of(budget), due)


def _numbers(budget: Object) -> str:
    status = budget["status"]
    return f"{status['currentHealthy']} pods are available, {status['desiredHealthy']} must be"


def _why_added(fact: TaintsChanged) -> str:
    if not _ours(fact.added):
        return "(by hand)"
    key = fact.added[0].removeprefix(OWN_PREFIX).partition(":")[0]
    found = condition(fact.node, CONDITIONS.get(key, ""))
    return f"({found['type']} is {found['status']})" if found else "(for no condition)"


def _ours(taints: tuple[str, ...]) -> bool:
    return all(taint.startswith(OWN_PREFIX) for taint in taints)


def _late(seconds: float) -> str:
    return f"{seconds:.2f} s late" if seconds >= 0 else f"{-seconds:.2f} s EARLY"
