"""Which taints a node's conditions call for, and the one change that gets it there."""

from dataclasses import replace

import pytest

from taintkeeper.core.conditions import Change, execute_taint, plan, wanted
from taintkeeper.core.first_seen import NOT_READY, UNREACHABLE
from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Condition, Node, Taint
from tests.unit.core.builders import FOREIGN, case, node, not_ready, unreachable

NOW = 1000.0
PREFIX = "node.kubernetes.io/"


def closed(key: str, added: float | None = 0.0) -> Taint:
    return Taint(PREFIX + key, NO_SCHEDULE, time_added=added)


def change(changed: Node, *, execute: bool = False, may_add: bool = True) -> Change | None:
    return plan(changed, wanted(changed), execute=execute, may_add=may_add, now=NOW)


def ids(taints: tuple[Taint, ...]) -> list[str]:
    return [str(taint).removeprefix(PREFIX) for taint in taints]


@pytest.mark.parametrize(
    ("type_", "status", "key", "execute"),
    [
        ("Ready", "False", NOT_READY, NOT_READY),
        ("Ready", "Unknown", UNREACHABLE, UNREACHABLE),
        ("MemoryPressure", "True", PREFIX + "memory-pressure", None),
        ("DiskPressure", "True", PREFIX + "disk-pressure", None),
        ("PIDPressure", "True", PREFIX + "pid-pressure", None),
        ("NetworkUnavailable", "True", PREFIX + "network-unavailable", None),
        ("OutOfDisk", "True", PREFIX + "out-of-disk", None),
        ("Ready", "True", None, None),
        ("Ready", "true", None, None),
        ("MemoryPressure", "False", None, None),
        ("MemoryPressure", "Unknown", None, None),
        ("DiskPressure", "Unknown", None, None),
        ("PIDPressure", "Unknown", None, None),
        ("NetworkUnavailable", "Unknown", None, None),
        ("OutOfDisk", "Unknown", None, None),
        ("KernelDeadlock", "True", None, None),
    ],
)
def test_a_condition_calls_for_its_taint(type_: str, status: str, key: str | None, execute: str | None) -> None:
    want = wanted(node(conditions={"Ready": "True", type_: status}))
    assert list(want.no_schedule) == ([] if key is None else [key])
    assert want.execute == execute


def test_an_unschedulable_node_gets_its_taint_without_any_condition() -> None:
    want = wanted(node(unschedulable=True, conditions={"Ready": "True"}))
    assert want.no_schedule == {PREFIX + "unschedulable": "spec.unschedulable is true"}
    assert want.execute is None


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Condition("DiskPressure", "True", "KubeletHasDiskPressure"), "DiskPressure is True (KubeletHasDiskPressure)"),
        (Condition("DiskPressure", "True"), "DiskPressure is True"),
    ],
)
def test_the_reason_names_the_condition_and_the_kubelets_word_for_it(condition: Condition, text: str) -> None:
    want = wanted(replace(node(), conditions=(condition,)))
    assert want.no_schedule == {PREFIX + "disk-pressure": f"condition {text}"}


UPSTREAM_NODE = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}


@pytest.mark.parametrize(
    ("conditions", "taints", "expected"),
    [
        case(
            "TestTaintsNodeByCondition: NetworkUnavailable is true",
            {**UPSTREAM_NODE, "NetworkUnavailable": "True", "Ready": "True"},
            (),
            {"network-unavailable:NoSchedule"},
        ),
        case(
            "TestTaintsNodeByCondition: NetworkUnavailable is true, beside a taint that is out of date",
            {**UPSTREAM_NODE, "NetworkUnavailable": "True", "Ready": "True"},
            (closed("memory-pressure"),),
            {"network-unavailable:NoSchedule"},
        ),
        case(
            "TestTaintsNodeByCondition: Ready is false",
            {"NetworkUnavailable": "False", "Ready": "False"},
            (closed("network-unavailable"),),
            {"not-ready:NoSchedule"},
        ),
        case(
            "TestTaintsNodeByCondition: Ready is unknown",
            {"NetworkUnavailable": "False", "Ready": "Unknown"},
            (closed("not-ready"),),
            {"unreachable:NoSchedule"},
        ),
        pytest.param(
            {"MemoryPressure": "True", "DiskPressure": "True", "PIDPressure": "True", "Ready": "False"},
            (),
            {
                "disk-pressure:NoSchedule",
                "memory-pressure:NoSchedule",
                "not-ready:NoSchedule",
                "pid-pressure:NoSchedule",
            },
            id="several conditions at once are one change",
        ),
        pytest.param(
            {"Ready": "True"},
            tuple(closed(key) for key in ("memory-pressure", "disk-pressure", "network-unavailable", "unschedulable")),
            set(),
            id="what no condition calls for is removed",
        ),
        pytest.param({}, (closed("pid-pressure"),), set(), id="a missing pressure condition is no pressure"),
    ],
)
def test_the_change_leads_to_exactly_the_wanted_taints(
    conditions: dict[str, str], taints: tuple[Taint, ...], expected: set[str]
) -> None:
    made = change(node("n1", *taints, conditions=conditions))
    assert made is not None
    assert set(ids(made.taints)) == expected
    assert set(made.added) == set(made.taints) - set(taints)
    assert set(made.removed) == set(taints) - set(made.taints)


def test_no_change_is_planned_where_all_is_right() -> None:
    right = node("n1", closed("not-ready"), not_ready(), FOREIGN, conditions={"Ready": "False"})
    assert change(right, execute=True) is None


