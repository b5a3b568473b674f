"""Our own blindness is not the death of nodes: what we could not see is never held against them."""

import pytest

from taintkeeper.core import health_messages as h
from taintkeeper.core.health import Patience, Sight
from taintkeeper.core.messages import Knowledge, Woke
from taintkeeper.core.silence import AT_ONCE
from tests.unit.core.builders import node
from tests.unit.core.health_bench import GRACE, HealthBench, constantly, first, impatient

READY = {"Ready": "True"}


def cluster(count: int = 3, *, fresh: bool = True) -> HealthBench:
    """Return a bench with nodes n0, n1 .. that were renewed long ago."""
    bench = HealthBench(*(node(f"n{number}", conditions=READY) for number in range(count)), fresh=False)
    bench.renew(*bench.server, at="long ago")
    if fresh:
        bench.tell(Knowledge(True))
    return bench


def declared(bench: HealthBench) -> list[tuple[float, str]]:
    return sorted((at, told.node.name) for at, told in bench.of(h.DeclaredUnknown))


@pytest.mark.reported("kubernetes/kubernetes#125824")
def test_a_new_leader_that_sees_old_leases_gives_every_node_one_full_grace_period() -> None:
    bench = cluster()
    bench.run_until(40.0)
    bench.start()
    bench.run_until(40.0 + GRACE - 0.001)
    assert declared(bench) == []
    bench.run_until(40.0 + GRACE)
    assert declared(bench) == [(40.0 + GRACE, name) for name in bench.server]


def test_nobody_is_declared_unknown_before_everything_has_been_listed() -> None:
    bench = cluster(fresh=False)
    bench.run_until(600.0)
    assert bench.log == []
    bench.tell(Knowledge(True))
    bench.run_until(600.0 + GRACE)
    assert len(declared(bench)) == 3


def test_while_we_see_nothing_nobody_is_declared_unknown_and_afterwards_everybody_has_a_full_grace_period() -> None:
    bench = cluster()
    bench.run_until(45.0)
    bench.tell(Knowledge(False))
    bench.run_until(600.0)
    bench.tell(Knowledge(True))
    bench.run_until(600.0 + GRACE - 0.001)
    assert (declared(bench), bench.of(h.ReadLease)) == ([], [])
    bench.run_until(600.0 + GRACE)
    assert len(declared(bench)) == 3


def test_a_watch_that_breaks_every_half_minute_and_goes_on_at_once_saves_no_dead_node() -> None:
    bench = cluster()
    for at in range(30, 301, 30):
        bench.run_until(float(at))
        bench.tell(Knowledge(False))
        bench.run_until(at + 3.0)
        bench.tell(Knowledge(True))
    assert declared(bench) == [(GRACE, name) for name in bench.server]


def test_a_node_that_never_reported_has_a_full_grace_period_after_our_blindness_too() -> None:
    bench = HealthBench(node("n1", created=0.0))
    bench.run_until(30.0)
    bench.tell(Knowledge(False))
    bench.run_until(59.0)
    bench.tell(Knowledge(True))
    bench.run_until(300.0)
    assert declared(bench) == [(59.0 + GRACE, "n1")]


@pytest.mark.parametrize("stopped", [300.0, 51.0, 20.0])
def test_after_the_process_was_stopped_everybody_has_a_full_grace_period(stopped: float) -> None:
    bench = cluster()
    bench.run_until(40.0)
    bench.now += stopped
    bench.tell(Woke())
    assert bench.of(h.ReadLease) == []
    bench.run_until(40.0 + stopped + GRACE - 0.001)
    assert declared(bench) == []
    bench.run_until(40.0 + stopped + GRACE)
    assert len(declared(bench)) == 3


def test_what_was_asked_before_the_process_was_stopped_is_no_longer_acted_on() -> None:
    bench = cluster()
    bench.latency = 1.0
    bench.run_until(50.5)
    assert len(bench.of(h.ReadLease)) == 3
    bench.now += 300.0
    bench.run_until(bench.now + GRACE - 2.0)
    assert bench.of(h.PatchStatus) == []


