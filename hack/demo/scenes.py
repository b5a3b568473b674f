"""The scenes of the story: what is done to the cluster, and what is waited for."""

import asyncio

from demo import checks, manifests
from demo.clock import next_full_second
from demo.forecast import Forecast, forecasts
from demo.reading import OWN_PREFIX, name_of, node_of, spelled
from demo.setting import patience
from demo.stage import Stage, take_taint
from demo.timeline import Tone

NOT_READY = OWN_PREFIX + "not-ready"
FAILURE_LASTS = 4.5
"""For how long a node has failed: longer than web tolerates it, shorter than cache."""
PATIENCE_SECONDS = 5.0
"""How long is waited for what should be there at once, before the story goes on without."""
PAUSE_SECONDS = 1.0
"""How long is waited for what should not happen."""
DB_MORE = manifests.DB_REPLICAS + 1


async def node_fails(stage: Stage, node: str) -> None:
    """A node's kubelet says that it is not ready, falls silent, and comes back."""
    stage.timeline.scene(f"{node} fails: its kubelet reports Ready=False and falls silent, but will be back soon")
    expected = _announce(stage, forecasts(stage.record, node, {"key": NOT_READY, "effect": "NoExecute"}, FAILURE_LASTS))
    await next_full_second()
    since = stage.clock.now()
    stage.timeline.happened(node, "reports Ready=False, then falls silent", Tone.BY_HAND)
    await stage.silence(node)
    await asyncio.sleep(FAILURE_LASTS)
    await stage.comes_true(lambda: all(map(stage.has_left, _leavers(expected))), PATIENCE_SECONDS)
    await _check_complete(stage, node, {"web": manifests.web_replicas(len(stage.nodes)), "db": manifests.DB_REPLICAS})
    stage.timeline.happened(node, "is back and reports Ready=True", Tone.BY_HAND)
    await stage.wake(node)
    await stage.comes_true(lambda: not stage.is_tainted(node), PATIENCE_SECONDS)
    await asyncio.sleep(PAUSE_SECONDS)
    wanted = [f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"]
    stage.checks.append(checks.tainted_at_once(stage.record, node, since, wanted))
    stage.checks.append(checks.no_taint_of_ours(stage.record, f"once {node} was back"))


async def maintenance(stage: Stage, node: str) -> None:
    """An administrator taints a node by hand; one pod is held by its budget until there is another like it."""
    taint, timeline = manifests.MAINTENANCE, stage.timeline
    timeline.scene(f"An administrator taints {node}: kubectl taint node {node} {spelled(taint)}")
    expected = _announce(stage, forecasts(stage.record, node, taint, float("inf")))
    leavers = _leavers(expected)
    timeline.happened(node, "is tainted by an administrator", Tone.BY_HAND)
    await stage.put_taint(node, taint)
    on_time = [each for each in leavers if not each.held]
    await stage.comes_true(lambda: all(map(stage.has_left, on_time)), manifests.BATCH_SECONDS + PATIENCE_SECONDS)
    await asyncio.sleep(PAUSE_SECONDS)
    timeline.happened("db", f"is scaled up from {manifests.DB_REPLICAS} to {DB_MORE} pods", Tone.BY_HAND)
    await stage.kube.patch("deployments", manifests.NAMESPACE, "db", {"spec": {"replicas": DB_MORE}})
    await stage.comes_true(lambda: all(map(stage.has_left, leavers)), patience(stage))
    await _check_complete(stage, node, {"web": manifests.web_replicas(len(stage.nodes)), "db": DB_MORE})
    await asyncio.sleep(PAUSE_SECONDS)
    _tell_who_stayed(stage, expected)
    timeline.happened(node, "the administrator takes the taint off", Tone.BY_HAND)
    await take_taint(stage.kube, node, taint)
    await stage.comes_true(lambda: not stage.is_tainted(node), PATIENCE_SECONDS)


def _announce(stage: Stage, expected: list[Forecast]) -> list[Forecast]:
    for each in expected:
        stage.timeline.expect(name_of(each.pod), each.why)
    stage.forecasts.extend(expected)
    return expected


def _leavers(expected: list[Forecast]) -> list[Forecast]:
    return [each for each in expected if each.leaves]


async def _check_complete(stage: Stage, node: str, replicas: dict[str, int]) -> None:
    """Wait until the workloads are complete on other nodes, and note whether they are."""

    def complete() -> bool:
        found = {app: stage.running(app) for app in replicas}
        return all(len(found[app]) == count for app, count in replicas.items())

    await stage.comes_true(complete, patience(stage))
    for app, count in replicas.items():
        stage.checks.append(checks.replaced_elsewhere(stage.record, app, count, node))


def _tell_who_stayed(stage: Stage, expected: list[Forecast]) -> None:
    staying = [each for each in expected if not each.leaves and stage.record.left(each.pod) is None]
    for each in staying:
        why = each.why.removeprefix("should stay: ")
        stage.timeline.happened(name_of(each.pod), f"is still on {node_of(each.pod)}: {why}", Tone.GOOD)
