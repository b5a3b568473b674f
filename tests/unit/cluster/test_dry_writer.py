"""A dry run: nothing is written, and nodes are shown as they would be."""

import asyncio
from dataclasses import replace

import pytest

from taintkeeper.cluster.writer import DryWriter
from taintkeeper.core.answers import Answer
from taintkeeper.core.messages import NodeWritten, WriteResult
from taintkeeper.core.objects import Node, PodRef, Taint

FOREIGN = Taint("example.com/startup", "NoSchedule")
OURS = Taint("node.kubernetes.io/not-ready", "NoSchedule", time_added=1.0)
EXECUTE = Taint("node.kubernetes.io/not-ready", "NoExecute", time_added=2.0)
LATER = replace(EXECUTE, time_added=3.0)
NODE = Node("n1", uid="n1-uid", taints=(FOREIGN, OURS))


async def test_every_eviction_is_accepted() -> None:
    assert await DryWriter(echo=lambda _: None).evict(PodRef("default", "p1", "u")) == Answer(200)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param((FOREIGN, OURS, EXECUTE), id="one added"),
        pytest.param((FOREIGN,), id="one removed"),
        pytest.param((), id="all removed"),
        pytest.param((FOREIGN, EXECUTE), id="one for another"),
        pytest.param((FOREIGN, replace(OURS, time_added=9.0)), id="one with another time"),
    ],
)
async def test_a_node_is_shown_with_the_taints_it_would_have(after: tuple[Taint, ...]) -> None:
    echoed: list[Node] = []
    writer = DryWriter(echoed.append)
    would_be = replace(NODE, taints=after)
    assert await writer.write_taints(NODE, after) == NodeWritten("n1", WriteResult.DONE, would_be)
    assert echoed == [], "a watch never tells of a write before it has been answered"
    await asyncio.sleep(0)
    assert echoed == [would_be]
    assert set(writer.as_seen(NODE).taints) == set(after)
    assert writer.as_seen(writer.as_seen(NODE)) == writer.as_seen(NODE)


async def test_changes_of_others_show_through() -> None:
    writer = DryWriter(echo=lambda _: None)
    await writer.write_taints(NODE, (FOREIGN, OURS, EXECUTE))
    more = Taint("other", "NoExecute")
    changed = replace(NODE, taints=(OURS, more), resource_version="99", unschedulable=True)
    seen = writer.as_seen(changed)
    assert set(seen.taints) == {OURS, more, EXECUTE}
    assert (seen.resource_version, seen.unschedulable) == ("99", True)


async def test_the_last_of_several_writes_counts() -> None:
    writer = DryWriter(echo=lambda _: None)
    await writer.write_taints(NODE, (FOREIGN, OURS, EXECUTE))
    await writer.write_taints(writer.as_seen(NODE), (FOREIGN, OURS, LATER))
    assert writer.as_seen(NODE).taints == (FOREIGN, OURS, LATER)
    await writer.write_taints(writer.as_seen(NODE), (FOREIGN, OURS))
    assert writer.as_seen(NODE).taints == (FOREIGN, OURS)


async def test_a_node_that_came_anew_under_the_same_name_has_nothing_of_it() -> None:
    writer = DryWriter(echo=lambda _: None)
    await writer.write_taints(NODE, ())
    await writer.write_first_seen("n1", "n1-uid", {"foo:NoExecute": 5.0})
    another = replace(NODE, uid="another")
    assert writer.as_seen(another) == another


async def test_the_memory_is_shown_as_if_it_were_on_the_node() -> None:
    writer = DryWriter(echo=lambda _: None)
    node = replace(NODE, first_seen={"foo:NoExecute": 1.0})
    assert await writer.write_first_seen("n1", "n1-uid", {"foo:NoExecute": 5.0}) == NodeWritten("n1", WriteResult.DONE)
    assert writer.as_seen(node).first_seen == {"foo:NoExecute": 5.0}
    await writer.write_first_seen("n1", "n1-uid", {})
    assert writer.as_seen(node).first_seen == {}
