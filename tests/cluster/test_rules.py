"""NodeTaintRules at work: the operator's own process, nodes that report conditions, and what comes of it."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testbed import Cluster
from testbed.client import MERGE, ApiError, Object, until
from testbed.real.build import bin_folder
from tests.cluster.conftest import QUICK, Start
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.rule_definition import NONSENSE, RULES, Definition, rule
from tests.cluster.world import World
from tests.rule_specs import README, readme_rules

DEADLOCK = "example.com/kernel-deadlock"
SPEC = {
    "condition": {"type": "KernelDeadlock", "status": "True"},
    "taint": {"key": DEADLOCK, "effect": "NoSchedule"},
}
ANNOTATION = "taintkeeper.io/rule-taints"
SWEEP_SECONDS = 45.0

Make = Callable[..., Awaitable[str]]


@pytest.fixture
async def definition(cluster: Cluster, world: World) -> Definition:
    """The definition of rules, installed."""
    made = Definition(cluster, world.kube)
    await made.install()
    return made


@pytest.fixture
async def make(world: World, definition: Definition) -> AsyncIterator[Make]:
    """Make a rule for the nodes of the world; it is gone after the test. Its name is returned."""
    names: list[str] = []

    async def made(**fields: Any) -> str:
        name = f"{world.namespace}-{len(names)}"
        selector = {"matchLabels": {"topology.kubernetes.io/region": world.namespace}}
        await world.kube.create(RULES, rule({**SPEC, "nodeSelector": selector, **fields}, name))
        names.append(name)
        return name

    yield made
    for name in names:
        await remove(world, name)


async def remove(world: World, name: str) -> None:
    """Delete a rule, if it is still there."""
    try:
        await world.kube.delete(RULES, "", name)
    except ApiError as error:
        if error.status != 404:
            raise


async def edit(world: World, name: str, **fields: Any) -> None:
    """Change fields of a rule's spec."""
    await world.kube.patch(RULES, "", name, {"spec": fields}, MERGE)


async def becomes(world: World, node: str, *taints: str, seconds: float = 10.0) -> None:
    """Wait until a node has these taints, and no others."""

    async def right() -> bool:
        return await world.taint_ids(node) == set(taints)

    try:
        await until(right, seconds)
    except TimeoutError:
        raise AssertionError(f"expected {set(taints)}, found {await world.taint_ids(node)}") from None


async def status(world: World, name: str) -> Object:
    """Return the status of a rule."""
    found: Object = (await world.kube.get(RULES, "", name)).get("status", {})
    return found


async def says(world: World, name: str, seconds: float = 15.0, **numbers: int) -> Object:
    """Wait until a rule's status has these numbers; return its conditions by type."""

    async def right() -> bool:
        return numbers.items() <= (await status(world, name)).items()

    try:
        await until(right, seconds)
    except TimeoutError:
        raise AssertionError(f"expected {numbers}, found {await status(world, name)}") from None
    return {each["type"]: each for each in (await status(world, name))["conditions"]}


@pytest.mark.reported("kubernetes/node-problem-detector#457")
async def test_a_rule_taints_the_nodes_that_have_its_condition_and_counts_them(
    world: World, make: Make, operator: OperatorProcess
) -> None:
    sick, well = await world.nodes(2)
    for node, value in ((sick, "True"), (well, "False")):
        await world.report(node, Ready="True", KernelDeadlock=value)
    name = await make(taint={"key": DEADLOCK, "effect": "NoSchedule", "value": "yes"})
    await becomes(world, sick, f"{DEADLOCK}:NoSchedule")
    (found,) = await world.taints(sick)
    assert (found["value"], "timeAdded" in found) == ("yes", True)
    metadata = (await world.kube.get("nodes", "", sick))["metadata"]
    assert metadata["annotations"][ANNOTATION] == f'{{"{DEADLOCK}:NoSchedule":"{name}"}}'
    conditions = await says(world, name, observedGeneration=1, matched=2, waiting=0, tainted=1, heldBack=0)
    assert {type_: each["status"] for type_, each in conditions.items()} == {"Accepted": "True", "Active": "True"}
    await world.told(sick, "TaintAdded", f"condition KernelDeadlock is True, by rule {name}")
    await world.report(sick, KernelDeadlock="False")
    await becomes(world, sick)
    await world.told(sick, "TaintRemoved", f"condition KernelDeadlock is no longer True, by rule {name}")
    assert ANNOTATION not in (await world.kube.get("nodes", "", sick))["metadata"].get("annotations", {})
    await says(world, name, tainted=0)
    assert await world.taints(well) == []