@pytest.mark.parametrize(
    "taint",
    [
        FOREIGN,
        pytest.param(
            Taint("readiness.k8s.io/network", NO_SCHEDULE),
            id="a start-up taint of others",
            marks=pytest.mark.reported("uswitch/nidhogg#24"),
        ),
        Taint("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE, "true"),
        Taint(PREFIX + "out-of-service", NO_EXECUTE, "nodeshutdown"),
        Taint(PREFIX + "memory-pressure", NO_EXECUTE),
        Taint(PREFIX + "unschedulable", NO_EXECUTE),
        Taint(NOT_READY, "PreferNoSchedule"),
    ],
    ids=str,
)
def test_a_taint_that_is_not_ours_is_left_as_it_is(taint: Taint) -> None:
    healthy = node("n1", taint, conditions={"Ready": "True"})
    assert change(healthy) is None
    made = change(replace(healthy, unschedulable=True))
    assert made is not None
    assert made.taints[0] is taint
    assert made.removed == ()


def test_our_taint_counts_whatever_its_value() -> None:
    stale = replace(unreachable(), value="true")
    made = change(node("n1", stale, conditions={"Ready": "True"}))
    assert made is not None
    assert made.removed == (stale,)


def test_taints_are_added_with_the_time_and_no_value() -> None:
    made = change(node(conditions={"Ready": "False"}), execute=True)
    assert made is not None
    assert made.added == (Taint(NOT_READY, NO_EXECUTE, "", NOW), Taint(NOT_READY, NO_SCHEDULE, "", NOW))


@pytest.mark.parametrize(
    ("conditions", "execute", "expected"),
    [
        ({"Ready": "False"}, True, ["not-ready:NoExecute", "not-ready:NoSchedule"]),
        ({"Ready": "False"}, False, ["not-ready:NoSchedule"]),
        ({"DiskPressure": "True"}, True, ["disk-pressure:NoSchedule"]),
    ],
)
def test_no_execute_is_added_only_when_granted_and_never_without_its_twin(
    conditions: dict[str, str], expected: list[str], *, execute: bool
) -> None:
    made = change(node(conditions=conditions), execute=execute)
    assert made is not None
    assert ids(made.added) == expected


def test_on_recovery_both_taints_go_together() -> None:
    made = change(node("n1", closed("not-ready"), not_ready(), conditions={"Ready": "True"}), execute=True)
    assert made is not None
    assert made.taints == ()


def test_no_execute_that_is_not_granted_any_more_goes_and_its_twin_stays() -> None:
    made = change(node("n1", closed("not-ready"), not_ready(), conditions={"Ready": "False"}), execute=False)
    assert made is not None
    assert ids(made.taints) == ["not-ready:NoSchedule"]


def test_swapping_is_one_change_and_keeps_the_older_time() -> None:
    swapped = node("n1", closed("not-ready", 10.0), not_ready(20.0), conditions={"Ready": "Unknown"})
    made = change(swapped, execute=True)
    assert made is not None
    assert made.taints == (unreachable(20.0), closed("unreachable", 10.0))


def test_swapping_a_taint_without_time_sets_the_time() -> None:
    made = change(node("n1", not_ready(None), conditions={"Ready": "Unknown"}), execute=True)
    assert made is not None
    assert unreachable(NOW) in made.added


@pytest.mark.parametrize("taint", [not_ready(), unreachable(), closed("not-ready"), closed("out-of-disk")], ids=str)
def test_a_taint_whose_condition_is_missing_is_neither_added_nor_removed(taint: Taint) -> None:
    assert change(node("n1", taint, conditions={"DiskPressure": "False"}), execute=True) is None


@pytest.mark.parametrize(
    ("taints", "conditions", "execute", "left"),
    [
        pytest.param((not_ready(), closed("not-ready")), {"Ready": "True"}, True, [], id="removing is always allowed"),
        pytest.param((), {"Ready": "False"}, True, None, id="adding is not"),
        pytest.param(
            (closed("disk-pressure"),),
            {"Ready": "Unknown", "DiskPressure": "False"},
            False,
            None,
            id="a node is never left without any NoSchedule taint",
        ),
        pytest.param(
            (closed("not-ready"), not_ready()),
            {"Ready": "Unknown"},
            True,
            None,
            id="nothing is removed whose successor cannot be added",
        ),
        pytest.param(
            (closed("not-ready"), not_ready()),
            {"Ready": "True", "DiskPressure": "True"},
            False,
            ["not-ready:NoSchedule"],
            id="NoExecute goes even while another taint cannot be added",
        ),
    ],
)
def test_with_stale_knowledge_taints_are_only_taken_away(
    taints: tuple[Taint, ...], conditions: dict[str, str], left: list[str] | None, *, execute: bool
) -> None:
    made = change(node("n1", *taints, conditions=conditions), execute=execute, may_add=False)
    assert (None if made is None else ids(made.taints)) == left
    assert made is None or made.added == ()


def test_the_dead_kubelet_of_a_node_under_pressure_leaves_no_moment_without_taint() -> None:
    before = node("n1", closed("disk-pressure"), conditions={"Ready": "Unknown", "DiskPressure": "Unknown"})
    made = change(before)
    assert made is not None
    assert ids(made.taints) == ["unreachable:NoSchedule"]


@pytest.mark.parametrize(
    ("taints", "expected"),
    [
        ((FOREIGN, unreachable()), unreachable()),
        ((not_ready(),), not_ready()),
        ((closed("not-ready"), Taint("foo", NO_EXECUTE)), None),
        ((), None),
    ],
)
def test_the_no_execute_taint_of_ours_is_found(taints: tuple[Taint, ...], expected: Taint | None) -> None:
    assert execute_taint(node("n1", *taints)) == expected
