"""In which order pods that are due at the same time leave."""

from taintkeeper.core.objects import Pod
from taintkeeper.core.order import CRITICAL_CLASSES, urgency
from tests.unit.core.builders import pod

OWN = ("system", "taintkeeper-0")


def test_lowest_priority_first_critical_after_all_others_own_pod_last_then_the_most_overdue() -> None:
    expected: list[tuple[Pod, float]] = [
        (pod("least", priority=-10), 5.0),
        (pod("overdue"), 1.0),
        (pod("taintkeeper-0"), 1.5),
        (pod("due"), 2.0),
        (pod("high", priority=2_000_001_000), 0.0),
        (pod("critical", priority=5, critical=True), 9.0),
        (pod("more-critical", priority=6, critical=True), 8.0),
        (pod("taintkeeper-0", namespace="system", priority=-99), 0.0),
    ]
    shuffled = expected[::-1]
    found = sorted(shuffled, key=lambda entry: urgency(*entry, own=OWN))
    assert [entry[0].ref.name for entry in found] == [entry[0].ref.name for entry in expected]


def test_without_an_own_pod_none_is_last() -> None:
    assert urgency(pod("p1"), 1.0, own=None) == urgency(pod("p2"), 1.0, own=None)


def test_the_classes_of_the_system_are_critical() -> None:
    assert {"system-cluster-critical", "system-node-critical"} == CRITICAL_CLASSES