def test_a_silent_watch_kills_nobody_since_each_lease_is_read_before() -> None:
    bench = cluster(40)
    bench.watching = False
    for at in range(10, 601, 10):
        bench.run_until(float(at))
        bench.renew(*(f"n{number}" for number in range(1, 40)))
    assert [name for _, name in declared(bench)] == ["n0"]
    assert len(bench.of(h.FoundAlive)) >= 39 * 10
    assert bench.most_under_way[h.ReadLease] <= AT_ONCE


def test_a_lease_that_is_gone_confirms_the_silence() -> None:
    bench = HealthBench(node("n1", conditions=READY))
    bench.run_until(GRACE)
    assert declared(bench) == [(GRACE, "n1")]


@pytest.mark.parametrize("after_reads", [0, 7])
def test_a_read_that_fails_gives_everybody_a_full_grace_period(after_reads: int) -> None:
    bench = cluster(40)
    bench.latency = 1.0
    bench.reads = first(*[None] * after_reads, h.ReadResult.FAILED, then=None)
    bench.run_until(51.0 + GRACE)
    assert len(declared(bench)) == after_reads
    bench.run_until(51.0 + GRACE + 20.0)
    assert len(declared(bench)) == 40


def test_while_no_read_succeeds_nobody_is_declared_unknown_and_few_are_read() -> None:
    bench = cluster(40)
    bench.reads = constantly(h.ReadResult.FAILED)
    bench.run_until(3600.0)
    assert bench.of(h.PatchStatus) == []
    assert len(bench.of(h.ReadLease)) <= (3600.0 / GRACE) * AT_ONCE


def test_reads_that_wait_while_the_server_cannot_be_reached_are_not_made_right_after() -> None:
    """Kubelets need some time to renew their Leases as well."""
    bench = cluster(40)
    bench.latency = 30.0
    bench.reads = constantly(h.ReadResult.FAILED)
    bench.run_until(80.5)
    bench.latency, bench.reads = 0.01, constantly(None)
    bench.run_until(80.0 + GRACE - 0.5)
    assert declared(bench) == []


def test_knowledge_that_is_lost_while_a_lease_is_read_stops_the_declaration() -> None:
    bench = cluster(1)
    bench.latency = 1.0
    bench.run_until(50.5)
    bench.tell(Knowledge(False))
    bench.run_until(53.0)
    assert bench.of(h.PatchStatus) == []
    bench.tell(Knowledge(True))
    bench.run_until(60.0)
    assert len(declared(bench)) == 1


def test_the_ticks_that_notice_a_stop_are_one_a_second_and_renewals_do_not_move_them() -> None:
    bench = cluster()
    ticks = set()
    for step in range(100):
        bench.run_until(step / 100)
        bench.renew("n1", at=step)
        ticks.add(bench.engine.wake_at(bench.now))
    assert len(ticks) <= 2


@pytest.mark.parametrize(("grace", "blink"), [(50.0, 5.0), (300.0, 5.0), (40.0, 4.0), (4.0, 1.0), (0.0, 1.0)])
def test_blindness_that_lasts_no_longer_than_a_blink_is_none(grace: float, blink: float) -> None:
    for lasted, since in ((blink, 0.0), (blink + 0.1, 100.0 + blink + 0.1)):
        sight = Sight(Patience(grace=grace))
        sight.know(True, 0.0)
        sight.know(False, 100.0)
        sight.know(True, 100.0 + lasted)
        assert sight.since == since


def test_a_short_grace_period_makes_for_a_short_blink() -> None:
    bench = HealthBench(node("n1", conditions=READY), options=impatient(4.0))
    bench.run_until(3.0)
    bench.now += 3.0
    bench.run_until(9.9)
    assert declared(bench) == []
    bench.run_until(10.1)
    assert len(declared(bench)) == 1
