"""When an eviction may be tried against a budget, and who is next."""

from random import Random

import pytest

from taintkeeper.core.gates import Gate, GateKey, Gates, gate_key
from tests.unit.core.builders import budget, pod

KEY = GateKey("default", ("b1",), ready=True)


@pytest.mark.parametrize(
    ("names", "ready", "key"),
    [
        pytest.param([], True, None, id="no budget, no gate"),
        pytest.param(["b1"], True, KEY, id="one budget"),
        pytest.param(["b1"], False, GateKey("default", ("b1",), ready=False), id="pods that are not ready stand apart"),
        pytest.param(["b1", "b2"], True, GateKey("default", ("b1", "b2"), ready=True), id="two budgets"),
    ],
)
def test_pods_under_the_same_budgets_stand_behind_one_gate(
    names: list[str], key: GateKey | None, *, ready: bool
) -> None:
    assert gate_key(pod(ready=ready), [budget(name) for name in names]) == key


@pytest.mark.parametrize(
    ("gate", "may_try", "closed"),
    [
        pytest.param(Gate(), True, False, id="a gate of which nothing is known lets a probe through"),
        pytest.param(Gate(trying=True), False, False, id="but not a second one"),
        pytest.param(Gate(probe_at=10.1), False, True, id="a refusal closes it"),
        pytest.param(Gate(probe_at=10.0), True, False, id="until the next probe is due"),
        pytest.param(Gate(allowed=3), True, False, id="what is allowed may be tried"),
        pytest.param(Gate(allowed=3, trying=True), False, False, id="but never two at once"),
        pytest.param(Gate(allowed=3, probe_at=99.0), True, False, id="what is allowed does not wait for a probe"),
    ],
)
def test_one_at_a_time_may_be_tried_while_the_gate_is_not_closed(gate: Gate, *, may_try: bool, closed: bool) -> None:
    assert (gate.may_try(10.0), gate.closed(10.0)) == (may_try, closed)


def test_refusals_make_probes_ever_more_seldom_from_5_s_to_60_s() -> None:
    gate, now, pauses = Gate(allowed=2), 0.0, []
    for _ in range(7):
        gate.refused(now, Random(1))
        assert gate.allowed == 0
        pauses.append(gate.probe_at - now)
        now = gate.probe_at
    for pause, least in zip(pauses, [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0], strict=True):
        assert least <= pause <= least * 1.25


def test_after_an_accepted_eviction_one_fewer_is_allowed_and_the_next_may_be_tried() -> None:
    gate = Gate(allowed=2, probe_at=99.0, refusals=4)
    gate.accepted(10.0)
    assert (gate.allowed, gate.probe_at, gate.refusals) == (1, 10.0, 0)
    gate.accepted(11.0)
    gate.accepted(12.0)
    assert (gate.allowed, gate.may_try(12.0)) == (0, True)


@pytest.mark.parametrize(
    ("before", "now_allowed", "probe_at"),
    [
        pytest.param(0, 2, 10.0, id="more than before opens the gate at once"),
        pytest.param(2, 2, 50.0, id="as many as before changes nothing"),
        pytest.param(2, 1, 50.0, id="nor does fewer"),
        pytest.param(0, 0, 50.0, id="nor none as before"),
    ],
)
def test_the_gate_follows_what_the_budget_allows(before: int, now_allowed: int, probe_at: float) -> None:
    gate = Gate(allowed=before, probe_at=50.0, refusals=3)
    gate.update(now_allowed, 10.0)
    assert (gate.allowed, gate.probe_at) == (now_allowed, probe_at)
    assert gate.refusals == (0 if probe_at == 10.0 else 3)


def test_a_timer_is_set_once_for_each_probe() -> None:
    gate = Gate()
    assert not gate.arm(0.0)
    gate.probe_at = 5.0
    assert gate.arm(0.0)
    assert not gate.arm(1.0)
    gate.probe_at = 15.0
    assert gate.arm(5.0)
    assert not gate.arm(15.0)


def test_the_most_urgent_comes_out_first() -> None:
    gate = Gate()
    for due, uid in ((3.0, "late"), (1.0, "early"), (2.0, "middle")):
        gate.wait((False, False, 0, due), uid)
    assert [gate.next() for _ in range(4)] == ["early", "middle", "late", None]


def test_a_pod_waits_once_however_often_it_comes_back() -> None:
    gate = Gate()
    for _ in range(100):
        gate.wait((False, False, 0, 1.0), "p1")
    assert [gate.next(), gate.next()] == ["p1", None]
    gate.wait((False, False, 0, 1.0), "p1")
    assert gate.next() == "p1"


def test_gates_are_found_by_key_and_by_budget_and_taken_down_by_namespace() -> None:
    gates = Gates()
    both, other = GateKey("default", ("b1", "b2"), ready=True), GateKey("elsewhere", ("b1",), ready=True)
    first = gates.open_for(KEY, 2)
    assert (first.allowed, gates.open_for(KEY, 9), gates.get(KEY)) == (2, first, first)
    second, third = gates.open_for(both, 0), gates.open_for(other, 0)
    assert gates.behind("default", "b1") == [KEY, both]
    assert gates.behind("default", "b2") == [both]
    assert gates.behind("nowhere", "b1") == []
    assert gates.take_down("default") == [first, second]
    assert gates.take_down("default") == []
    assert (gates.get(KEY), gates.get(other)) == (None, third)
