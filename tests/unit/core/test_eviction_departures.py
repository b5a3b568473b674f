"""When it is told that all pods of a node have been asked to leave."""

import pytest

from taintkeeper.core.messages import NodeSeen, PodGone, PodSeen, Vacated
from taintkeeper.core.objects import Pod
from tests.unit.core.builders import FOO, HELD_BY_BUDGET, budget, lasting, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always

CLEAN, TAINTED = NodeSeen(node("n1")), NodeSeen(node("n1", FOO))


def tainted(*pods: Pod) -> EvictionBench:
    """A tainted node with these pods, which take an hour to end."""
    return EvictionBench(*(PodSeen(each) for each in pods), TAINTED, lingers=3600.0)


def told(bench: EvictionBench) -> list[tuple[float, str, int]]:
    return [(at, effect.node.name, effect.terminating) for at, effect in bench.of(Vacated)]


@pytest.mark.reported("kvaps/kube-fencing#28")
def test_once_the_last_pod_was_asked_it_is_told_how_many_are_still_terminating() -> None:
    bench = tainted(pod("p1"), pod("p2"), pod("p3", lasting("foo", 60)))
    bench.run_until(59.0)
    assert told(bench) == []
    bench.tell(PodGone("p1-uid"))
    bench.run_until(3000.0)
    assert told(bench) == [(60.0, "n1", 2)]


def test_a_node_none_of_whose_pods_was_asked_is_not_told_of() -> None:
    bench = tainted(pod("p1", lasting("foo", 60)))
    bench.run_until(30.0)
    bench.tell(CLEAN)
    bench.run_until(3000.0)
    assert told(bench) == []


def test_pods_that_leave_already_when_we_start_are_not_asked() -> None:
    bench = tainted(pod("p1", deleting=True))
    bench.run_until(10.0)
    assert told(bench) == []


def test_a_pod_that_its_budget_holds_is_still_to_be_asked() -> None:
    bench = EvictionBench(PodSeen(pod("p1", lasting("foo", 1))), PodSeen(pod("p2")), api=always(HELD_BY_BUDGET))
    bench.see(budget(), node("n1", FOO))
    bench.run_until(600.0)
    assert told(bench) == []


def test_a_pod_that_may_stay_after_all_is_not_waited_for() -> None:
    bench = tainted(pod("p1"), pod("p2"), pod("p3", lasting("foo", 60)))
    bench.run_until(30.0)
    bench.tell(PodSeen(pod("p3", lasting("foo"), version=9)))
    bench.run_until(31.0)
    assert told(bench) == [(30.0, "n1", 2)]


def test_of_a_single_pod_its_own_event_tells_enough() -> None:
    bench = tainted(pod("p1"))
    bench.run_until(10.0)
    bench.tell(PodSeen(pod("p2")))
    bench.run_until(20.0)
    assert told(bench) == []


def test_each_wave_is_told_of_once() -> None:
    bench = tainted(pod("p1"), pod("p2"))
    bench.run_until(10.0)
    bench.tell(CLEAN, PodGone("p1-uid"), PodGone("p2-uid"), PodSeen(pod("p3")), PodSeen(pod("p4")), TAINTED)
    bench.run_until(20.0)
    assert told(bench) == [(0.0, "n1", 2), (10.0, "n1", 2)]
