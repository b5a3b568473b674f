"""A fresh embedded cluster for each test, and a client of its administrator."""

from collections.abc import AsyncIterator, Iterator

import pytest

from testbed.client import Kube
from testbed.embedded import EmbeddedCluster


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    """A cluster whose watches get bookmarks every fifth of a second."""
    with EmbeddedCluster(history=50, bookmark_seconds=0.2, heartbeat_seconds=0.1, termination_seconds=0.05) as cluster:
        yield cluster


@pytest.fixture
async def kube(embedded: EmbeddedCluster) -> AsyncIterator[Kube]:
    """A client of the cluster."""
    async with Kube(embedded.kubeconfig) as client:
        yield client