async def test_a_deleted_rule_takes_its_taints_with_it_and_no_others(
    world: World, make: Make, operator: OperatorProcess
) -> None:
    foreign = {"key": "example.com/startup", "effect": "NoSchedule"}
    node = await world.node(foreign)
    await world.report(node, KernelDeadlock="True")
    name = await make(clearSeconds=3600)
    await becomes(world, node, f"{DEADLOCK}:NoSchedule", "example.com/startup:NoSchedule")
    await world.kube.delete(RULES, "", name)
    await becomes(world, node, "example.com/startup:NoSchedule")
    await world.told(node, "TaintRemoved", f"rule {name} is gone")


@pytest.mark.reported("kubernetes-sigs/node-readiness-controller#382")
async def test_a_rule_that_is_deleted_while_nobody_looks_takes_its_taints_with_it(
    world: World, make: Make, start: Start
) -> None:
    node = await world.node()
    await world.report(node, KernelDeadlock="True")
    name = await make()
    first = await (await start(*QUICK)).until_ready()
    await becomes(world, node, f"{DEADLOCK}:NoSchedule")
    await first.kill()
    await world.kube.delete(RULES, "", name)
    await (await start(*QUICK)).until_ready()
    await becomes(world, node)


async def test_an_edit_holds_at_once_and_one_that_makes_no_sense_is_reported_and_changes_nothing(
    world: World, make: Make, definition: Definition, operator: OperatorProcess
) -> None:
    first, second = await world.nodes(2)
    await world.report(first, KernelDeadlock="True")
    name = await make()
    await becomes(world, first, f"{DEADLOCK}:NoSchedule")
    await edit(world, name, taint={"key": "example.com/other", "effect": "PreferNoSchedule"})
    await becomes(world, first, "example.com/other:PreferNoSchedule", seconds=3.0)
    await says(world, name, observedGeneration=2, tainted=1)
    await definition.install(checked=False)
    await edit(world, name, **NONSENSE)
    conditions = await says(world, name, observedGeneration=3)
    assert conditions["Accepted"]["status"] == "False"
    message = conditions["Accepted"]["message"]
    assert message.startswith("spec.taint.key: 'node.kubernetes.io/memory-pressure' stands for the condition")
    assert message.endswith("the last version that made sense stays in force")
    await world.report(second, KernelDeadlock="True")
    await becomes(world, second, "example.com/other:PreferNoSchedule")
    await says(world, name, tainted=2)
    await edit(world, name, taint={"key": DEADLOCK, "effect": "NoSchedule"})
    await becomes(world, first, f"{DEADLOCK}:NoSchedule")
    assert (await says(world, name, observedGeneration=4))["Accepted"]["status"] == "True"
    await definition.install()


@pytest.mark.reported("kubernetes/node-problem-detector#457")
async def test_a_hold_time_goes_on_after_a_restart(world: World, make: Make, start: Start) -> None:
    fresh, old = await world.nodes(2)
    await make(forSeconds=60)
    first = await (await start(*QUICK)).until_ready()
    for node, age in ((fresh, 0), (old, 55)):
        since = datetime.now(UTC) - timedelta(seconds=age)
        condition = {"type": "KernelDeadlock", "status": "True", "lastTransitionTime": f"{since:%FT%TZ}"}
        await world.kube.patch_status("nodes", "", node, {"conditions": [condition]})
    await first.kill()
    await (await start(*QUICK)).until_ready()
    await becomes(world, old, f"{DEADLOCK}:NoSchedule", seconds=20.0)
    assert await world.taints(fresh) == []


@pytest.mark.reported("kubernetes/kubernetes#115516")
async def test_a_rule_for_a_built_in_taint_keeps_it_while_the_condition_flaps(
    world: World, make: Make, operator: OperatorProcess
) -> None:
    key = "node.kubernetes.io/disk-pressure"
    node = await world.node()
    pressure = {"type": "DiskPressure", "status": "True"}
    name = await make(condition=pressure, taint={"key": key, "effect": "NoSchedule"}, clearSeconds=3600)
    await says(world, name, matched=1)
    await world.report(node, DiskPressure="True")
    await becomes(world, node, f"{key}:NoSchedule")
    (added,) = await world.taints(node)
    for value in ("False", "True", "False"):
        await world.report(node, DiskPressure=value)
    await says(world, name, tainted=1)
    assert await world.taints(node) == [added]
    await world.kube.delete(RULES, "", name)
    await becomes(world, node)


