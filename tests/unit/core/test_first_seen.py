"""Since when a taint or a pod has been there, when it does not say so itself or cannot be believed."""

from dataclasses import replace

import pytest

from taintkeeper.core.first_seen import arrived, believable, plausible, remember, remembered_as, started
from taintkeeper.core.objects import NO_SCHEDULE, Pod, Taint
from tests.unit.core.builders import BAR, FOO, LONG_AGO, no_execute, not_ready, pod, reported, unreachable

NOW = 1000.0
CREATED = 500.0
YEAR_2001 = -750_000_000.0
NAME = str(FOO)
FIRST, SECOND = str(not_ready()), str(unreachable())


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        reported("kubernetes/kubernetes#141453", "in the future", NOW + 3600, False),
        reported("kubernetes/kubernetes#141453", "long before its node existed", YEAR_2001, False),
        reported("openshift/configuration-anomaly-detection#576", "missing", None, False),
        pytest.param(NOW, True, id="now"),
        pytest.param(NOW + 0.5, False, id="half a second from now"),
        pytest.param(CREATED, True, id="together with its node"),
        pytest.param(CREATED - 300.0, True, id="as much before its node as clocks may differ"),
        pytest.param(CREATED - 300.5, False, id="more than that before its node"),
    ],
)
def test_a_time_that_cannot_be_true_is_not_believed(added: float | None, *, expected: bool) -> None:
    assert believable(no_execute("foo", added), node_created=CREATED, now=NOW) is expected


@pytest.mark.parametrize(
    ("added", "memory", "expected"),
    [
        pytest.param(800.0, None, 800.0, id="a believable time counts"),
        pytest.param(800.0, 900.0, 800.0, id="a believable time that is older than the memory counts"),
        pytest.param(900.0, 800.0, 800.0, id="a memory that is older than the time counts"),
        reported("kubernetes/kubernetes#42394", "no time, but a memory", None, 800.0, 800.0),
        reported("kubernetes/kubernetes#98482", "neither time nor memory counts from now", None, None, NOW),
        reported("kubernetes/kubernetes#141453", "a future time is replaced by the memory", NOW + 3600, 800.0, 800.0),
        reported("kubernetes/kubernetes#141453", "a future time without memory counts as now", NOW + 3600, None, NOW),
        reported("kubernetes/kubernetes#141453", "an absurdly old time counts as now", YEAR_2001, None, NOW),
        pytest.param(YEAR_2001, 800.0, 800.0, id="an absurdly old time is replaced by the memory"),
        pytest.param(None, NOW + 50, NOW, id="a memory from the future counts as now"),
    ],
)
def test_since_when_a_taint_counts(added: float | None, memory: float | None, expected: float) -> None:
    taint = no_execute("foo", added)
    remembered = {} if memory is None else {remembered_as(taint): memory}
    assert started(taint, remembered, node_created=CREATED, now=NOW) == expected


@pytest.mark.reported("openshift/configuration-anomaly-detection#576")
def test_only_taints_without_a_believable_time_are_remembered() -> None:
    taints = [
        no_execute("none", None),
        no_execute("past", 800.0),
        no_execute("future", NOW + 60),
        no_execute("ancient", YEAR_2001),
        Taint("other", NO_SCHEDULE),
    ]
    expected = {"none:NoExecute": NOW, "future:NoExecute@1060": NOW, "ancient:NoExecute@-750000000": NOW}
    assert remember(taints, (), {}, node_created=CREATED, now=NOW) == expected


