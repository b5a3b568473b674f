"""Odd taints: the embedded server takes what a real one does, and refuses the rest in the same words."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from testbed.client import Kube
from tests.cluster.conformance import MERGE, Row, World, cause, check, failure

NODE = "/api/v1/nodes/$node"
TAINT = {"key": "example.com/a", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
TWICE = 2
"""The API looks at a changed node as at a new one and as at a changed one, and lists causes from both."""


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


async def node_is_as_it_was(world: World) -> None:
    node = await world.kube.get("nodes", "", world.node)
    assert node["metadata"]["resourceVersion"] == world.names["node_version"]


refused = partial(Row, method="PATCH", path=NODE, content_type=MERGE, status=422)

INVALID_TAINTS = [
    refused(
        name="an unknown effect of a taint",
        body={"spec": {"taints": [{"key": "a", "effect": "Nothing"}]}},
        answer=failure(
            "Invalid",
            'Node "$node" is invalid: metadata.taints[0].effect: Unsupported value: "Nothing": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"',
            name="$node",
            kind="Node",
            causes=[cause("FieldValueNotSupported", "metadata.taints[0].effect")] * TWICE,
        ),
        then=node_is_as_it_was,
    ),
    refused(
        name="a taint without effect",
        body={"spec": {"taints": [{"key": "a"}]}},
        answer=failure(
            "Invalid",
            causes=[cause("FieldValueRequired", "metadata.taints[0].effect", "Required value")] * TWICE,
        ),
    ),
    refused(
        name="the same key and effect twice",
        body={"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}},
        answer=failure("Invalid", causes=[cause("FieldValueDuplicate", "metadata.taints[1]")] * TWICE),
    ),
    refused(
        name="a taint whose key is no name",
        body={"spec": {"taints": [{"key": "a b", "effect": "NoSchedule"}]}},
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "metadata.taints[0].key")] * TWICE),
    ),
    refused(
        name="a taint whose value is no label value",
        body={"spec": {"taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}},
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "metadata.taints[0].value")] * TWICE),
    ),
    refused(
        name="a time that is none",
        body={"spec": {"taints": [{**TAINT, "timeAdded": "yesterday"}]}},
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "patch")]),
        then=node_is_as_it_was,
    ),
    refused(
        name="taints that are no list",
        body={"spec": {"taints": "none"}},
        answer=failure("Invalid", causes=[cause("FieldValueInvalid", "patch")]),
    ),
]


@pytest.mark.parametrize("row", INVALID_TAINTS, ids=lambda row: row.name)
async def test_an_invalid_taint_is_refused_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)


async def test_a_time_in_the_year_0_is_taken_and_told_as_it_is(world: World) -> None:
    taint = {**TAINT, "timeAdded": "0000-01-01T00:00:00Z"}
    answer = {"spec": {"taints": [taint]}}
    await check(
        world, Row(name="", method="PATCH", path=NODE, content_type=MERGE, body=answer, status=200, answer=answer)
    )
    await check(world, Row(name="", method="GET", path=NODE, status=200, answer=answer))
