"""The facts about nodes and pods."""

import pytest

from taintkeeper.core.objects import Node, Pod, PodRef
from tests.unit.core.builders import node


def version(number: str, uid: str = "n1-uid") -> Node:
    return node("n1", uid=uid, resource_version=number)


@pytest.mark.parametrize(
    ("this", "other", "older"),
    [
        pytest.param(version("9"), version("10"), True, id="versions are numbers, not strings"),
        pytest.param(version("10"), version("9"), False, id="a later one"),
        pytest.param(version("9"), version("9"), False, id="the same"),
        pytest.param(version("9", uid="other"), version("10"), False, id="another node of the same name"),
        pytest.param(version("9"), version("ten"), False, id="a version that is no number"),
        pytest.param(version(""), version("10"), False, id="no version"),
    ],
)
def test_an_earlier_state_of_a_node_is_told_by_its_version(this: Node, other: Node, *, older: bool) -> None:
    assert this.older_than(other) is older


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [({"Ready": "True"}, True), ({"Ready": "False"}, False), ({"Ready": "Unknown"}, False), ({"Other": "True"}, False)],
)
def test_a_node_is_ready_only_when_it_says_so(conditions: dict[str, str], *, ready: bool) -> None:
    assert node(conditions=conditions).ready is ready


def test_a_pod_of_which_nothing_is_known_runs_without_priority() -> None:
    found = Pod(PodRef("default", "p1", "uid"))
    assert (found.phase, found.priority, found.ready, found.bound) == ("Running", 0, True, 0.0)
    assert str(found.ref) == "default/p1"
