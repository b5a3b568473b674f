"""What the README says of policies is what they do."""

from dataclasses import replace

import msgspec
import pytest

from taintkeeper.cluster.policy_wire import decode_policy
from taintkeeper.core.messages import Delete, NodeSeen, PodSeen, Skipped
from taintkeeper.core.objects import NO_SCHEDULE, Pod, Taint
from taintkeeper.core.policies import DEFAULTS, Mode
from taintkeeper.core.policy_messages import PolicySeen
from taintkeeper.core.traits import Trait
from tests.policy_specs import README, readme_policies
from tests.unit.core.builders import HELD_BY_BUDGET, budget, node, pod
from tests.unit.core.eviction_bench import EvictionBench, always

DATABASE = {"app.kubernetes.io/component": "database"}
TAINTED = NodeSeen(node("n1", Taint("example.com/maintenance", NO_SCHEDULE, time_added=0.0)))


def shown(name: str) -> PolicySeen:
    """Return a policy that the README shows, as if it were on the cluster."""
    made = readme_policies()[name]
    made["metadata"] |= {"uid": f"{name}-uid", "resourceVersion": "1", "generation": 1}
    return decode_policy(msgspec.json.encode(made))


def database(name: str) -> Pod:
    return pod(name, labels=DATABASE)


def test_what_decides_without_any_policy_is_what_the_readme_shows() -> None:
    read = [shown(each.name).policy for each in DEFAULTS[:2]]
    assert read == [replace(each, blocked_seconds=each.patience) for each in DEFAULTS[:2]]
    assert [seen.fault for seen in (shown(each.name) for each in DEFAULTS[:2])] == ["", ""]


def test_taints_for_the_scheduler_evict_nobody_without_a_policy() -> None:
    (rest,) = DEFAULTS[2:]
    assert rest.mode is Mode.IGNORE
    assert {pattern.effect for pattern in rest.taints} == {NO_SCHEDULE, "PreferNoSchedule"}
    assert "Taints without NoExecute\nevict nobody then" in README.read_text()


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_is_explained(mode: Mode) -> None:
    assert f"| `{mode}` |" in README.read_text()


def test_the_databases_of_the_example_leave_after_ten_minutes_one_after_the_other() -> None:
    bench = EvictionBench(shown("databases"), PodSeen(database("d1")), PodSeen(database("d2")), lingers=60.0)
    bench.tell(PodSeen(pod("other")), TAINTED)
    bench.run_until(7200.0)
    assert bench.posts() == [(600.0, "d1"), (660.0, "d2")]


def test_a_database_of_the_example_is_deleted_once_its_budget_has_held_it_for_an_hour() -> None:
    bench = EvictionBench(shown("databases"), PodSeen(database("d1")), api=always(HELD_BY_BUDGET))
    bench.see(budget(), TAINTED.node)
    bench.run_until(7200.0)
    assert [at for at, _ in bench.of(Delete)] == [600.0 + 3600.0]


def test_a_database_of_the_example_that_nobody_would_replace_stays() -> None:
    alone = replace(database("d1"), traits=frozenset({Trait.UNMANAGED}))
    bench = EvictionBench(shown("databases"), PodSeen(alone), TAINTED)
    bench.run_until(7200.0)
    assert bench.posts() == []
    assert [effect.reason for _, effect in bench.of(Skipped)] == ["unmanaged"]


def test_without_the_example_its_taint_evicts_nobody() -> None:
    bench = EvictionBench(PodSeen(database("d1")), TAINTED)
    bench.run_until(7200.0)
    assert bench.posts() == []