async def test_too_many_nodes_that_suffer_get_no_taint_and_the_status_says_why(
    world: World, make: Make, operator: OperatorProcess
) -> None:
    nodes = await world.nodes(4)
    name = await make(maxUnhealthy="50%")
    await says(world, name, matched=4)
    for node in nodes[:2]:
        await world.report(node, KernelDeadlock="True")
        await becomes(world, node, f"{DEADLOCK}:NoSchedule")
    await world.report(nodes[2], KernelDeadlock="True")
    conditions = await says(world, name, tainted=2, heldBack=1)
    assert (conditions["Active"]["status"], conditions["Active"]["reason"]) == ("False", "MaxUnhealthy")
    assert await world.taints(nodes[2]) == []
    await world.report(nodes[0], KernelDeadlock="False")
    await becomes(world, nodes[0])
    await becomes(world, nodes[2], f"{DEADLOCK}:NoSchedule")


async def test_no_execute_by_a_rule_makes_pods_leave(world: World, make: Make, operator: OperatorProcess) -> None:
    node, *_ = await world.nodes(3)
    await world.pod(node, "leaving")
    await make(taint={"key": DEADLOCK, "effect": "NoExecute"})
    await world.report(node, KernelDeadlock="True")
    await world.gone("leaving")
    await becomes(world, node, f"{DEADLOCK}:NoExecute")


@pytest.mark.only_on("real")
async def test_kubectl_shows_the_rule_of_the_readme_as_the_readme_does(
    world: World, definition: Definition, cluster: Cluster, operator: OperatorProcess
) -> None:
    sick, *_ = await world.nodes(10)
    since = datetime.now(UTC) - timedelta(seconds=60)
    condition = {"type": "KernelDeadlock", "status": "True", "lastTransitionTime": f"{since:%FT%TZ}"}
    await world.kube.patch_status("nodes", "", sick, {"conditions": [condition]})
    (body,) = readme_rules().values()
    name = (await world.kube.create(RULES, body))["metadata"]["name"]
    await says(world, name, tainted=1)
    await becomes(world, sick, f"{DEADLOCK}:NoExecute")
    command = [bin_folder() / "kubectl", "--kubeconfig", cluster.kubeconfig, "get", "nodetaintrules", name]
    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    await remove(world, name)
    await becomes(world, sick)
    lines = [line[: line.rindex(" ")].rstrip() for line in shown.stdout.splitlines()]
    readme = README.read_text()
    assert all(f"\n{line} " in readme for line in lines), shown.stdout


async def test_a_dry_run_of_a_rule_taints_nobody_and_its_status_says_what_would_be(
    world: World, make: Make, operator: OperatorProcess
) -> None:
    node = await world.node()
    await world.report(node, KernelDeadlock="True")
    name = await make(dryRun=True)
    conditions = await says(world, name, matched=1, tainted=1)
    assert (conditions["Active"]["status"], conditions["Active"]["reason"]) == ("False", "DryRun")
    assert await world.taints(node) == []
    await edit(world, name, dryRun=False)
    await becomes(world, node, f"{DEADLOCK}:NoSchedule")


async def test_a_dry_run_of_the_operator_writes_neither_to_nodes_nor_to_rules(
    world: World, make: Make, start: Start
) -> None:
    node = await world.node()
    await world.report(node, KernelDeadlock="True")
    name = await make()
    before = [await world.kube.get("nodes", "", node), await world.kube.get(RULES, "", name)]
    process = await (await start(*QUICK, "--dry-run")).until_ready()
    message = f"node {node}: Taint {DEADLOCK}:NoSchedule added: condition KernelDeadlock is True, by rule {name}"
    await until(lambda: message in process.output())
    assert await process.metric("taintkeeper_taints_added_total", key=DEADLOCK) == 1
    assert [await world.kube.get("nodes", "", node), await world.kube.get(RULES, "", name)] == before


async def test_without_the_definition_there_are_no_rules_and_all_else_works_until_it_is_installed(
    world: World, definition: Definition, start: Start, make: Make
) -> None:
    await definition.remove()
    node = await world.node()
    await world.report(node, KernelDeadlock="True", DiskPressure="True")
    process = await (await start(*QUICK)).until_ready()
    pressure = "node.kubernetes.io/disk-pressure:NoSchedule"
    await becomes(world, node, pressure)
    assert f"{RULES}.taintkeeper.io is not defined on the API server: there are none until it is" in process.output()
    await definition.install()
    name = await make()
    await becomes(world, node, pressure, f"{DEADLOCK}:NoSchedule", seconds=SWEEP_SECONDS)
    await says(world, name, tainted=1)
