"""Which pods a disruption budget covers: the embedded server and its controller do as the real ones."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from testbed.client import Kube, until
from tests.cluster.conformance import Row, Step, World, check, is_untouched
from tests.cluster.test_conformance_eviction import NEEDS_ONE, accepted, is_leaving, refused


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


def selecting(selector: Any) -> Step:
    """Return the step that makes a pod, and a closed budget with this selector that is observed."""

    async def given(world: World) -> None:
        await world.pod()
        await world.budget(settled=False, minAvailable=1, selector=selector)
        await until(lambda: observed(world))

    return given


async def observed(world: World) -> bool:
    budget = await world.kube.get("poddisruptionbudgets", world.namespace, "b")
    return bool(budget["status"].get("observedGeneration"))


async def the_budget_counts_one_pod(world: World) -> None:
    await is_untouched(world)
    budget = await world.kube.get("poddisruptionbudgets", world.namespace, "b")
    assert budget["status"]["expectedPods"] == 1


async def the_budget_counts_no_pod(world: World) -> None:
    await is_leaving(world)
    budget = await world.kube.get("poddisruptionbudgets", world.namespace, "b")
    assert budget["status"]["expectedPods"] == 0


SELECTORS = [
    refused(
        name="a budget with an empty selector covers every pod of its namespace",
        given=selecting({}),
        status=429,
        answer=NEEDS_ONE,
        then=the_budget_counts_one_pod,
    ),
    accepted(
        name="a budget without a selector covers no pod",
        given=selecting(None),
        then=the_budget_counts_no_pod,
    ),
]


@pytest.mark.parametrize("row", SELECTORS, ids=lambda row: row.name)
async def test_a_budget_covers_the_pods_that_its_selector_matches(world: World, row: Row) -> None:
    await check(world, row)