@pytest.mark.parametrize(
    ("taints", "before", "memory", "expected"),
    [
        pytest.param([no_execute("foo", None)], [], {NAME: 700.0}, {NAME: 700.0}, id="a memory is kept"),
        pytest.param([no_execute("foo", 900.0)], [], {NAME: 700.0}, {}, id="one that has a time now is another"),
        pytest.param([unreachable(900.0)], [], {f"{SECOND}@800": 700.0}, {}, id="one of another time is another"),
        pytest.param(
            [unreachable(900.0)], [], {f"{SECOND}@900": 700.0}, {f"{SECOND}@900": 700.0}, id="its time tells it apart"
        ),
        pytest.param([no_execute("foo", None)], [], {NAME: NOW + 9}, {NAME: NOW}, id="a memory is never in the future"),
        pytest.param([], [FOO], {NAME: 700.0}, {}, id="a taint that is gone is forgotten"),
        pytest.param([BAR], [FOO], {NAME: 700.0}, {}, id="another taint inherits nothing"),
        pytest.param(
            [no_execute("foo", None, "v")], [FOO], {NAME: 700.0}, {"foo=v:NoExecute": NOW}, id="nor does another value"
        ),
        pytest.param([replace(FOO, effect=NO_SCHEDULE)], [], {NAME: 700.0}, {}, id="nor another effect"),
    ],
)
def test_a_memory_lasts_as_long_as_its_taint(
    taints: list[Taint], before: list[Taint], memory: dict[str, float], expected: dict[str, float]
) -> None:
    assert remember(taints, before, memory, node_created=LONG_AGO, now=NOW) == expected


@pytest.mark.parametrize(
    ("after", "before", "memory", "expected"),
    [
        pytest.param(
            [unreachable(900.0)], [not_ready(600.0)], {}, {f"{SECOND}@900": 600.0}, id="not-ready to unreachable"
        ),
        pytest.param(
            [not_ready(900.0)], [unreachable(600.0)], {}, {f"{FIRST}@900": 600.0}, id="unreachable to not-ready"
        ),
        pytest.param([unreachable(None)], [not_ready(None)], {FIRST: 600.0}, {SECOND: 600.0}, id="neither has a time"),
        pytest.param(
            [not_ready(600.0), unreachable(900.0)],
            [not_ready(600.0)],
            {},
            {f"{SECOND}@900": 600.0},
            id="both for a moment",
        ),
        pytest.param(
            [not_ready(600.0), unreachable(900.0)],
            [not_ready(600.0), unreachable(900.0)],
            {},
            {},
            id="both there before and after",
        ),
        pytest.param(
            [unreachable(900.0)],
            [replace(not_ready(600.0), effect=NO_SCHEDULE)],
            {},
            {},
            id="only the NoSchedule taint was there",
        ),
    ],
)
def test_a_taint_that_takes_the_place_of_its_sibling_goes_on_with_its_countdown(
    after: list[Taint], before: list[Taint], memory: dict[str, float], expected: dict[str, float]
) -> None:
    assert remember(after, before, memory, node_created=LONG_AGO, now=NOW) == expected


def test_the_memory_of_a_swap_outlives_later_looks() -> None:
    first = remember([unreachable(900.0)], [not_ready(600.0)], {}, node_created=LONG_AGO, now=NOW)
    second = remember([unreachable(900.0)], [unreachable(900.0)], first, node_created=LONG_AGO, now=NOW + 1)
    assert second == first
    assert started(unreachable(900.0), second, node_created=LONG_AGO, now=NOW + 1) == 600.0


def test_what_a_node_remembers_from_long_before_it_existed_is_not_believed() -> None:
    memory = {"too old": CREATED - 300.5, "as clocks differ": CREATED - 300.0, "fine": CREATED, "future": NOW + 1.0}
    assert plausible(memory, node_created=CREATED) == {name: memory[name] for name in memory if name != "too old"}


FUTURE = NOW + 3600.0


@pytest.mark.parametrize(
    ("bound", "before", "expected"),
    [
        pytest.param(700.0, None, 700.0, id="a past time counts"),
        pytest.param(NOW, None, NOW, id="now counts"),
        pytest.param(700.0, pod(bound=600.0), 700.0, id="a past time counts whatever it was before"),
        pytest.param(FUTURE, None, NOW, id="a future time counts as now when the pod is first seen"),
        pytest.param(FUTURE, pod(bound=900.0), 900.0, id="and as then for as long as the pod is on its node"),
        pytest.param(FUTURE, pod(bound=900.0, node=""), NOW, id="but not before it was there"),
        pytest.param(FUTURE, pod(bound=FUTURE), NOW, id="and never in the future"),
    ],
)
def test_since_when_a_pod_counts(bound: float, before: Pod | None, expected: float) -> None:
    assert arrived(pod(bound=bound), before, now=NOW) == pod(bound=expected)
