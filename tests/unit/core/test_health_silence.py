"""When a node is declared Unknown: after how much silence, how, and once."""

import pytest

from taintkeeper.core import health_messages as h
from taintkeeper.core.health import Patience
from taintkeeper.core.health_engine import HealthOptions
from taintkeeper.core.messages import Knowledge, NodeSeen
from taintkeeper.core.objects import Condition, Node
from tests.unit.core.builders import LONG_AGO, case, node, pod
from tests.unit.core.health_bench import GRACE, HealthBench, declared, impatient

REPORTED = Condition("Ready", "True", "KubeletReady", -3600.0, -7200.0)
FINE = tuple(
    Condition(type_, "False", "KubeletIsFine", -3600.0, -7200.0)
    for type_ in ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
)
STOPPED = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")


def healthy(name: str = "n1") -> Node:
    return Node(name, uid=f"{name}-uid", resource_version="1", created=LONG_AGO, conditions=(REPORTED, *FINE))


@pytest.mark.parametrize(
    ("created", "reported", "lease", "reporting", "expected"),
    [
        case(
            "TestMonitorNodeHealthUpdateStatus: old node without status"
            " (here only once we have watched it for a whole grace period)",
            LONG_AGO, False, None, False, [GRACE],
        ),
        case("TestMonitorNodeHealthUpdateStatus: new node without status", 0.0, False, None, False, [60.0]),
        case("TestMonitorNodeHealthUpdateStatus: stale status", LONG_AGO, True, None, False, [GRACE]),
        case("TestMonitorNodeHealthUpdateStatus: fresh status", LONG_AGO, True, None, True, []),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease:"
            " Node created recently, without status. Node lease is missing.",
            0.0, False, None, False, [60.0],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease:"
            " Node created recently, without status. Node lease is renewed recently.",
            0.0, False, "renewed", False, [],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease:"
            " Node created long time ago, without status. Node lease is missing.",
            LONG_AGO, False, None, False, [GRACE],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease:"
            " Node created long time ago, without status. Node lease is renewed recently.",
            LONG_AGO, False, "renewed", False, [],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease:"
            " Node created long time ago, without status. Node lease is expired.",
            LONG_AGO, False, "expired", False, [60.0],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by"
            " kubelet exceeds grace period. Node lease is renewed.",
            LONG_AGO, True, "renewed", False, [],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by"
            " kubelet recently. Node lease is expired.",
            LONG_AGO, True, "expired", True, [],
        ),
        case(
            "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by"
            " kubelet exceeds grace period. Node lease is also expired.",
            LONG_AGO, True, "expired", False, [GRACE],
        ),
    ],
)  # fmt: skip
def test_a_node_is_declared_unknown_when_neither_its_status_nor_its_lease_changes(
    created: float, reported: bool, lease: str | None, reporting: bool, expected: list[float]
) -> None:
    conditions = {"Ready": "True"} if reported else {}
    bench = HealthBench(node("n1", created=created, conditions=conditions), pods=(pod("p1"),), fresh=False)
    if lease is not None:
        bench.renew(at="long ago")
    bench.tell(Knowledge(True))
    for _ in range(30):
        if reporting:
            bench.heartbeat()
        bench.run_until(bench.now + 10.0, renewing=("n1",) if lease == "renewed" else ())
    assert declared(bench) == expected
    assert bench.marked() == (["p1-uid"] if expected else [])


def test_what_is_written_is_what_upstream_writes() -> None:
    there = (REPORTED, *FINE[:2], FINE[3])
    bench = HealthBench(node("n1", created=-500.0, conditions={}))
    bench.change("n1", conditions=there)
    bench.run_until(100.0)
    ((at, patch),) = bench.of(h.PatchStatus)
    assert at == GRACE
    assert {
        each.type: ("Unknown", each.reason, each.message, each.heartbeat, each.transition) for each in patch.conditions
    } == {
        "Ready": (*STOPPED, None, at),
        "MemoryPressure": (*STOPPED, None, at),
        "DiskPressure": (*STOPPED, None, at),
        "PIDPressure": (*NEVER, -500.0, at),
    }


def test_a_condition_that_is_unknown_already_is_not_touched_and_its_time_stays() -> None:
    unknown = Condition("MemoryPressure", "Unknown", "Other", -1.0, -2.0)
    bench = HealthBench(node("n1"))
    bench.change("n1", conditions=(REPORTED, unknown))
    bench.run_until(100.0)
    ((_, patch),) = bench.of(h.PatchStatus)
    assert "MemoryPressure" not in {each.type for each in patch.conditions}
    assert bench.server["n1"].condition("MemoryPressure") == unknown


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
@pytest.mark.upstream("TestTryUpdateNodeHealth")
def test_a_node_within_its_grace_period_keeps_its_conditions(status: str) -> None:
    bench = HealthBench(node("n1", conditions={"Ready": status}))
    bench.run_until(GRACE - 0.001)
    assert (bench.ready(), bench.of(h.ReadLease)) == (status, [])


