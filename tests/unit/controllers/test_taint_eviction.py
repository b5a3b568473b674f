"""The taint-eviction controller: what it asks of the API server, and when, and what it says of it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import pytest

from taintkeeper.controllers.taint_eviction.controller import PERMISSIONS, REMEMBER_SECONDS
from taintkeeper.core.answers import Answer
from taintkeeper.core.messages import (
    BudgetGone,
    BudgetSeen,
    EvictionInput,
    Knowledge,
    NodeSeen,
    PodGone,
    PodSeen,
)
from taintkeeper.core.objects import PodRef
from taintkeeper.core.policies import Mode
from tests.unit.controllers.eviction_bench import ACCEPTED, EvictionBench, ScriptedWriter
from tests.unit.core.builders import (
    CONNECTION_LOST,
    FORBIDDEN,
    GONE,
    HELD_BY_BUDGET,
    THROTTLED,
    budget,
    lasting,
    no_execute,
    node,
    pod,
)
from tests.unit.core.policy_bench import policy
from tests.unit.core.policy_bench import seen as policy_seen

pytestmark = pytest.mark.looptime

HOUR = 3600.0
FRESH = Knowledge(fresh=True)
TAINTED = NodeSeen(node("n1", no_execute("foo", None)))
CLEAN = NodeSeen(node("n1"))
CONFLICT = Answer(409, "Conflict")


@pytest.fixture(autouse=True)
async def ended() -> AsyncIterator[None]:
    """No controller outlives its test."""
    yield
    await EvictionBench.end_all()


def pods(count: int) -> list[EvictionInput]:
    return [PodSeen(pod(f"p{number}")) for number in range(count)]


@pytest.mark.reported("NVIDIA/NVSentinel#1705")
async def test_every_pod_is_posted_once_until_it_is_gone() -> None:
    bench = EvictionBench(gone_after=None)
    bench.feed(*pods(5), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    for number in range(5):
        bench.feed(PodSeen(replace(pod(f"p{number}"), deleting=True)))
    await asyncio.sleep(90.0)
    for number in range(5):
        bench.feed(PodGone(f"p{number}-uid"))
    await asyncio.sleep(HOUR)
    assert bench.writer.tries == {f"p{number}": 1 for number in range(5)}
    assert bench.metric("taint_eviction_controller_pod_deletions_total") == 5.0


@pytest.mark.reported("kubernetes/kubernetes#26511")
async def test_nothing_is_posted_before_everything_is_listed_or_while_it_is_not_followed() -> None:
    bench = EvictionBench()
    bench.feed(*pods(1), TAINTED)
    await asyncio.sleep(HOUR)
    assert bench.writer.tries == {}
    bench.feed(FRESH)
    await asyncio.sleep(1.0)
    bench.feed(Knowledge(fresh=False), PodSeen(pod("p1")))
    await asyncio.sleep(HOUR)
    assert bench.writer.tries == {"p0": 1}
    bench.feed(FRESH)
    await asyncio.sleep(1.0)
    assert bench.writer.tries == {"p0": 1, "p1": 1}


async def test_no_more_evictions_are_under_way_than_allowed() -> None:
    bench = EvictionBench(concurrency=4)
    bench.feed(*pods(100), TAINTED, FRESH)
    await asyncio.sleep(10.0)
    assert bench.writer.most_under_way == 4
    assert len(bench.writer.tries) == 100


async def test_an_answer_that_takes_long_holds_nothing_else_back() -> None:
    bench = EvictionBench(ScriptedWriter(seconds=lambda each: HOUR if each.name == "p0" else 0.01), concurrency=2)
    bench.feed(*pods(100), TAINTED, FRESH)
    await asyncio.sleep(10.0)
    assert len(bench.writer.tries) == 100
    assert bench.pending() == {"posted": 1.0}


async def test_a_countdown_ends_at_its_time() -> None:
    bench = EvictionBench()
    bench.feed(PodSeen(pod("p1", lasting("foo", 300))), TAINTED, FRESH)
    await asyncio.sleep(HOUR)
    assert bench.writer.times == [pytest.approx(300.0, abs=0.01)]
    assert bench.metric("taintkeeper_eviction_lateness_seconds_sum") == pytest.approx(0.01, abs=0.005)


async def test_a_pod_that_is_gone_already_is_done_with() -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda *_: GONE))
    bench.feed(*pods(1), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    assert bench.pending() == {}
    bench.feed(PodGone("p0-uid"))
    await asyncio.sleep(HOUR)
    assert bench.writer.tries == {"p0": 1}
    assert bench.notices == []
    assert bench.metric("taintkeeper_eviction_requests_total", code="404", outcome="gone") == 1.0


async def test_a_pod_whose_policy_says_so_is_deleted_with_the_reason() -> None:
    bench = EvictionBench()
    bench.feed(policy_seen(policy(mode=Mode.DELETE)), PodSeen(pod("p0", grace=0)), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    assert bench.writer.journal == [
        "delete p0 with grace 1: taint foo:NoExecute is not tolerated",
        "TaintManagerEviction p0",
    ]


async def test_a_conflict_alarms_nobody() -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda _, tries: ACCEPTED if tries == 2 else CONFLICT))
    bench.feed(*pods(1), TAINTED, FRESH)
    await asyncio.sleep(60.0)
    assert [notice.reason for notice in bench.notices] == ["TaintManagerEviction"]


async def test_the_event_follows_the_answer() -> None:
    bench = EvictionBench(concurrency=1)
    bench.feed(*pods(2), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    assert bench.writer.journal == [
        *("evict p0", "answer p0", "TaintManagerEviction p0"),
        *("evict p1", "answer p1", "TaintManagerEviction p1"),
        "EvictionsIssued n1",
    ]


@pytest.mark.reported("aws/aws-node-termination-handler#545")
@pytest.mark.parametrize(
    ("answer", "posts", "pending"),
    [
        pytest.param(HELD_BY_BUDGET, 70, "backoff", id="429 by a budget that we do not see"),
        pytest.param(THROTTLED, 150, "due", id="429 since it is overloaded"),
        pytest.param(FORBIDDEN, 70, "backoff", id="403"),
        pytest.param(Answer(500), 70, "backoff", id="500"),
        pytest.param(CONNECTION_LOST, 70, "backoff", id="no answer"),
        pytest.param(Answer(418), 70, "backoff", id="something unheard of"),
    ],
)
async def test_an_hour_of_refusals_ends_nothing_and_costs_little(answer: Answer, posts: int, pending: str) -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda *_: answer if _now() < HOUR else ACCEPTED))
    bench.feed(*pods(1), TAINTED, FRESH)
    await asyncio.sleep(HOUR)
    assert bench.crashes == []
    assert 10 <= bench.writer.tries["p0"] <= posts
    assert bench.pending() == {pending: 1.0}
    await asyncio.sleep(100.0)
    assert bench.metric("taint_eviction_controller_pod_deletions_total") == 1.0
    assert bench.pending() == {}


def _now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.reported("kubernetes/kubernetes#45342")
async def test_a_pod_that_counts_down_is_pending_for_its_toleration() -> None:
    bench = EvictionBench()
    bench.feed(PodSeen(pod("p1", lasting("foo", 300))), TAINTED, FRESH)
    assert bench.metric("taintkeeper_pending_evictions", reason="toleration") == 1.0
    bench.feed(CLEAN)
    assert bench.pending() == {}
    assert bench.metric("taintkeeper_evictions_cancelled_total") == 1.0


@pytest.mark.reported("kubernetes/website#7829")
async def test_a_pod_that_a_budget_holds_stays_and_is_pending_for_its_budget() -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda *_: HELD_BY_BUDGET))
    bench.feed(BudgetSeen(budget("b1", allowed=0)), *pods(1), TAINTED, FRESH)
    await asyncio.sleep(600.0)
    assert bench.metric("taintkeeper_pending_evictions", reason="budget") == 1.0
    assert bench.pending() == {"budget": 1.0}
    assert bench.metric("taint_eviction_controller_pod_deletions_total") == 0.0


@pytest.mark.reported("aws/karpenter-provider-aws#1414")
async def test_how_long_a_budget_has_held_a_pod_can_be_seen() -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda *_: HELD_BY_BUDGET))
    bench.feed(BudgetSeen(budget("b1", allowed=0)), *pods(1), TAINTED, FRESH)
    await asyncio.sleep(600.0)
    assert bench.metric("taintkeeper_blocked_oldest_seconds") == pytest.approx(600.0, abs=1.0)
    bench.feed(CLEAN)
    assert bench.metric("taintkeeper_blocked_oldest_seconds") == 0.0


async def test_a_budget_that_allows_again_wakes_the_pod_at_once() -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda _, tries: ACCEPTED if tries else HELD_BY_BUDGET))
    bench.feed(BudgetSeen(budget("b1", allowed=0)), *pods(1), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    bench.feed(BudgetSeen(budget("b1", allowed=1)))
    await asyncio.sleep(0.1)
    assert bench.writer.tries == {"p0": 2}


async def test_a_budget_that_is_deleted_holds_nobody() -> None:
    bench = EvictionBench(ScriptedWriter(answer=lambda _, tries: ACCEPTED if tries else HELD_BY_BUDGET))
    bench.feed(BudgetSeen(budget("b1", allowed=0)), *pods(1), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    bench.feed(BudgetGone("default", "b1"))
    await asyncio.sleep(0.1)
    assert bench.writer.tries == {"p0": 2}


@pytest.mark.reported("kubernetes/kubernetes#22625")
@pytest.mark.reported("kubernetes/kubernetes#96363")
async def test_pods_that_are_never_evicted_are_counted_by_reason() -> None:
    bench = EvictionBench()
    bench.feed(PodSeen(pod("m", mirror=True)), PodSeen(pod("s", phase="Succeeded")), PodSeen(pod("d", deleting=True)))
    bench.feed(TAINTED, FRESH)
    await asyncio.sleep(HOUR)
    assert bench.writer.tries == {}
    skipped = {
        r: bench.metric("taintkeeper_pods_skipped_total", reason=r) for r in ("mirror", "terminal", "terminating")
    }
    assert skipped == {"mirror": 1.0, "terminal": 1.0, "terminating": 1.0}
    assert bench.metric("taintkeeper_terminating_pods") == 1.0


async def test_it_is_busy_while_evictions_are_due_or_under_way() -> None:
    bench = EvictionBench(ScriptedWriter(seconds=lambda _: 5.0), concurrency=1)
    assert not bench.controller.busy
    bench.feed(PodSeen(pod("p1", lasting("foo", 10))), PodSeen(pod("p2", lasting("foo", 10))), TAINTED, FRESH)
    assert not bench.controller.busy
    busy = []
    for _ in range(5):
        await asyncio.sleep(4.1)
        busy.append(bench.controller.busy)
    assert busy == [False, False, True, True, False]


async def test_it_is_busy_while_a_node_is_read_for_evictions_that_are_due() -> None:
    bench = EvictionBench()
    bench.feed(*pods(20), TAINTED, FRESH)
    assert (bench.writer.tries, bench.controller.busy) == ({}, True)
    await asyncio.sleep(1.0)
    assert (len(bench.writer.tries), bench.controller.busy) == (20, False)


async def test_it_is_not_busy_while_the_api_server_has_it_wait() -> None:
    slow_down = replace(THROTTLED, retry_after=60.0)
    writer = ScriptedWriter(answer=lambda _, tries: ACCEPTED if tries else slow_down, seconds=lambda _: 1.0)
    bench = EvictionBench(writer)
    bench.feed(*pods(20), TAINTED, FRESH)
    await asyncio.sleep(0.9)
    assert (bench.writer.under_way, bench.controller.busy) == (16, True)
    await asyncio.sleep(30.0)
    assert (bench.writer.under_way, bench.controller.busy) == (0, False)
    await asyncio.sleep(31.0)
    assert bench.controller.busy


@pytest.mark.reported("NVIDIA/NVSentinel#1415", "draino#116")
async def test_the_node_is_read_once_before_a_wave_and_what_is_found_there_counts() -> None:
    bench = EvictionBench()
    bench.feed(*pods(20), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    assert (bench.readings, len(bench.writer.tries)) == (["n1"], 20)
    assert bench.metric("taintkeeper_live_checks_total", result="read") == 1.0
    bench.feed(PodSeen(pod("late", lasting("foo", 60))))
    bench.hide(node("n1"))
    await asyncio.sleep(HOUR)
    assert bench.readings == ["n1", "n1"]
    assert bench.metric("taintkeeper_evictions_cancelled_total") == 1.0
    assert "late" not in bench.writer.tries


async def test_nobody_is_evicted_from_a_node_that_cannot_be_read() -> None:
    bench = EvictionBench()
    bench.unreadable.add("n1")
    bench.feed(*pods(1), TAINTED, FRESH)
    await asyncio.sleep(HOUR)
    assert bench.writer.tries == {}
    assert 100 <= bench.metric("taintkeeper_live_checks_total", result="failed") <= 130
    bench.unreadable.clear()
    await asyncio.sleep(60.0)
    assert bench.writer.tries == {"p0": 1}


@pytest.mark.reported("kubernetes/kubernetes#42394")
async def test_what_was_seen_first_is_remembered_on_the_node() -> None:
    bench = EvictionBench()
    bench.feed(TAINTED, FRESH)
    await asyncio.sleep(1.0)
    ((name, memory),) = bench.writer.memories
    assert (name, list(memory)) == ("n1", ["foo:NoExecute"])
    assert memory["foo:NoExecute"] == pytest.approx(bench.clock() - 1.0, abs=0.01)


async def test_while_taints_come_in_a_burst_none_is_written_down() -> None:
    bench = EvictionBench()
    bench.feed(TAINTED, FRESH)
    await asyncio.sleep(REMEMBER_SECONDS - 0.01)
    assert bench.writer.memories == []
    await asyncio.sleep(0.02)
    assert len(bench.writer.memories) == 1


async def test_a_writer_that_fails_in_a_way_of_its_own_is_a_fault_of_ours_and_ends_everything() -> None:
    def fail(_: PodRef, __: int) -> Answer:
        raise ZeroDivisionError

    bench = EvictionBench(ScriptedWriter(answer=fail), concurrency=1)
    bench.feed(*pods(2), TAINTED, FRESH)
    await asyncio.sleep(HOUR)
    assert [type(each) for each in bench.crashes] == [ZeroDivisionError]
    assert bench.writer.tries == {"p0": 1}


async def test_after_stopping_nothing_is_posted_and_nobody_is_waited_for_long() -> None:
    bench = EvictionBench(ScriptedWriter(seconds=lambda _: HOUR))
    bench.feed(*pods(1), TAINTED, FRESH)
    await asyncio.sleep(1.0)
    await bench.controller.stop()
    assert _now() == 3.0
    bench.feed(*pods(3))
    await asyncio.sleep(2 * HOUR)
    assert bench.writer.tries == {"p0": 1}
    assert bench.writer.journal == ["evict p0"]


async def test_an_eviction_that_is_accepted_while_we_stop_is_told_and_counted() -> None:
    bench = EvictionBench(ScriptedWriter(seconds=lambda _: 1.0), concurrency=1)
    bench.feed(*pods(2), TAINTED, FRESH)
    await asyncio.sleep(0.5)
    await bench.controller.stop()
    assert bench.writer.journal == ["evict p0", "answer p0", "TaintManagerEviction p0"]
    assert bench.metric("taintkeeper_eviction_requests_total", code="201", outcome="accepted") == 1.0


async def test_the_status_of_a_policy_is_written_until_that_is_done() -> None:
    bench = EvictionBench()
    bench.custom_writer.done = [False, False]
    bench.feed(policy_seen(policy(), version=3), FRESH)
    await asyncio.sleep(HOUR)
    times = [at for at, _, _ in bench.custom_writer.statuses]
    assert [name for _, name, _ in bench.custom_writer.statuses] == ["p"] * 3
    assert {status["observedGeneration"] for _, _, status in bench.custom_writer.statuses} == {3}
    assert all(later - earlier >= 5.0 for earlier, later in pairwise(times))


async def test_a_status_that_is_written_is_not_written_again() -> None:
    bench = EvictionBench()
    bench.feed(policy_seen(policy()), FRESH)
    await asyncio.sleep(HOUR)
    assert len(bench.custom_writer.statuses) == 1


def test_it_asks_for_the_permissions_that_it_needs() -> None:
    assert sorted(map(str, PERMISSIONS)) == [
        "create pods/eviction",
        "delete pods",
        "get nodes",
        *("list evictionpolicies.taintkeeper.io", "list namespaces", "list nodes", "list persistentvolumes"),
        *("list poddisruptionbudgets.policy", "list pods"),
        *("patch evictionpolicies.taintkeeper.io/status", "patch nodes", "patch pods/status"),
        *("watch evictionpolicies.taintkeeper.io", "watch namespaces", "watch nodes", "watch persistentvolumes"),
        *("watch poddisruptionbudgets.policy", "watch pods"),
    ]
