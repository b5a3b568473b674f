"""Pods that do not tolerate leave through the Eviction API when their time is up."""

import asyncio

import pytest

from testbed.client import ApiError, until
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import World, taint, toleration

LATE_SECONDS = 2.0
"""How late an eviction may be seen here: these machines are busy and noisy."""


@pytest.mark.upstream("NoExecuteTaintManager Single Pod evicts pods from tainted nodes")
@pytest.mark.upstream("NoExecuteTaintManager Single Pod doesn't evict pod with tolerations from tainted nodes")
@pytest.mark.upstream(
    "NoExecuteTaintManager Single Pod eventually evict pod with finite tolerations from tainted nodes"
)
@pytest.mark.upstream("NoExecuteTaintManager Multiple Pods only evicts pods without tolerations from tainted nodes")
@pytest.mark.upstream("NoExecuteTaintManager Multiple Pods evicts pods with minTolerationSeconds")
async def test_each_pod_leaves_when_its_toleration_says(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "untolerating")
    await world.pod(node, "zero", toleration("maintenance", 0))
    await world.pod(node, "negative", toleration("maintenance", -5))
    await world.pod(node, "timed", toleration("maintenance", 3))
    await world.pod(node, "longer", toleration("maintenance", 5))
    await world.pod(node, "forever", toleration("maintenance"))
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint("maintenance"))
    for name in ("untolerating", "zero", "negative"):
        assert await world.gone(name) - tainted_at < LATE_SECONDS, name
    assert 3.0 <= await world.gone("timed") - tainted_at < 3.0 + LATE_SECONDS
    assert 5.0 <= await world.gone("longer") - tainted_at < 5.0 + LATE_SECONDS
    assert await world.pods() == {"forever"}


async def test_an_eviction_is_told_in_the_words_of_upstream(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "leaving")
    await world.add_taint(node, taint("maintenance"))
    name = f"{world.namespace}/leaving"
    event = await world.told("leaving", "TaintManagerEviction", f"Marking for deletion Pod {name}")
    assert (event["type"], event["message"]) == ("Normal", f"Marking for deletion Pod {name}")
    assert event["metadata"]["namespace"] == world.namespace


@pytest.mark.upstream("NoExecuteTaintManager Single Pod removing taint cancels eviction")
async def test_removing_the_taint_cancels_the_countdown_and_says_so_once(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "waiting", toleration("maintenance", 3))
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _counting(operator, 1))
    await world.set_taints(node)
    event = await world.told("waiting", "TaintManagerEviction", "Cancelling")
    assert event["message"] == f"Cancelling deletion of Pod {world.namespace}/waiting"
    await asyncio.sleep(3.5)
    assert await world.pods() == {"waiting"}
    assert len(await world.events("waiting")) == 1


async def _counting(operator: OperatorProcess, count: int) -> bool:
    return await operator.metric("taintkeeper_pending_evictions", reason="toleration") == count


async def test_a_pod_that_arrives_on_a_tainted_node_is_judged_on_arrival(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.add_taint(node, taint("maintenance"))
    await world.pod(node, "tolerating", toleration("maintenance"))
    created = await world.kube.create(
        "pods",
        {
            "metadata": {"name": "late", "namespace": world.namespace},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": "none"}],
                "terminationGracePeriodSeconds": 0,
            },
        },
    )
    assert created["spec"]["nodeName"] == node
    await world.gone("late")
    assert await world.pods() == {"tolerating"}


@pytest.mark.reported("kubernetes/kubernetes#110401 (PR 110402)")
async def test_a_pod_made_anew_under_the_same_name_is_evicted_too(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "again", toleration("maintenance", 2))
    await world.add_taint(node, taint("maintenance"))
    await until(lambda: _counting(operator, 1))
    await world.kube.delete("pods", world.namespace, "again", gracePeriodSeconds=0)
    await world.pod(node, "again", toleration("maintenance", 2))
    born = asyncio.get_running_loop().time()
    assert 1.0 < await world.gone("again") - born < 2.0 + LATE_SECONDS