@pytest.mark.parametrize(
    "status",
    [
        case("TestTryUpdateNodeHealth: Status true - after grace period", "True"),
        case("TestTryUpdateNodeHealth: Status false - after grace period", "False"),
        case("TestTryUpdateNodeHealth: Status unknown - after grace period", "Unknown"),
        case("TestTryUpdateNodeHealth: Status nil - after grace period", None),
    ],
)
def test_after_the_grace_period_what_we_know_of_a_node_is_what_was_stored(status: str | None) -> None:
    bench = HealthBench(node("n1", conditions={} if status is None else {"Ready": status}))
    bench.run_until(GRACE)
    assert bench.ready() == "Unknown"
    assert bench.engine.statuses["Unknown"] == 1
    assert sum(bench.engine.statuses.values()) == 1


def test_a_node_whose_conditions_are_all_unknown_costs_nothing_more() -> None:
    bench = HealthBench(healthy())
    bench.run_until(36_000.0)
    assert (len(bench.of(h.ReadLease)), len(bench.of(h.PatchStatus))) == (1, 1)


@pytest.mark.reported("kubernetes/kubernetes#121793")
def test_48_seconds_without_a_heartbeat_are_normal_and_51_are_not() -> None:
    bench = HealthBench(healthy())
    for at in (10.0, 58.0, 106.0):
        bench.run_until(at)
        bench.heartbeat()
    assert declared(bench) == []
    bench.run_until(106.0 + 51.0)
    assert declared(bench) == [156.0]


def test_the_grace_period_can_be_chosen() -> None:
    bench = HealthBench(healthy(), options=impatient(7.0))
    bench.run_until(100.0)
    assert declared(bench) == [7.0]


@pytest.mark.reported("kubernetes/kubernetes#6193")
@pytest.mark.parametrize("skew", [600.0, -600.0, 0.0])
def test_a_clock_of_a_node_that_is_wrong_changes_nothing(skew: float) -> None:
    bench = HealthBench(healthy())
    for at in (10.0, 20.0, 30.0):
        bench.run_until(at)
        bench.heartbeat(at=at + skew)
        bench.renew(at=at + skew)
    bench.run_until(200.0)
    assert declared(bench) == [30.0 + GRACE]


@pytest.mark.parametrize("sign", ["heartbeat", "lease"])
def test_a_sign_of_life_that_goes_back_in_time_is_one_all_the_same(sign: str) -> None:
    bench = HealthBench(healthy())
    bench.run_until(40.0)
    if sign == "heartbeat":
        bench.heartbeat(at=-7200.0)
    else:
        bench.renew(at="20")
        bench.run_until(41.0)
        bench.renew(at="10")
    at = bench.now
    bench.run_until(200.0)
    assert declared(bench) == [at + GRACE]


@pytest.mark.reported("gardener/machine-controller-manager#563")
def test_a_node_that_has_not_been_ready_for_days_is_given_its_grace_period_when_first_seen() -> None:
    old = Condition("Ready", "False", "KubeletNotReady", -172_800.0, -172_800.0)
    bench = HealthBench()
    bench.run_until(30.0)
    bench.add(Node("n1", uid="n1-uid", resource_version="1", created=LONG_AGO, conditions=(old, *FINE)))
    bench.run_until(30.0 + GRACE - 0.001)
    assert bench.ready() == "False"
    bench.run_until(30.0 + GRACE)
    assert bench.ready() == "Unknown"


@pytest.mark.reported("upstream TestMonitorNodeHealthUpdateStatus")
def test_a_new_node_that_never_reports_has_60_seconds_from_its_creation() -> None:
    bench = HealthBench()
    bench.run_until(100.0)
    bench.add(node("n1", created=95.0))
    bench.run_until(154.9)
    assert bench.ready() == ""
    bench.run_until(155.0)
    assert bench.ready() == "Unknown"


def test_a_creation_time_in_our_future_does_not_delay_anything() -> None:
    bench = HealthBench(node("n1", created=7200.0))
    bench.run_until(60.0)
    assert declared(bench) == [60.0]


def test_once_a_new_node_has_reported_the_shorter_grace_period_counts() -> None:
    bench = HealthBench(node("n1", created=0.0))
    bench.run_until(2.0)
    bench.heartbeat()
    bench.run_until(200.0)
    assert declared(bench) == [2.0 + GRACE]


