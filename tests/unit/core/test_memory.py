"""Keeps on each node the memory of when its taints were first seen."""

from dataclasses import replace
from random import Random

import pytest

from taintkeeper.core.first_seen import remembered_as
from taintkeeper.core.memory import REST_SECONDS, MemoryKeeper
from taintkeeper.core.messages import NodeWritten, Remember, WriteResult
from taintkeeper.core.objects import Node
from tests.unit.core.builders import FOO, no_execute, node, not_ready, unreachable

BARE = no_execute("foo", None)
NAME = str(BARE)
TAINTED = node("n1", BARE)


def keeper(*seen: Node, now: float = 0.0) -> MemoryKeeper:
    found = MemoryKeeper(Random(1))
    for each in seen:
        found.seen(each, now)
    return found


def done(name: str = "n1") -> NodeWritten:
    return NodeWritten(name, WriteResult.DONE)


def memory_of(found: MemoryKeeper, name: str = "n1") -> dict[str, float]:
    known = found.get(name)
    assert known is not None
    return known.memory


@pytest.mark.reported("kubernetes/kubernetes#42394")
def test_a_taint_without_time_is_written_down_once() -> None:
    found = keeper(TAINTED)
    assert found.writes(0.0) == [Remember("n1", "n1-uid", {NAME: 0.0})]
    assert found.writes(1.0) == []
    found.answered(done(), 1.0)
    found.seen(replace(TAINTED, first_seen={NAME: 0.0}), 2.0)
    assert (found.writes(2.0), found.wake_at(), memory_of(found)) == ([], None, {NAME: 0.0})


@pytest.mark.reported("kubernetes/kubernetes#42394")
def test_a_restart_goes_on_with_what_the_node_remembers() -> None:
    found = keeper(replace(TAINTED, first_seen={NAME: 7.0004}), now=500.0)
    assert memory_of(found) == {NAME: 7.0004}
    assert found.writes(500.0) == []


def test_a_newer_time_on_the_node_is_not_taken_over_but_put_right() -> None:
    found = keeper(TAINTED)
    found.writes(0.0)
    found.answered(done(), 1.0)
    assert not found.seen(replace(TAINTED, first_seen={NAME: 50.0}), 60.0)
    assert memory_of(found) == {NAME: 0.0}
    assert found.writes(60.0) == [Remember("n1", "n1-uid", {NAME: 0.0})]


def test_an_older_time_that_somebody_else_puts_on_the_node_is_taken_over() -> None:
    found = keeper(TAINTED, now=60.0)
    assert found.seen(replace(TAINTED, first_seen={NAME: 50.0}), 61.0)
    assert memory_of(found) == {NAME: 50.0}
    assert found.writes(61.0) == []


@pytest.mark.parametrize("at", [pytest.param(-301.0, id="alone"), pytest.param(-1e9, id="by far")])
def test_a_time_long_before_the_node_existed_is_not_taken_over(at: float) -> None:
    young = replace(TAINTED, created=0.0)
    found = keeper(young, now=60.0)
    assert not found.seen(replace(young, first_seen={NAME: at}), 61.0)
    assert memory_of(found) == memory_of(keeper(replace(young, first_seen={NAME: at}), now=60.0)) == {NAME: 60.0}


def sent_and_added_again() -> MemoryKeeper:
    """Return a keeper whose write is under way while the taint is removed and added again."""
    found = keeper(replace(TAINTED, resource_version="1"))
    found.writes(0.0)
    found.seen(node("n1", resource_version="2"), 1.0)
    found.seen(replace(TAINTED, resource_version="3"), 2.0)
    return found


def test_a_taint_that_was_added_again_does_not_take_over_the_time_that_is_still_on_the_node() -> None:
    found = keeper(replace(TAINTED, first_seen={NAME: 0.0}), now=9.0)
    found.seen(node("n1", first_seen={NAME: 0.0}), 10.0)
    found.seen(replace(TAINTED, first_seen={NAME: 0.0}), 11.0)
    assert memory_of(found) == {NAME: 11.0}