@pytest.mark.reported("kubernetes/kubernetes#53556")
async def test_a_taint_without_no_execute_evicts_nobody(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "staying")
    await world.pod(node, "witness", toleration("maintenance", 2))
    await world.set_taints(node, taint("full", "NoSchedule"), taint("poor", "PreferNoSchedule"), taint("maintenance"))
    await world.gone("staying")
    other = await world.node()
    await world.pod(other, "unharmed")
    await world.add_taint(other, taint("full", "NoSchedule"))
    await world.add_taint(other, taint("poor", "PreferNoSchedule"))
    await world.gone("witness")
    assert await world.pods() == {"unharmed"}


@pytest.mark.reported("kubernetes/kubernetes#22625")
@pytest.mark.reported("kubernetes/kubernetes#43116")
@pytest.mark.reported("kubernetes/kubernetes#95457")
@pytest.mark.reported("kubernetes/kubernetes#96363")
async def test_mirror_pods_and_pods_that_have_ended_are_left_alone_and_counted(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "mirror", annotations={"kubernetes.io/config.mirror": "hash"})
    for phase in ("Succeeded", "Failed"):
        await world.pod(node, phase.lower())
        await world.phase(phase.lower(), phase)
    await world.pod(node, "witness")
    await world.add_taint(node, taint("maintenance"))
    await world.gone("witness")
    await until(lambda: _skipped(operator, mirror=1, terminal=2))
    assert await world.pods() == {"mirror", "succeeded", "failed"}


async def _skipped(operator: OperatorProcess, **reasons: int) -> bool:
    found = {reason: await operator.metric("taintkeeper_pods_skipped_total", reason=reason) for reason in reasons}
    return found == reasons


@pytest.mark.reported("NVIDIA/NVSentinel#1705")
@pytest.mark.reported("kubernetes/kubernetes#55713")
async def test_a_pod_that_takes_its_time_to_end_is_asked_once_and_never_forced(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    for number in range(5):
        await world.pod(node, f"slow-{number}", grace=90)
    await world.add_taint(node, taint("maintenance"))
    for number in range(5):
        await world.gone(f"slow-{number}")
    await asyncio.sleep(2.0)
    assert await operator.metric("taintkeeper_eviction_requests_total") == 5
    assert await operator.metric("taintkeeper_terminating_pods") == 5
    pods = await world.kube.list("pods", world.namespace)
    assert [pod["metadata"]["deletionGracePeriodSeconds"] for pod in pods] == [90] * 5


@pytest.mark.reported("kubernetes/kubernetes#102993 (PR 103055 closed)")
async def test_a_toleration_added_while_the_countdown_runs_lets_the_pod_stay(
    world: World, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.pod(node, "saved", toleration("maintenance", 3))
    await world.pod(node, "witness", toleration("maintenance", 4))
    await world.add_taint(node, taint("maintenance"))
    saved = await world.kube.get("pods", world.namespace, "saved")
    # The API lets tolerations only be added, never changed; the first that matches is the one that counts.
    tolerations = [*saved["spec"]["tolerations"], toleration("other")]
    await world.kube.patch("pods", world.namespace, "saved", {"spec": {"tolerations": tolerations}})
    with pytest.raises(ApiError):
        await world.kube.patch("pods", world.namespace, "saved", {"spec": {"tolerations": [toleration("maintenance")]}})
    await world.gone("witness")
    assert await world.pods() == set()


@pytest.mark.reported("kubernetes/kubernetes#98482")
async def test_a_taint_without_a_time_counts_from_when_it_was_seen(world: World, operator: OperatorProcess) -> None:
    node = await world.node()
    await world.pod(node, "timed", toleration("maintenance", 3))
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint("maintenance"))
    assert 3.0 <= await world.gone("timed") - tainted_at < 3.0 + LATE_SECONDS


@pytest.mark.reported("kubernetes/kubernetes#141453")
@pytest.mark.parametrize("time_added", ["2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
async def test_a_time_that_cannot_be_true_is_replaced_by_when_the_taint_was_seen(
    world: World, operator: OperatorProcess, time_added: str
) -> None:
    node = await world.node()
    await world.pod(node, "timed", toleration("maintenance", 3))
    await asyncio.sleep(1.0)
    tainted_at = asyncio.get_running_loop().time()
    await world.add_taint(node, taint("maintenance", timeAdded=time_added))
    assert 3.0 <= await world.gone("timed") - tainted_at < 3.0 + LATE_SECONDS
