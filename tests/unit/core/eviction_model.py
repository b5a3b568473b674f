"""The rules of evictions, written down a second time, as plainly as it can be.

The model sees what the engine sees, event by event, and is asked about each eviction whether it may be. It shares no
rule with the engine: which toleration counts, when a pod must leave, and what follows from each answer is spelled out
once more here, for the few kinds of objects that stories are made of. Where there is a choice, such as how a pause is
jittered, the model knows the earliest and the latest moment.
"""

import math
from dataclasses import dataclass, field

from taintkeeper.core import messages as m
from taintkeeper.core.answers import Answer
from taintkeeper.core.budgets import Budget
from taintkeeper.core.objects import Node, Pod, Taint, Toleration

NEVER = math.inf
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
SWAPPED = {NOT_READY: UNREACHABLE, UNREACHABLE: NOT_READY}
BLOCKED_SECONDS = 300.0
"""How long budgets may hold a pod of an unreachable node before it is deleted, where no policy says otherwise."""
AT_ONCE = (-math.inf, -math.inf)
READING_SECONDS = 5.0
EPSILON = 1e-6

PAUSES = {
    "budget": (5.0, 60.0),
    "namespace": (15.0, 60.0),
    "forbidden": (1.0, 60.0),
    "several": (60.0, 60.0),
    "transient": (1.0, 60.0),
    "unexpected": (5.0, 60.0),
}
"""First and longest pause after each kind of refusal, in seconds; it doubles, and up to a quarter is added."""
THROTTLES = (1.0, 30.0)

Window = tuple[float, float]


def pause(kind: Window, attempt: int, now: float) -> Window:
    """Return the earliest and the latest moment at which a pause after so many failures before is over."""
    seconds = min(kind[1], kind[0] * 2**attempt)
    return now + seconds, now + 1.25 * seconds


def later(one: Window, other: Window) -> Window:
    """Return the window of what has to wait for both."""
    return max(one[0], other[0]), max(one[1], other[1])


# Taints and tolerations


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Say whether a toleration tolerates a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if not toleration.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if not (is_integer(toleration.value) and is_integer(taint.value)):
        return False
    difference = int(taint.value) - int(toleration.value)
    return {"Gt": difference > 0, "Lt": difference < 0}.get(toleration.operator, False)


def is_integer(text: str) -> bool:
    """Say whether a text is a whole number, spelled as it would be printed, of 64 bits."""
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


def tolerated_seconds(pod: Pod, taint: Taint) -> float:
    """Return for how long a pod tolerates a taint: not at all is zero, for ever is inf."""
    for toleration in pod.tolerations:
        if tolerates(toleration, taint):
            return NEVER if toleration.seconds is None else max(0.0, toleration.seconds)
    return 0.0


# When a pod must leave, and what follows from each answer


def name_of(taint: Taint) -> str:
    """Return the name by which a node remembers a taint: one that has a time of its own is another at another time."""
    return f"{taint}" if taint.time_added is None else f"{taint}@{taint.time_added:.0f}"


@dataclass
class ModelNode:
    """A node: its NoExecute taints, and since when each counts. ``remembered`` are those that do not say so."""

    taints: tuple[Taint, ...] = ()
    starts: dict[str, float] = field(default_factory=dict)
    remembered: set[str] = field(default_factory=set)

    def see(self, node: Node, now: float) -> None:
        """Take in the node: a taint that was there before goes on, one that is gone is forgotten."""
        acting = tuple(taint for taint in node.taints if taint.effect == "NoExecute")
        starts = {name_of(taint): self._start(taint, node, now) for taint in acting}
        self.remembered &= starts.keys()
        self.taints, self.starts = acting, starts

    def _start(self, taint: Taint, node: Node, now: float) -> float:
        name = name_of(taint)
        if name in self.starts:
            return self.starts[name]
        if name in node.first_seen:
            # The node's own memory outlives us.
            self.remembered.add(name)
            return min(node.first_seen[name], now)
        before = {each.key: self.starts[name_of(each)] for each in self.taints}
        if taint.key in SWAPPED and SWAPPED[taint.key] in before and taint.key not in before:
            self.remembered.add(name)
            return before[SWAPPED[taint.key]]
        if taint.time_added is not None and node.created - 300.0 <= taint.time_added <= now:
            return taint.time_added
        self.remembered.add(name)
        return now


@dataclass
class ModelPod:
    """A pod and what came of its evictions so far.

    ``waits`` says that it counts, or is evicted in vain; ``policies`` whether the one in force may have it deleted,
    which is not known where several taints are due at the same time.
    """

    pod: Pod
    posted: bool = False
    behind: tuple[str, ...] = ()
    waits: bool = False
    gone: bool = False
    left_at: float | None = None
    failures: int = 0
    pause: Window = AT_ONCE
    policies: frozenset[bool] = frozenset()