def test_a_taint_that_was_added_again_does_not_take_over_what_we_sent_ourselves() -> None:
    found = sent_and_added_again()
    found.seen(replace(TAINTED, resource_version="4", first_seen={NAME: 0.0}), 3.0)
    assert memory_of(found) == {NAME: 2.0}


def test_nor_what_we_sent_and_got_no_answer_for() -> None:
    found = sent_and_added_again()
    found.answered(NodeWritten("n1", WriteResult.FAILED), 2.5)
    found.seen(replace(TAINTED, resource_version="4", first_seen={NAME: 0.0}), 3.0)
    assert memory_of(found) == {NAME: 2.0}


def answer(version: str, **memory: float) -> NodeWritten:
    first_seen = {f"{key}:NoExecute": at for key, at in memory.items()}
    return NodeWritten("n1", WriteResult.DONE, replace(TAINTED, resource_version=version, first_seen=first_seen))


def test_events_that_an_answer_has_overtaken_do_not_tell_what_is_on_the_node() -> None:
    found = keeper(replace(TAINTED, resource_version="1"))
    found.writes(0.0)
    found.answered(answer("9", foo=0.0), 1.0)
    found.seen(replace(TAINTED, resource_version="2"), 2.0)
    assert found.writes(5.0) == []
    found.seen(replace(TAINTED, resource_version="10", first_seen={}), 6.0)
    assert found.writes(6.0) == [Remember("n1", "n1-uid", {NAME: 0.0})]


def test_events_that_an_answer_has_overtaken_still_tell_of_taints() -> None:
    found = keeper(replace(TAINTED, resource_version="1"))
    found.writes(0.0)
    found.answered(answer("9", foo=0.0), 1.0)
    assert found.seen(node("n1", resource_version="2"), 2.0)
    assert found.seen(replace(TAINTED, resource_version="3"), 3.0)
    assert memory_of(found) == {NAME: 3.0}


def test_an_answer_that_the_watch_has_overtaken_does_not_tell_what_is_on_the_node() -> None:
    found = keeper(replace(TAINTED, resource_version="1"))
    found.writes(0.0)
    found.seen(replace(TAINTED, resource_version="9", first_seen={NAME: 5.0}), 1.0)
    found.answered(answer("2", foo=0.0), 2.0)
    assert found.writes(5.0) == [Remember("n1", "n1-uid", {NAME: 0.0})]


def test_a_late_answer_about_a_node_of_the_same_name_that_is_no_more_tells_nothing() -> None:
    found = keeper(TAINTED)
    found.writes(0.0)
    found.seen(replace(TAINTED, uid="another", first_seen={NAME: 0.0}), 9.0)
    found.answered(done(), 10.0)
    assert found.writes(20.0) == []


def test_a_node_is_written_again_when_its_memory_is_tampered_with() -> None:
    found = keeper(TAINTED)
    found.writes(0.0)
    found.answered(done(), 0.0)
    found.seen(replace(TAINTED, first_seen={}), 5.0)
    assert found.writes(5.0) == [Remember("n1", "n1-uid", {NAME: 0.0})]


def test_the_memory_goes_with_the_taint() -> None:
    found = keeper(replace(TAINTED, first_seen={NAME: 0.0}))
    found.seen(node("n1", first_seen={NAME: 0.0}), 5.0)
    assert found.writes(5.0) == [Remember("n1", "n1-uid", {})]


def test_the_last_digits_that_the_annotation_loses_cause_no_write() -> None:
    found = keeper(replace(TAINTED, first_seen={NAME: 3.0}), now=10.0)
    found.seen(replace(TAINTED, first_seen={NAME: 3.0009}), 11.0)
    assert found.writes(11.0) == []
    found.seen(replace(TAINTED, first_seen={NAME: 3.0011}), 12.0)
    assert found.writes(12.0) == [Remember("n1", "n1-uid", {NAME: 3.0})]


def test_one_write_is_under_way_for_each_node_and_the_rest_follows() -> None:
    found = keeper(TAINTED)
    found.writes(0.0)
    found.seen(node("n1", BARE, no_execute("bar", None)), 1.0)
    assert (found.writes(1.0), found.wake_at()) == ([], None)
    found.answered(done(), 2.0)
    assert found.writes(2.0 + REST_SECONDS) == [Remember("n1", "n1-uid", {NAME: 0.0, "bar:NoExecute": 1.0})]


