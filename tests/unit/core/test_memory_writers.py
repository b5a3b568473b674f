"""Several operators keep the memory on one node: they agree, and soon stop to write."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintkeeper.core.memory import REST_SECONDS, MemoryKeeper
from taintkeeper.core.messages import NodeWritten, Remember, WriteResult
from taintkeeper.core.objects import NO_EXECUTE, Node, Taint
from tests.unit.core.builders import LONG_AGO, no_execute

STEP_SECONDS = 0.05
QUIET_SECONDS = 60.0


class Server:
    """One node as the API server has it, and who watches it."""

    def __init__(self, *operators: "Operator") -> None:
        self.node = Node("n1", "n1-uid", resource_version="1", created=LONG_AGO)
        self.writes = 0
        self._operators = operators
        self._tell()

    def change(self, **fields: Any) -> None:
        """Change the node; a change that changes nothing makes no new version, as in the API server."""
        changed = replace(self.node, **fields)
        if changed != self.node:
            self.node = replace(changed, resource_version=str(int(self.node.resource_version) + 1))
            self._tell()

    def write(self, memory: Mapping[str, float]) -> Node:
        """Take a PATCH of the annotation, in which times keep three digits of a second."""
        self.writes += 1
        self.change(first_seen={taint: int(at * 1000.0) / 1000.0 for taint, at in memory.items()})
        return self.node

    def _tell(self) -> None:
        for operator in self._operators:
            operator.events.append(self.node)


@dataclass
class Operator:
    """A keeper with its watch, and its write on the way: first to the server, then back from it."""

    keeper: MemoryKeeper = field(default_factory=lambda: MemoryKeeper(Random(1)))
    events: deque[Node] = field(default_factory=deque)
    sent: Remember | None = None
    answer: NodeWritten | None = None

    def watch(self, now: float) -> None:
        """Take in the next event of the watch, if there is one."""
        if self.events:
            self.keeper.seen(self.events.popleft(), now)
        self._send(now)

    def arrive(self, server: Server) -> None:
        """Let the write on the way reach the server."""
        if self.sent is not None:
            self.answer = NodeWritten("n1", WriteResult.DONE, server.write(self.sent.memory))
            self.sent = None

    def hear(self, now: float, *, lost: bool = False) -> None:
        """Let the answer come, or only the news that none will come."""
        if self.answer is not None:
            self.keeper.answered(NodeWritten("n1", WriteResult.FAILED) if lost else self.answer, now)
            self.answer = None
        self._send(now)

    def _send(self, now: float) -> None:
        if self.sent is None and self.answer is None:
            self.sent = next(iter(self.keeper.writes(now)), None)

    @property
    def memory(self) -> dict[str, float]:
        known = self.keeper.get("n1")
        assert known is not None
        return known.memory


def settle(server: Server, operators: list[Operator], now: float) -> float:
    """Let everything arrive and time pass until nobody has anything left to do."""
    until = now + QUIET_SECONDS
    while now < until:
        for operator in operators:
            operator.arrive(server)
            operator.hear(now)
            while operator.events:
                operator.watch(now)
            now += STEP_SECONDS
    return now


TAINTS = [no_execute("a", None), no_execute("b", None), Taint("b", NO_EXECUTE, "other")]
ACTIONS = st.one_of(
    st.tuples(st.just("taints"), st.sets(st.sampled_from(TAINTS))),
    st.tuples(st.sampled_from(["watch", "arrive", "hear", "lose"]), st.integers(0, 1)),
    st.tuples(st.just("wait"), st.floats(0.0, 2.0 * REST_SECONDS)),
)


@given(st.lists(ACTIONS, max_size=60))
def test_two_operators_agree_in_the_end_whatever_is_late_or_lost_and_write_a_few_times_for_each_change(
    actions: list[tuple[str, object]],
) -> None:
    operators = [Operator(), Operator()]
    server, now, disturbances = Server(*operators), 1000.0, 1
    for what, which in actions:
        now += STEP_SECONDS
        match what, which:
            case "taints", set():
                server.change(taints=tuple(sorted(which, key=str)))
                disturbances += 1
            case "wait", float():
                now += which
            case "watch", int():
                operators[which].watch(now)
            case "arrive", int():
                operators[which].arrive(server)
            case _, int():
                operators[which].hear(now, lost=what == "lose")
                disturbances += what == "lose"
    now = settle(server, operators, now)
    assert server.writes <= 4 * disturbances
    one, two = (operator.memory for operator in operators)
    assert one.keys() == two.keys() == {str(taint) for taint in server.node.taints}
    for taint, at in server.node.first_seen.items():
        assert one[taint] == pytest.approx(two[taint], abs=0.0021) == pytest.approx(at, abs=0.0021)
    before = server.writes
    settle(server, operators, now)
    assert server.writes == before


def both_see(server: Server, operators: list[Operator], now: float, later: float, **fields: Any) -> None:
    """Change the node; the first operator sees it now, the other one later, before anything is written."""
    server.change(**fields)
    for operator, at in zip(operators, (now, later), strict=True):
        while operator.events:
            operator.watch(at)


@pytest.mark.parametrize(("first", "second"), [(1000.0, 1002.0), (1002.0, 1000.0)])
def test_the_time_of_the_operator_that_saw_a_taint_first_counts_for_all(first: float, second: float) -> None:
    operators = [Operator(), Operator()]
    server = Server(*operators)
    both_see(server, operators, first, second, taints=(TAINTS[0],))
    settle(server, operators, 1003.0)
    assert [operator.memory for operator in operators] == [{"a:NoExecute": 1000.0}] * 2
    assert server.node.first_seen == {"a:NoExecute": 1000.0}
    assert server.writes <= 4


def test_a_taint_that_was_removed_and_added_again_begins_anew_for_all() -> None:
    operators = [Operator(), Operator()]
    server = Server(*operators)
    both_see(server, operators, 1000.0, 1001.0, taints=(TAINTS[0],))
    now = settle(server, operators, 1002.0)
    server.change(taints=())
    both_see(server, operators, now, now + 1.0, taints=(TAINTS[0],))
    settle(server, operators, now + 2.0)
    assert [operator.memory for operator in operators] == [{"a:NoExecute": pytest.approx(now, abs=0.001)}] * 2