@dataclass
class ModelGate:
    """Pods under the same budgets. ``allowed`` is how many may leave, as far as is known."""

    allowed: int
    closed: Window = AT_ONCE
    refusals: int = 0


class EvictionModel:
    """Sees every event before the engine does. ``confirm`` is :attr:`EvictionOptions.confirm_seconds`."""

    def __init__(self, confirm: float) -> None:
        self._confirm = confirm
        self.nodes: dict[str, ModelNode] = {}
        self.read_at: dict[str, float] = {}
        """When each node was last read from the API server, with nothing unknown since."""
        self.pods: dict[str, ModelPod] = {}
        self.budgets: dict[str, Budget] = {}
        self.gates: dict[tuple[str, ...], ModelGate] = {}
        self.fresh = False
        self.throttle: Window = AT_ONCE
        self.throttled = (0, 0)
        """How often in a row the API server has asked to slow down: between so often and so often."""
        self.cancelled: set[str] = set()
        """Who may stay after all, by UID; each is told once."""

    # What is seen

    def see(self, event: m.EvictionInput, now: float) -> None:
        """Take in an event."""
        match event:
            case m.NodeSeen(node):
                self.nodes.setdefault(node.name, ModelNode()).see(node, now)
            case m.NodeGone(name):
                self.nodes.pop(name, None)
            case m.NodeRead(name, node, pods):
                self._read(name, node, pods, now)
            case m.PodSeen(pod):
                self.pods.setdefault(pod.ref.uid, ModelPod(pod)).pod = pod
            case m.PodGone(uid):
                self._pod_gone(uid)
            case m.BudgetSeen(budget):
                self._budget_seen(budget)
            case m.BudgetGone(_, name):
                self.budgets.pop(name, None)
                self.gates.clear()
            case m.Knowledge(fresh):
                self.fresh = fresh
                if not fresh:
                    self.read_at.clear()
            case m.EvictionAnswered(uid, answer):
                self._answered(self.pods[uid], answer, now)
        self._settle(now)

    def _read(self, name: str, node: Node | None, pods: tuple[Pod, ...], now: float) -> None:
        if node is None:
            self.nodes.pop(name, None)
        else:
            self.nodes.setdefault(name, ModelNode()).see(node, now)
        self.read_at[name] = now
        for pod in pods:
            if pod.ref.uid in self.pods:
                self.pods[pod.ref.uid].pod = pod

    def _pod_gone(self, uid: str) -> None:
        if uid in self.pods:
            self.pods[uid].gone = True

    def _budget_seen(self, budget: Budget) -> None:
        known = self.budgets.get(budget.name)
        self.budgets[budget.name] = budget
        if known is None:
            self.gates.clear()
        for names, gate in self.gates.items():
            if budget.name in names:
                allowed = self._allowed(names)
                if allowed > gate.allowed:
                    gate.closed, gate.refusals = AT_ONCE, 0
                gate.allowed = allowed

    def _allowed(self, names: tuple[str, ...]) -> int:
        return min(self.budgets[name].allowed for name in names)

    # What may be done

    def due(self, pod: Pod) -> float:
        """Return when a pod must leave its node."""
        return min((due for due, _ in self._dues(pod)), default=NEVER)

    def counts(self, node: str, now: float) -> bool:
        """Say whether a pod counts down on a node."""
        dues = [self.due(known.pod) for known in self.pods.values() if known.pod.node == node and not known.gone]
        return any(now < due < NEVER for due in dues)

    def _dues(self, pod: Pod) -> list[tuple[float, Taint]]:
        node = self.nodes.get(pod.node, ModelNode())
        starts = [(max(node.starts[name_of(taint)], pod.bound), taint) for taint in node.taints]
        return [(start + tolerated_seconds(pod, taint), taint) for start, taint in starts]

    def behind(self, pod: Pod) -> tuple[str, ...]:
        """Return the names of the budgets that hold a pod."""
        return tuple(sorted(each.name for each in self.budgets.values() if each.selects(pod)))

    def window(self, known: ModelPod) -> Window | None:
        """Return between which moments the pod is evicted next, as things are; None for not at all."""
        pod, due = known.pod, self.due(known.pod)
        if not self._may_go(known):
            return None
        again = -math.inf if known.left_at is None else known.left_at + self._confirm
        window = later(later((due, due), (again, again)), later(known.pause, self.throttle))
        if names := self.behind(pod):
            if any(each.posted and each.behind == names for each in self.pods.values()):
                return None
            window = later(window, self._gate(names).closed)
        return window

    def _may_go(self, known: ModelPod) -> bool:
        pod = known.pod
        never = known.posted or known.gone or pod.deleting or pod.mirror or pod.terminal
        return self.fresh and not never and self.due(pod) < NEVER

    def _gate(self, names: tuple[str, ...]) -> ModelGate:
        return self.gates.setdefault(names, ModelGate(self._allowed(names)))

    def evict(self, uid: str, now: float) -> None:
        """Take in that an eviction is posted; raises AssertionError where that must not be."""
        known = self.pods[uid]
        window = self.window(known)
        assert window is not None, f"{known.pod} must not be evicted"
        assert window[0] <= now + EPSILON, f"{known.pod} must not be evicted before {window[0]}, it is {now}"
        self._post(known, now)
        known.behind = self.behind(known.pod)

    def delete(self, uid: str, now: float) -> None:
        """Take in that a pod is deleted without asking its budgets; raises AssertionError where that must not be."""
        known = self.pods[uid]
        least = min((due for due, taint in self._dues(known.pod) if taint.key == UNREACHABLE), default=NEVER)
        assert least + BLOCKED_SECONDS <= now + EPSILON, f"{known.pod} must not be deleted"
        assert self._may_go(known), f"{known.pod} must not be deleted"
        assert self.throttle[0] <= now + EPSILON
        self._post(known, now)
        known.behind = ()

    def _post(self, known: ModelPod, now: float) -> None:
        read_at = self.read_at.get(known.pod.node, -math.inf)
        assert now - read_at < READING_SECONDS, f"{known.pod.node} was not read before pods are evicted from it"
        known.posted = True

    def overdue(self, now: float) -> list[str]:
        """Return the pods that should have been evicted by now; of those behind one gate a single one must be."""
        windows = {uid: self.window(known) for uid, known in self.pods.items()}
        return [uid for uid, window in windows.items() if window is not None and window[1] < now - EPSILON]

    # What came of it

    def _answered(self, known: ModelPod, answer: Answer, now: float) -> None:
        names, known.posted = known.behind, False
        kind = kind_of(answer, budgets=len(names))
        gate = self.gates.get(names) if names else None
        if kind == "throttled":
            self._throttle(answer, now)
        elif kind != "transient":
            self.throttled = (0, 0)
        if kind == "accepted" and gate is not None:
            gate.allowed, gate.closed, gate.refusals = max(0, gate.allowed - 1), AT_ONCE, 0
        if kind in ("accepted", "gone"):
            known.left_at, known.waits = now, False
        elif kind == "budget" and names:
            if gate is not None:
                gate.allowed, gate.closed = 0, pause(PAUSES["budget"], gate.refusals, now)
                gate.refusals += 1
        elif kind in PAUSES:
            known.pause = pause(PAUSES[kind], known.failures, now)
            known.failures += 1

    def _throttle(self, answer: Answer, now: float) -> None:
        asked, (fewest, most) = (now + answer.retry_after, now + answer.retry_after), self.throttled
        anew = later(asked, (pause(THROTTLES, fewest, now)[0], pause(THROTTLES, most, now)[1]))
        if now < self.throttle[0]:
            # Whatever was sent before the pause began is no reason to make it longer than the server asks for.
            self.throttle = later(self.throttle, asked)
        elif now < self.throttle[1]:
            self.throttle = later(self.throttle, (asked[0], anew[1]))
            self.throttled = fewest, most + 1
        else:
            self.throttle = anew
            self.throttled = fewest + 1, most + 1

    def _settle(self, now: float) -> None:
        """Forget the pauses of pods that need not leave now: whoever counts begins anew when its time comes."""
        # Of a pod that is gone, the answer to its eviction may still come.
        self.pods = {uid: known for uid, known in self.pods.items() if known.posted or not known.gone}
        for uid, known in self.pods.items():
            due = self.due(known.pod)
            if known.posted:
                continue
            if due > now:
                known.pause = AT_ONCE
            policies = frozenset(taint.key == UNREACHABLE for at, taint in self._dues(known.pod) if at == due)
            if policies != known.policies or len(policies) > 1:
                # By another policy than before it may be tried at once.
                known.policies, known.pause = policies, (AT_ONCE[0], known.pause[1])
            if due == NEVER:
                known.failures = 0
            leaves = known.left_at is not None and now < known.left_at + self._confirm
            if known.waits and due == NEVER:
                self.cancelled.add(uid)
            exempt = known.pod.deleting or known.pod.terminal or known.pod.mirror
            known.waits = due < NEVER and not exempt and not leaves


def kind_of(answer: Answer, *, budgets: int) -> str:
    """Return which row of the table of answers this one is."""
    table = {
        0: "transient",
        200: "accepted",
        201: "accepted",
        403: "namespace" if "NamespaceTerminating" in answer.causes else "forbidden",
        404: "gone",
        409: "transient",
        422: "unexpected",
        429: "budget" if "DisruptionBudget" in answer.causes else "throttled",
        500: "several" if budgets > 1 and not answer.reason and not answer.causes else "transient",
    }
    return table[answer.status]