def test_a_ready_condition_that_vanishes_begins_a_new_period() -> None:
    bench = HealthBench(healthy())
    bench.run_until(40.0)
    bench.change("n1", conditions=FINE)
    bench.run_until(99.9)
    assert declared(bench) == []
    bench.run_until(100.0)
    assert declared(bench) == [100.0]


def test_what_we_wrote_ourselves_is_no_sign_of_life() -> None:
    bench = HealthBench(node("n1", created=-100.0))
    bench.run_until(60.0)
    assert bench.server["n1"].condition("Ready") == Condition("Ready", "Unknown", NEVER[1], -100.0, GRACE)
    bench.condition("n1", "MemoryPressure", "True", heartbeat=1.0)
    bench.run_until(61.0)
    condition = bench.server["n1"].condition("MemoryPressure")
    assert condition is not None
    assert condition.status == "Unknown"


def test_somebody_who_says_ready_for_a_silent_node_is_believed_for_one_grace_period_each_time() -> None:
    bench = HealthBench(healthy())
    bench.run_until(60.0)
    for _ in range(3):
        bench.condition("n1", "Ready", "True", heartbeat=REPORTED.heartbeat)
        bench.run_until(bench.now + GRACE - 1.0)
        assert bench.ready() == "True"
        bench.run_until(bench.now + 1.0)
        assert bench.ready() == "Unknown"
    assert len(declared(bench)) == 4


@pytest.mark.reported("kubernetes/kubernetes#19562")
def test_a_node_that_falls_silent_is_told_once() -> None:
    bench = HealthBench(healthy())
    bench.run_until(3600.0)
    ((_, told),) = bench.of(h.DeclaredUnknown)
    assert (told.node.ready, told.transition, told.silence) == (True, True, GRACE)
    assert [(effect.before, effect.after) for _, effect in bench.of(h.ReadyChanged)] == [("True", "Unknown")]


def test_a_node_that_comes_back_and_falls_silent_again_is_told_again() -> None:
    bench = HealthBench(healthy())
    bench.run_until(60.0)
    bench.heartbeat()
    bench.run_until(200.0)
    assert declared(bench) == [GRACE, 60.0 + GRACE]


def test_a_node_is_not_told_as_turned_unknown_when_its_other_conditions_follow() -> None:
    bench = HealthBench(healthy())
    bench.run_until(60.0)
    bench.condition("n1", "DiskPressure", "True")
    bench.run_until(61.0)
    assert [told.transition for _, told in bench.of(h.DeclaredUnknown)] == [True, False]


def test_an_earlier_state_of_a_node_that_comes_late_is_ignored() -> None:
    bench = HealthBench(healthy())
    bench.change("n1", unschedulable=True)
    bench.tell(NodeSeen(node("n1", conditions={"Ready": "False"})))
    assert +bench.engine.statuses == {"True": 1}


def test_a_lease_that_was_deleted_before_its_node_came_is_a_sign_of_life_when_it_is_made_anew() -> None:
    bench = HealthBench()
    bench.tell(h.LeaseSeen("n1", "x"), h.LeaseGone("n1"))
    bench.run_until(10.0)
    bench.add(healthy())
    bench.run_until(20.0)
    bench.tell(h.LeaseSeen("n1", "x"))
    bench.run_until(200.0)
    assert declared(bench) == [20.0 + GRACE]


def test_a_lease_that_comes_again_as_it_was_is_no_sign_of_life() -> None:
    bench = HealthBench(healthy())
    bench.renew(at="x")
    bench.run_until(30.0)
    bench.tell(h.LeaseGone("n1"), h.LeaseSeen("n1", "x"))
    bench.run_until(100.0)
    assert declared(bench) == [GRACE]


def test_a_lease_that_is_seen_before_its_node_is_known_with_it() -> None:
    bench = HealthBench()
    bench.renew(at="x")
    bench.run_until(10.0)
    bench.add(healthy())
    bench.run_until(20.0)
    bench.renew(at="x")
    bench.run_until(100.0)
    assert declared(bench) == [10.0 + GRACE]


def test_renewed_leases_leave_the_queue_as_it_is() -> None:
    bench = HealthBench(*(healthy(f"n{number}") for number in range(50)))
    for turn in range(100):
        bench.renew(*bench.server, at=turn)
    assert len(bench.engine._silence._queue) == 50
    bench.run_until(3600.0, renewing=tuple(bench.server))
    assert len(bench.engine._silence._queue) <= 100
    assert bench.of(h.ReadLease) == []


def test_the_start_up_grace_period_can_be_chosen() -> None:
    options = HealthOptions(Patience(grace=10.0, startup=300.0))
    bench = HealthBench(node("n1", created=0.0), options=options)
    bench.run_until(1000.0)
    assert declared(bench) == [300.0]
