"""Options of the whole suite, and the control planes that cluster tests run against."""

from collections.abc import AsyncIterator, Iterator

import pytest

from testbed import Cluster
from testbed.client import Kube
from testbed.embedded import EmbeddedCluster
from testbed.real.build import can_build, is_built
from testbed.real.cluster import RealCluster

KINDS = {"embedded": ["embedded"], "real": ["real"], "both": ["embedded", "real"]}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the control planes."""
    parser.addoption(
        "--cluster", choices=sorted(KINDS), default="embedded", help="the control planes that cluster tests run against"
    )
    parser.addoption(
        "--require-real", action="store_true", help="fail instead of skipping when the real control plane is not built"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that needs a control plane once for each kind that was chosen."""
    if "cluster_kind" in metafunc.fixturenames:
        kinds = KINDS[metafunc.config.getoption("--cluster")]
        wanted = metafunc.definition.get_closest_marker("only_on")
        chosen = [kind for kind in kinds if wanted is None or kind in wanted.args]
        metafunc.parametrize("cluster_kind", [_parameter(kind, metafunc.config) for kind in chosen], scope="session")


def _parameter(kind: str, config: pytest.Config) -> object:
    if kind != "real" or is_built() or config.getoption("--require-real"):
        return kind
    how = "run `make real-cluster-build`" if can_build() else "building it needs Go"
    return pytest.param(kind, marks=pytest.mark.skip(reason=f"the real control plane is not built: {how}"))


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[RealCluster]:
    """One real control plane for the whole session, without controllers of its own that taint or evict."""
    with RealCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(cluster_kind: str, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A control plane: a new embedded one for each test, or the session's real one."""
    if cluster_kind == "real":
        yield request.getfixturevalue("real_cluster")
        return
    with EmbeddedCluster() as embedded:
        yield embedded


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[Kube]:
    """A client of the control plane with all rights."""
    async with Kube(cluster.kubeconfig) as client:
        yield client