def test_a_node_is_left_alone_for_a_moment_after_a_write() -> None:
    found = keeper(TAINTED)
    found.writes(0.0)
    found.answered(done(), 10.0)
    found.seen(node("n1", first_seen={NAME: 0.0}), 10.1)
    assert (found.writes(10.1), found.wake_at()) == ([], 10.0 + REST_SECONDS)
    assert found.writes(10.0 + REST_SECONDS) == [Remember("n1", "n1-uid", {})]


@pytest.mark.parametrize("result", [WriteResult.FAILED, WriteResult.CONFLICT, WriteResult.GONE])
def test_a_write_that_fails_is_tried_again_after_a_growing_pause(result: WriteResult) -> None:
    found, now, pauses = keeper(TAINTED), 0.0, []
    for _ in range(8):
        assert len(found.writes(now)) == 1
        found.answered(NodeWritten("n1", result), now)
        at = found.wake_at()
        assert at is not None
        assert found.writes(at - 0.01) == []
        pauses.append(at - now)
        now = at
    for pause, least in zip(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], strict=True):
        assert least <= pause <= least * 1.25
    found.writes(now)
    found.answered(done(), now)
    assert (found.writes(1e6), found.wake_at()) == ([], None)


def test_after_a_success_the_next_pause_is_short_again() -> None:
    found = keeper(TAINTED)
    for now, result in ((0.0, WriteResult.FAILED), (10.0, WriteResult.FAILED), (20.0, WriteResult.DONE)):
        found.writes(now)
        found.answered(NodeWritten("n1", result), now)
    found.seen(replace(TAINTED, first_seen={}), 30.0)
    assert len(found.writes(30.0)) == 1
    found.answered(NodeWritten("n1", WriteResult.FAILED), 30.0)
    at = found.wake_at()
    assert at is not None
    assert at <= 30.0 + 0.5 * 1.25


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        pytest.param(TAINTED, False, id="a heartbeat changes nothing"),
        pytest.param(replace(TAINTED, unschedulable=True), False, id="nor does what concerns no taint"),
        pytest.param(node("n1", BARE, FOO), True, id="another taint"),
        pytest.param(node("n1"), True, id="a taint less"),
        pytest.param(replace(TAINTED, uid="another"), True, id="another node of the same name"),
    ],
)
def test_a_node_is_judged_anew_when_its_taints_or_their_times_change(after: Node, *, changed: bool) -> None:
    assert keeper(TAINTED).seen(after, 1.0) is changed


def test_an_earlier_state_of_a_node_that_comes_late_is_ignored() -> None:
    found = keeper(replace(TAINTED, resource_version="10"))
    assert not found.seen(node("n1", resource_version="9"), 1.0)
    assert memory_of(found) == {NAME: 0.0}
    assert found.seen(node("n1", resource_version="11"), 1.0)
    assert memory_of(found) == {}


def test_a_node_that_was_deleted_is_forgotten_with_its_memory() -> None:
    found = keeper(TAINTED, node("n2", BARE))
    found.gone("n1")
    found.gone("n1")
    assert found.get("n1") is None
    assert [write.node for write in found.writes(0.0)] == ["n2"]
    found.answered(done(), 1.0)
    found.seen(TAINTED, 9.0)
    assert memory_of(found) == {NAME: 9.0}


def test_a_new_node_of_the_same_name_inherits_no_memory() -> None:
    found = keeper(TAINTED)
    found.seen(replace(TAINTED, uid="another"), 9.0)
    assert memory_of(found) == {NAME: 9.0}


def test_a_swap_of_the_sibling_taints_is_remembered() -> None:
    found = keeper(node("n1", not_ready(-100.0)))
    found.seen(node("n1", unreachable(50.0)), 60.0)
    assert found.writes(60.0) == [Remember("n1", "n1-uid", {remembered_as(unreachable(50.0)): -100.0})]
