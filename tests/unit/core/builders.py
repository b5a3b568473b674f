"""Short ways to say what a test is about: pods, nodes, taints, tolerations, budgets and the API's answers.

Times are seconds; zero is when the test begins. Nodes are older than that, and pods came to them at zero.
"""

from typing import Any

import pytest
from _pytest.mark import ParameterSet

from taintkeeper.core.answers import CAUSE_DISRUPTION_BUDGET, CAUSE_NAMESPACE_TERMINATING, Answer
from taintkeeper.core.budgets import Budget
from taintkeeper.core.first_seen import NOT_READY, UNREACHABLE
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node, Pod, PodRef, Taint, Toleration
from taintkeeper.core.selectors import Selector

LONG_AGO = -1_000_000.0
EVERYTHING = Selector()

FOO = Taint("foo", NO_EXECUTE, time_added=0.0)
BAR = Taint("bar", NO_EXECUTE, time_added=0.0)
FOREIGN = Taint("example.com/startup", NO_SCHEDULE)

ACCEPTED = Answer(201)
GONE = Answer(404, "NotFound")
HELD_BY_BUDGET = Answer(429, "TooManyRequests", frozenset({CAUSE_DISRUPTION_BUDGET}))
THROTTLED = Answer(429, "TooManyRequests", retry_after=1.0)
FORBIDDEN = Answer(403, "Forbidden")
NAMESPACE_TERMINATING = Answer(403, "Forbidden", frozenset({CAUSE_NAMESPACE_TERMINATING}))
SEVERAL_BUDGETS = Answer(500)
WEBHOOK_DOWN = Answer(500, "InternalError", frozenset({""}))
CONNECTION_LOST = Answer(0)


def case(name: str, *values: object) -> ParameterSet:
    """Return a row that asserts what the upstream test, or case of a test, of this name asserts."""
    return pytest.param(*values, id=name, marks=pytest.mark.upstream(name.partition(":")[0]))


def reported(source: str, name: str, *values: object) -> ParameterSet:
    """Return a row whose case was reported publicly as a fault of this or a similar system."""
    return pytest.param(*values, id=name, marks=pytest.mark.reported(source))


def lasting(key: str, seconds: int | None = None, *, effect: str = NO_EXECUTE) -> Toleration:
    """Return a toleration of any value of this key, for so many seconds or for ever."""
    return Toleration(key, "Exists", effect=effect, seconds=seconds)


def no_execute(key: str, added: float | None = 0.0, value: str = "") -> Taint:
    """Return a NoExecute taint."""
    return Taint(key, NO_EXECUTE, value, added)


def not_ready(added: float | None = 0.0) -> Taint:
    """Return the NoExecute taint of a node whose kubelet says that it is not ready."""
    return no_execute(NOT_READY, added)


def unreachable(added: float | None = 0.0) -> Taint:
    """Return the NoExecute taint of a node whose kubelet says nothing any more."""
    return no_execute(UNREACHABLE, added)


def pod(name: str = "p1", *tolerations: Toleration, **facts: Any) -> Pod:
    """Return a pod on node n1; its UID is its name with "-uid" behind it unless ``uid`` says otherwise."""
    ref = PodRef(facts.pop("namespace", "default"), name, facts.pop("uid", f"{name}-uid"))
    return Pod(ref, **{"node": "n1", "tolerations": tolerations, **facts})


def node(name: str = "n1", *taints: Taint, **facts: Any) -> Node:
    """Return a node with these taints; ``conditions`` may be given as a mapping of type to status."""
    conditions = facts.pop("conditions", {})
    return Node(
        name,
        taints=taints,
        conditions=tuple(Condition(type_, status) for type_, status in conditions.items()),
        **{"uid": f"{name}-uid", "resource_version": "1", "created": LONG_AGO, **facts},
    )


def budget(name: str = "b1", *, allowed: int = 0, **labels: str) -> Budget:
    """Return a budget in the default namespace over the pods with these labels, over all pods without any."""
    return Budget("default", name, Selector(tuple(labels.items())), allowed)
