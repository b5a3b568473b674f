"""A dry run: nothing is written, and nodes are shown as they would be."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from taintkeeper.cluster.dry_writer import DryWriter
from taintkeeper.core.messages import BudgetSeen, Knowledge, NodeGone, NodeSeen, NodeWritten, PodSeen, WriteResult
from taintkeeper.core.objects import Node, Taint
from tests.unit.core.builders import budget, pod

FOREIGN = Taint("example.com/startup", "NoSchedule")
OURS = Taint("node.kubernetes.io/not-ready", "NoSchedule", time_added=1.0)
EXECUTE = Taint("node.kubernetes.io/not-ready", "NoExecute", time_added=2.0)
LATER = replace(EXECUTE, time_added=3.0)
NODE = Node("n1", uid="n1-uid", taints=(FOREIGN, OURS))


def dry_writer(echo: Callable[[Node], None] = lambda _: None) -> DryWriter:
    """Return a dry writer that has seen the node."""
    writer = DryWriter(echo)
    writer.feed(NodeSeen(NODE))
    writer.feed(Knowledge(fresh=True))
    return writer


@pytest.mark.parametrize(("allowed", "status"), [(1, 201), (0, 429)])
async def test_an_eviction_is_answered_as_the_api_would_answer_it(allowed: int, status: int) -> None:
    writer = dry_writer()
    writer.feed(PodSeen(pod()))
    writer.feed(BudgetSeen(budget(allowed=allowed)))
    assert (await writer.evict(pod().ref)).status == status


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
    writer = dry_writer(echoed.append)
    would_be = replace(NODE, taints=after)
    assert await writer.write_taints(NODE, after) == NodeWritten("n1", WriteResult.DONE, would_be)
    assert echoed == [], "a watch never tells of a write before it has been answered"
    await asyncio.sleep(0)
    assert echoed == [would_be]
    assert set(writer.as_seen(NODE).taints) == set(after)
    assert writer.as_seen(writer.as_seen(NODE)) == writer.as_seen(NODE)


async def test_a_node_is_shown_with_what_it_would_remember_of_rules() -> None:
    writer = dry_writer()
    memory = {("hot", "NoSchedule"): "heat"}
    written = await writer.write_taints(NODE, (FOREIGN, Taint("hot", "NoSchedule")), memory)
    assert written.node is not None
    assert written.node.rule_taints == writer.as_seen(NODE).rule_taints == memory
    await writer.write_taints(writer.as_seen(NODE), (FOREIGN,))
    assert writer.as_seen(NODE).rule_taints == memory
    await writer.write_taints(writer.as_seen(NODE), (FOREIGN,), {})
    assert writer.as_seen(NODE).rule_taints == {}


async def test_changes_of_others_show_through() -> None:
    writer = dry_writer()
    await writer.write_taints(NODE, (FOREIGN, OURS, EXECUTE))
    more = Taint("other", "NoExecute")
    changed = replace(NODE, taints=(OURS, more), resource_version="99", unschedulable=True)
    seen = writer.as_seen(changed)
    assert set(seen.taints) == {OURS, more, EXECUTE}
    assert (seen.resource_version, seen.unschedulable) == ("99", True)


async def test_the_last_of_several_writes_counts() -> None:
    writer = dry_writer()
    await writer.write_taints(NODE, (FOREIGN, OURS, EXECUTE))
    await writer.write_taints(writer.as_seen(NODE), (FOREIGN, OURS, LATER))
    assert writer.as_seen(NODE).taints == (FOREIGN, OURS, LATER)
    await writer.write_taints(writer.as_seen(NODE), (FOREIGN, OURS))
    assert writer.as_seen(NODE).taints == (FOREIGN, OURS)


async def test_a_node_that_came_anew_under_the_same_name_has_nothing_of_it() -> None:
    writer = dry_writer()
    await writer.write_taints(NODE, ())
    await writer.write_first_seen("n1", "n1-uid", {"foo:NoExecute": 5.0})
    another = replace(NODE, uid="another")
    assert writer.as_seen(another) == another


async def test_the_memory_is_shown_as_if_it_were_on_the_node() -> None:
    writer = dry_writer()
    node = replace(NODE, first_seen={"foo:NoExecute": 1.0})
    assert await writer.write_first_seen("n1", "n1-uid", {"foo:NoExecute": 5.0}) == NodeWritten("n1", WriteResult.DONE)
    assert writer.as_seen(node).first_seen == {"foo:NoExecute": 5.0}
    await writer.write_first_seen("n1", "n1-uid", {})
    assert writer.as_seen(node).first_seen == {}


GONE = NodeWritten("n1", WriteResult.GONE, detail="404: not found")


@pytest.mark.parametrize("then", [NodeGone("n1"), NodeSeen(replace(NODE, uid="another"))], ids=["gone", "anew"])
async def test_what_was_imagined_of_a_node_is_forgotten_with_it(then: NodeGone | NodeSeen) -> None:
    writer = dry_writer()
    await writer.write_taints(NODE, ())
    await writer.write_first_seen("n1", "n1-uid", {"foo:NoExecute": 5.0})
    writer.feed(NodeSeen(writer.as_seen(NODE)))
    assert writer.as_seen(NODE) != NODE
    writer.feed(then)
    assert writer.as_seen(NODE) == NODE
    assert not writer._imagined


async def test_a_node_that_is_not_there_cannot_be_written() -> None:
    echoed: list[Node] = []
    writer = dry_writer(echoed.append)
    writer.feed(NodeGone("n1"))
    assert await writer.write_taints(NODE, ()) == GONE
    assert await writer.write_first_seen("n1", "n1-uid", {}) == GONE
    await asyncio.sleep(0)
    assert (echoed, writer._imagined) == ([], {})


async def test_a_node_that_goes_right_after_a_write_is_not_told_of_again() -> None:
    echoed: list[Node] = []
    writer = dry_writer(echoed.append)
    await writer.write_taints(NODE, ())
    writer.feed(NodeGone("n1"))
    await asyncio.sleep(0)
    assert echoed == []
