"""What people read of taints and zones."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.controllers.node_taint.reports import TaintReports
from taintkeeper.core.conditions import Change, TaintId
from taintkeeper.core.messages import NodeWritten, WriteResult
from taintkeeper.core.objects import Node, Taint
from taintkeeper.core.taint_messages import TaintContested, TaintsChanged, ZoneChanged
from taintkeeper.core.zones import ZoneState

NODE = Node("n1", uid="n1-uid")
SUBJECT = Subject("Node", "n1", "n1-uid")
DISK = Taint("node.kubernetes.io/disk-pressure", "NoSchedule", time_added=1.0)
NOT_READY = Taint("node.kubernetes.io/not-ready", "NoExecute", time_added=1.0)


def told(effect: TaintsChanged | TaintContested | ZoneChanged) -> list[Notice]:
    notices: list[Notice] = []
    TaintReports(notices.append).tell(effect)
    return notices


def id_of(taint: Taint) -> TaintId:
    return taint.key, taint.effect


def changed(*, added: tuple[Taint, ...] = (), removed: tuple[Taint, ...] = (), **more: Any) -> TaintsChanged:
    facts: dict[str, Any] = {"reasons": {}, "again": frozenset(), **more}
    return TaintsChanged(NODE, Change(taints=added, added=added, removed=removed), **facts)


@pytest.mark.parametrize(
    ("effect", "reason", "message"),
    [
        pytest.param(
            changed(added=(DISK,), reasons={id_of(DISK): "DiskPressure is True"}),
            "TaintAdded",
            "Taint node.kubernetes.io/disk-pressure:NoSchedule added: DiskPressure is True",
            id="added",
        ),
        pytest.param(
            changed(added=(DISK,), reasons={id_of(DISK): "DiskPressure is True"}, again=frozenset({id_of(DISK)})),
            "TaintAdded",
            "Taint node.kubernetes.io/disk-pressure:NoSchedule added again: "
            "somebody removed it while DiskPressure is True",
            id="added again",
            marks=[
                pytest.mark.reported("kubernetes/kubernetes#83668"),
                pytest.mark.reported("kubernetes/kubernetes#79072"),
            ],
        ),
        pytest.param(
            changed(removed=(DISK,), reasons={id_of(DISK): "its condition is over"}),
            "TaintRemoved",
            "Taint node.kubernetes.io/disk-pressure:NoSchedule removed: its condition is over",
            id="over",
        ),
    ],
)
def test_each_change_of_a_taint_is_told_with_its_reason(effect: TaintsChanged, reason: str, message: str) -> None:
    assert told(effect) == [Notice(SUBJECT, "Normal", reason, message)]


def test_only_the_taint_that_somebody_removed_is_told_as_added_again() -> None:
    twin = Taint(NOT_READY.key, "NoSchedule", time_added=1.0)
    effect = changed(
        added=(NOT_READY, twin),
        reasons={id_of(NOT_READY): "Ready is False", id_of(twin): "Ready is False"},
        again=frozenset({id_of(twin)}),
    )
    assert [notice.message for notice in told(effect)] == [
        "Taint node.kubernetes.io/not-ready:NoExecute added: Ready is False",
        "Taint node.kubernetes.io/not-ready:NoSchedule added again: somebody removed it while Ready is False",
    ]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "condition DiskPressure is True",
            "Somebody keeps removing taint node.kubernetes.io/disk-pressure:NoSchedule although condition DiskPressure "
            "is True; it is added less and less often",
        ),
        (
            None,
            "Somebody keeps adding taint node.kubernetes.io/disk-pressure:NoSchedule, which should not be there; "
            "it is removed less and less often",
        ),
    ],
)
def test_a_contested_taint_is_a_warning_on_its_node(
    reason: str | None, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert told(TaintContested(NODE, (DISK.key, DISK.effect), reason)) == [
        Notice(SUBJECT, "Warning", "TaintContested", message)
    ]
    assert caplog.messages == [f"node n1: {message}"]


def test_a_taint_that_got_another_value_is_told_as_replaced() -> None:
    before, after = (Taint("example.com/hot", "NoExecute", value) for value in ("a", "b"))
    effect = changed(added=(after,), removed=(before,), reasons={id_of(after): "it is hot, by rule heat"})
    assert [notice.message for notice in told(effect)] == [
        "Taint example.com/hot=b:NoExecute added: it is hot, by rule heat",
        "Taint example.com/hot=a:NoExecute removed: example.com/hot=b:NoExecute took its place",
    ]


@pytest.mark.reported("kubernetes/kubernetes#77981")
@pytest.mark.parametrize(
    ("effect", "message"),
    [
        pytest.param(
            ZoneChanged("z1", NODE, ZoneState.NORMAL, ZoneState.FULL, 0.1, all_disrupted=False),
            "Zone z1 went from Normal to FullDisruption; nodes tainted NoExecute per second: 0.1",
            id="another state",
        ),
        pytest.param(
            ZoneChanged("z1", NODE, ZoneState.NORMAL, ZoneState.FULL, 0.0, all_disrupted=True),
            "Zone z1 went from Normal to FullDisruption, as every other; nodes tainted NoExecute per second: 0",
            id="every zone",
        ),
        pytest.param(
            ZoneChanged("", NODE, ZoneState.PARTIAL, ZoneState.PARTIAL, 0.01, all_disrupted=False),
            "Zone without a name stays in PartialDisruption; nodes tainted NoExecute per second: 0.01",
            id="another rate",
        ),
        pytest.param(
            ZoneChanged("z1", NODE, ZoneState.PARTIAL, ZoneState.NORMAL, 0.0, all_disrupted=False, cooling=True),
            "Zone z1 went from PartialDisruption to Normal; nodes tainted NoExecute per second: 0, "
            "until it has been better for a while",
            id="a cooldown",
        ),
    ],
)
def test_a_zone_is_told_of_on_the_node_that_brought_the_change(effect: ZoneChanged, message: str) -> None:
    assert [replace(notice, type="") for notice in told(effect)] == [Notice(SUBJECT, "", "ZoneDisruption", message)]


@pytest.mark.parametrize(
    ("before", "after", "type_", "level"),
    [
        (ZoneState.NORMAL, ZoneState.PARTIAL, "Warning", logging.WARNING),
        (ZoneState.PARTIAL, ZoneState.FULL, "Warning", logging.WARNING),
        (ZoneState.FULL, ZoneState.PARTIAL, "Warning", logging.WARNING),
        (ZoneState.FULL, ZoneState.FULL, "Warning", logging.WARNING),
        (ZoneState.FULL, ZoneState.NORMAL, "Normal", logging.INFO),
        (ZoneState.NORMAL, ZoneState.NORMAL, "Normal", logging.INFO),
    ],
)
def test_a_zone_that_is_well_again_is_no_warning(
    before: ZoneState, after: ZoneState, type_: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "taintkeeper"):
        (notice,) = told(ZoneChanged("z1", NODE, before, after, 0.1, all_disrupted=False))
    assert (notice.type, notice.reason) == (type_, "ZoneDisruption")
    assert [record.levelno for record in caplog.records] == [level]


@pytest.mark.parametrize(
    ("result", "level"),
    [(WriteResult.CONFLICT, logging.DEBUG), (WriteResult.FAILED, logging.WARNING), (WriteResult.GONE, logging.WARNING)],
)
def test_a_write_that_failed_is_worth_a_line_unless_somebody_was_faster(
    result: WriteResult, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "taintkeeper"):
        TaintReports(lambda _: None).write_failed(NodeWritten("n1", result, detail="403: no"))
    assert caplog.record_tuples == [
        ("taintkeeper.node-taint", level, "taints of node n1 could not be written, trying again: 403: no")
    ]
