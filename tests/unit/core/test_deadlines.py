"""When a pod must leave its node, and because of which taint."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core.acting import acting
from taintkeeper.core.deadlines import Deadline, Place, deadline
from taintkeeper.core.objects import NO_SCHEDULE, Node, Pod, Taint, Toleration
from taintkeeper.core.pauses import NEVER_PAUSED
from taintkeeper.core.policy_book import PolicyBook
from tests.unit.core.builders import BAR, FOO, case, lasting, node, not_ready, pod, reported

NOW = 1000.0
PREFERRED = Taint("foo", "PreferNoSchedule")


def judged(
    waiting: Pod, tainted: Node, memory: Mapping[str, float] = MappingProxyType({}), *, now: float = NOW
) -> Deadline | None:
    return deadline(waiting, Place(tainted, memory, NEVER_PAUSED), PolicyBook(), now=now)


def due(taints: list[Taint], tolerations: list[Toleration], *, bound: float = 0.0, now: float = NOW) -> float:
    found = judged(pod("p1", *tolerations, bound=bound), node("n1", *taints), now=now)
    return math.inf if found is None else found.due


@pytest.mark.parametrize(
    ("taints", "kept"),
    [
        case("TestFilterNoExecuteTaints", [FOO, Taint("two", NO_SCHEDULE)], [FOO]),
        pytest.param([PREFERRED, BAR], [BAR], id="PreferNoSchedule does not evict"),
        pytest.param([], [], id="no taints"),
    ],
)
def test_only_no_execute_evicts(taints: list[Taint], kept: list[Taint]) -> None:
    assert [taint for taint, _ in acting(taints, pod(), PolicyBook())] == kept


@pytest.mark.reported("kubernetes/kubernetes#53556")
def test_a_taint_of_another_effect_sets_no_deadline() -> None:
    assert due([Taint("x", NO_SCHEDULE, time_added=0.0), PREFERRED], []) == math.inf


EACH_OWN = [FOO, BAR]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        case("TestGetMinTolerationTime: []", [], 0.0),
        case("TestGetMinTolerationTime: [nil]", [Toleration(operator="Exists")], math.inf),
        case("TestGetMinTolerationTime: [1, 2]", [lasting("foo", 1), lasting("bar", 2)], 1.0),
        case("TestGetMinTolerationTime: [1, nil]", [lasting("foo", 1), lasting("bar")], 1.0),
        case("TestGetMinTolerationTime: [nil, 1]", [lasting("foo"), lasting("bar", 1)], 1.0),
        pytest.param([lasting("foo", 5)], 0.0, id="one taint tolerated for a time, the other not at all"),
        pytest.param([lasting("foo", 2), lasting("bar", 1)], 1.0, id="the later taint runs out first"),
    ],
)
def test_the_toleration_that_runs_out_first_decides(tolerations: list[Toleration], expected: float) -> None:
    assert due(EACH_OWN, tolerations) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        reported("hashicorp/terraform-provider-kubernetes#294", "missing means for ever", None, math.inf),
        reported("hashicorp/terraform-provider-kubernetes#294", "zero means now", 0, 0.0),
        reported("hashicorp/terraform-provider-kubernetes#294", "negative means now", -5, 0.0),
        pytest.param(2**63 - 1, 2.0**63, id="the longest possible"),
        pytest.param(300, 300.0, id="300 s"),
    ],
)
def test_seconds_are_counted_from_the_start(seconds: int | None, expected: float) -> None:
    assert due([FOO], [lasting("foo", seconds)]) == expected


@pytest.mark.reported("minio/operator#1298")
def test_seconds_count_on_a_toleration_without_effect() -> None:
    assert due([FOO], [lasting("foo", 60, effect="")]) == 60.0


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        reported(
            "kubernetes-sigs/aws-fsx-csi-driver#305",
            "the general one comes first",
            [Toleration(operator="Exists", seconds=300), lasting("foo")],
            300.0,
        ),
        reported(
            "kubernetes-sigs/aws-fsx-csi-driver#305",
            "the special one comes first",
            [lasting("foo"), Toleration(operator="Exists", seconds=300)],
            math.inf,
        ),
    ],
)
def test_of_several_tolerations_for_a_taint_the_first_counts(tolerations: list[Toleration], expected: float) -> None:
    assert due([FOO], tolerations) == expected


@pytest.mark.parametrize(
    ("value", "operator", "limit", "expected"),
    [
        reported("KEP-5471", "the number is large enough", "95", "Gt", "90", 30.0),
        reported("KEP-5471", "a number that is not canonical is not tolerated", "095", "Gt", "90", 0.0),
        reported("KEP-5471", "a word is not tolerated", "abc", "Gt", "90", 0.0),
        pytest.param("85", "Lt", "90", 30.0, id="the number is small enough"),
    ],
)
def test_a_numeric_toleration_grants_its_seconds(value: str, operator: str, limit: str, expected: float) -> None:
    toleration = Toleration("sla", operator, limit, seconds=30)
    assert due([Taint("sla", "NoExecute", value, 0.0)], [toleration]) == expected


@pytest.mark.parametrize(
    ("added", "bound", "expected"),
    [
        pytest.param(100.0, 0.0, 160.0, id="the taint came after the pod"),
        pytest.param(100.0, 400.0, 460.0, id="the pod came to a tainted node"),
        pytest.param(100.0, 100.0, 160.0, id="both at once"),
        pytest.param(100.0, NOW + 50, NOW + 60, id="a binding in the future counts as now"),
    ],
)
def test_the_countdown_starts_with_the_later_of_taint_and_pod(added: float, bound: float, expected: float) -> None:
    assert due([replace(FOO, time_added=added)], [lasting("foo", 60)], bound=bound) == expected


def test_an_untolerated_taint_is_due_since_it_began() -> None:
    assert due([replace(FOO, time_added=100.0)], [], bound=400.0) == 400.0


def test_a_deadline_names_the_taint_the_toleration_and_the_start() -> None:
    short, long = lasting("foo", 60), lasting("bar", 600)
    taints = (BAR, replace(FOO, time_added=20.0), Taint("baz", NO_SCHEDULE))
    found = judged(pod("p1", long, short), node("n1", *taints))
    assert found == Deadline(taint=taints[1], toleration=short, start=20.0, due=80.0)


def test_of_taints_that_are_due_together_the_first_is_named() -> None:
    found = judged(pod(), node("n1", BAR, FOO))
    assert found is not None
    assert found.taint is BAR


@pytest.mark.parametrize(
    ("toleration", "text"),
    [
        (None, "taint foo:NoExecute is not tolerated"),
        (lasting("foo", 60), "taint foo:NoExecute is tolerated for 60 s only"),
        (lasting("foo", 0), "taint foo:NoExecute is tolerated for 0 s only"),
    ],
)
def test_a_deadline_tells_its_reason(toleration: Toleration | None, text: str) -> None:
    assert str(Deadline(FOO, toleration, 0.0, 60.0)) == text


@pytest.mark.parametrize(
    ("taint", "memory", "expected"),
    [
        reported("kubernetes/kubernetes#108268", "the taint's own time counts", not_ready(-200.0), {}, 100.0),
        reported("kubernetes/kubernetes#98482", "no time is not the year 1970", not_ready(None), {}, 1300.0),
        pytest.param(not_ready(None), {str(not_ready()): 400.0}, 700.0, id="without a time, the memory counts"),
    ],
)
def test_since_when_a_taint_counts(taint: Taint, memory: dict[str, float], expected: float) -> None:
    tolerating = pod("p1", lasting(taint.key, 300), bound=-5000.0)
    found = judged(tolerating, node("n1", taint), memory)
    assert found is not None
    assert found.due == expected


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    shorter=st.integers(-5, 10_000),
    longer=st.integers(-5, 10_000) | st.none(),
    added=st.floats(0, NOW),
    bound=st.floats(0, NOW),
    others=st.lists(st.sampled_from([BAR, not_ready(10.0)]), unique=True),
)
def test_more_seconds_never_bring_the_deadline_forward(
    shorter: int, longer: int | None, added: float, bound: float, others: list[Taint]
) -> None:
    if longer is not None:
        shorter, longer = sorted((shorter, longer))
    taints = [*others, replace(FOO, time_added=added)]
    rest = [lasting(taint.key, 5000) for taint in others]
    before = due(taints, [lasting("foo", shorter), *rest], bound=bound)
    after = due(taints, [lasting("foo", longer), *rest], bound=bound)
    assert before <= after


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    now=st.floats(NOW, 2 * NOW),
    later=st.floats(0, NOW),
    added=st.floats(-NOW, NOW) | st.none(),
    seen=st.floats(0, NOW),
    seconds=st.integers(0, 5000),
)
def test_time_passing_does_not_move_a_deadline(
    now: float, later: float, added: float | None, seen: float, seconds: int
) -> None:
    tolerating, tainted = pod("p1", lasting("foo", seconds)), node("n1", replace(FOO, time_added=added))
    memory = {str(FOO): seen}
    assert judged(tolerating, tainted, memory, now=now) == judged(tolerating, tainted, memory, now=now + later)
