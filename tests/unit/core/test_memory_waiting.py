"""While pods have to leave, a memory that nobody counts down by waits to be written: it would only be in their way."""

import pytest

from taintkeeper.core.eviction_states import State
from taintkeeper.core.memory import PATIENCE_SECONDS
from taintkeeper.core.messages import NodeWritten, PodSeen, Remember, WriteResult
from taintkeeper.core.objects import Toleration
from tests.unit.core.builders import ACCEPTED, lasting, no_execute, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always
from tests.unit.core.test_memory import NAME, TAINTED, keeper

WRITTEN = [Remember("n1", "n1-uid", {NAME: 0.0})]


def test_it_is_written_once_there_is_calm() -> None:
    found = keeper(TAINTED)
    assert found.writes(0.0, calm=False) == []
    assert found.wake_at() == PATIENCE_SECONDS
    assert found.writes(1.0) == WRITTEN
    assert (found.writes(2.0), found.wake_at()) == ([], None)


def test_it_waits_for_no_longer_than_it_has_patience() -> None:
    found = keeper(TAINTED)
    found.writes(0.0, calm=False)
    found.seen(node("n1", *TAINTED.taints, unschedulable=True), 1.0)
    assert found.writes(PATIENCE_SECONDS - 0.1, calm=False) == []
    assert found.writes(PATIENCE_SECONDS, calm=False) == WRITTEN


@pytest.mark.parametrize("late", [False, True], ids=["at first", "while it waits"])
def test_it_waits_for_nobody_once_a_pod_counts_down(*, late: bool) -> None:
    found = keeper(TAINTED)
    if late:
        found.writes(0.0, calm=False)
    found.urge("n1")
    found.urge("unknown")
    assert found.writes(0.0, calm=False) == WRITTEN


def test_what_is_written_later_on_waits_again() -> None:
    found = keeper(TAINTED)
    found.urge("n1")
    found.writes(0.0, calm=False)
    found.answered(NodeWritten("n1", WriteResult.FAILED), 0.0)
    assert found.writes(5.0, calm=False) == []


@pytest.mark.parametrize("gone", [False, True], ids=["with its taint", "with its node"])
def test_it_is_not_written_when_it_is_gone_by_then(*, gone: bool) -> None:
    found = keeper(TAINTED)
    found.writes(0.0, calm=False)
    if gone:
        found.gone("n1")
    else:
        found.seen(node("n1"), 1.0)
    assert (found.writes(2.0), found.wake_at()) == ([], None)


def written_while_pods_leave(*tolerations: Toleration) -> bool:
    bench = EvictionBench(PodSeen(pod("p1")), PodSeen(pod("p2", *tolerations)), api=always(None))
    bench.see(node("n1", no_execute("foo", None)))
    bench.run_until(1.0)
    assert bench.count(State.POSTED) > 0
    at_once = bool(bench.of(Remember))
    for each in list(bench.unanswered):
        bench.answer(each, ACCEPTED)
    assert [effect.memory for _, effect in bench.of(Remember)] == [{NAME: 0.0}]
    return at_once


def test_pods_that_leave_at_once_go_first_and_one_that_counts_down_does_not_wait_for_them() -> None:
    assert not written_while_pods_leave()
    assert written_while_pods_leave(lasting("foo", 60))
