"""What cluster tests share: a world of their own, and operators that end with the test."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from testbed import Cluster
from testbed.client import Kube
from tests.cluster.operator_process import RUN, OperatorProcess
from tests.cluster.policy_world import Policies
from tests.cluster.world import World

Start = Callable[..., Awaitable[OperatorProcess]]


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace, nodes and pods that are gone after the test."""
    made = await World(kube).enter()
    yield made
    await made.leave()


@pytest.fixture
async def policies(kube: Kube, cluster: Cluster) -> AsyncIterator[Policies]:
    """EvictionPolicies that are gone after the test. Name it before an operator, which watches what is defined."""
    made = await Policies(kube, cluster).enter()
    yield made
    await made.leave()


@pytest.fixture
async def start(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Start]:
    """Start an operator with these flags; it is stopped after the test, and must then end well."""
    running: list[OperatorProcess] = []

    async def begin(*flags: str, command: Sequence[str] = RUN, kubeconfig: Path | None = None) -> OperatorProcess:
        environment = {"TAINTKEEPER_KUBECONFIG": str(kubeconfig or cluster.kubeconfig)}
        log = tmp_path / f"operator-{len(running)}.log"
        process = await OperatorProcess([*command, *flags], environment, log).start()
        running.append(process)
        return process

    yield begin
    for process in running:
        code = await process.stop()
        print(process.output())  # shown by pytest when the test failed
        assert code in (0, -9), f"the operator ended with {code}"


QUICK = (
    *("--node-eviction-rate=100", "--node-monitor-grace-period=0s", "--storm-cooldown=0s"),
    *("--controllers=*,-node-health", "--verbose"),
)
"""Flags with which nobody waits: the first node of an empty cluster alone is a disruption of every zone.

Nodes of a world have no kubelet, so that node-health would declare them all Unknown.
"""


@pytest.fixture
async def operator(start: Start) -> OperatorProcess:
    """An operator with quick rates that is at work."""
    return await (await start(*QUICK)).until_ready()
