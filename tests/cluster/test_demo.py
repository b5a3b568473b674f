"""The demo tells its story, and notices when the story goes wrong."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from demo import checks, manifests
from demo.clock import Clock
from demo.forecast import forecasts
from demo.manifests import NODE_LABEL
from demo.reading import EVICTED, spelled
from demo.record import Record
from testbed import Cluster
from testbed.client import Kube, Object, until

SECONDS = {"embedded": 40.0, "real": 100.0}
HACK = Path(__file__).parents[2] / "hack"


class Demo:
    """A run of ``python -m demo``, piped, in a process group of its own: a run that hangs leaves nobody behind."""

    def __init__(self, *flags: str, kubeconfig: Path | None = None) -> None:
        environment = {**os.environ, "PYTHONPATH": str(HACK)}
        if kubeconfig is not None:
            environment["KUBECONFIG"] = str(kubeconfig)
        self.process = subprocess.Popen(  # noqa: S603 - it is our own
            [sys.executable, "-m", "demo", *flags],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    async def end(self, seconds: float) -> tuple[int, str]:
        """Wait for its end; return exit code and output."""
        return await asyncio.to_thread(self._end, seconds)

    async def says(self, *words: str) -> None:
        """Wait for a line with these words, or its end."""
        await asyncio.to_thread(self._read_until, words)

    def _read_until(self, words: tuple[str, ...]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if all(word in line for word in words):
                return

    def _end(self, seconds: float) -> tuple[int, str]:
        try:
            output, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            output, _ = self.process.communicate()
            pytest.fail(f"the demo did not end within {seconds:g} s:\n{output}")
        print(output)  # shown by pytest when the test failed
        return self.process.returncode, output

    def group_lives(self) -> bool:
        """Say whether any process that it started is still there."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


async def test_the_demo_tells_its_story_and_ends_well(cluster_kind: str) -> None:
    demo = Demo("--cluster", cluster_kind)
    code, output = await demo.end(SECONDS[cluster_kind])
    assert code == 0
    for line in (
        "tainted node.kubernetes.io/not-ready:NoSchedule,NoExecute (Ready is False)",
        "tainted maintenance=true:NoExecute (by hand)",
        "tolerates the taint for 5 s only; due at",
        "has to wait: its budget db allows no eviction",
        "it is a mirror pod, which only its kubelet can end",
        "its DaemonSet lets it tolerate the taint for ever",
        "may stay: its countdown is cancelled",
        'taintkeeper_eviction_requests_total{outcome="accepted"}  4',
    ):
        assert line in output
    assert "FAIL" not in output
    assert "\x1b" not in output
    assert not demo.group_lives()


@pytest.mark.only_on("embedded")
async def test_an_operator_that_does_nothing_is_noticed(cluster_kind: str) -> None:
    code, output = await Demo("--cluster", cluster_kind, "--operator-args=--dry-run").end(SECONDS[cluster_kind])
    assert code == 1
    assert "FAIL  new nodes lost the API server's not-ready taint once they were Ready" in output
    assert "seen:     still tainted: node-1, node-2" in output


@pytest.mark.only_on("embedded")
async def test_an_interrupted_demo_leaves_no_process_behind(cluster_kind: str) -> None:
    demo = Demo("--cluster", cluster_kind)
    await demo.says("node-1", "untainted")
    demo.process.send_signal(signal.SIGINT)
    code, output = await demo.end(SECONDS[cluster_kind])
    assert code == 130
    assert output.endswith("interrupted, everything has been taken down\n")
    assert not demo.group_lives()


# On a cluster that is not ours


@pytest.fixture
async def guests_nodes(cluster: Cluster, kube: Kube) -> AsyncIterator[list[str]]:
    """Two nodes of somebody else's cluster that the demo may use."""
    names = ["somebodys-1", "somebodys-2"]
    for name in names:
        labels = {NODE_LABEL: "true", "kubernetes.io/hostname": name, "kwok.x-k8s.io/node": "fake"}
        metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        await kube.create("nodes", {"metadata": metadata})
    for name in names:
        await until(lambda name=name: _reports(kube, name))  # type: ignore[misc]
        await kube.patch("nodes", "", name, {"spec": {"taints": None}})
    yield names
    for name in names:
        await kube.delete("nodes", "", name)


async def _reports(kube: Kube, name: str) -> bool:
    conditions = (await kube.get("nodes", "", name))["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def _traces(kube: Kube, names: list[str]) -> Object:
    """Return all that the demo could leave behind or change."""
    namespaces = {namespace["metadata"]["name"] for namespace in await kube.list("namespaces")}
    nodes = {name: _touched(await kube.get("nodes", "", name)) for name in names}
    return {"nodes": nodes, "namespaces": namespaces, "pods": len(await kube.list("pods"))}


def _touched(node: Object) -> tuple[object, ...]:
    ours = {key for key in node["metadata"].get("annotations", {}) if "taintkeeper" in key}
    since = {each["type"]: (each["status"], each["lastTransitionTime"]) for each in node["status"]["conditions"]}
    return node["spec"].get("taints"), node["metadata"]["labels"], ours, since


async def test_a_guest_plays_and_leaves_everything_as_it_was(
    cluster: Cluster, kube: Kube, guests_nodes: list[str]
) -> None:
    before = await _traces(kube, guests_nodes)
    demo = Demo("--cluster", "kubeconfig", "--yes", kubeconfig=cluster.kubeconfig)
    code, _ = await demo.end(60.0)
    assert code == 0
    assert await _traces(kube, guests_nodes) == before


async def test_a_guest_that_is_interrupted_leaves_everything_as_it_was(
    cluster: Cluster, kube: Kube, guests_nodes: list[str]
) -> None:
    before = await _traces(kube, guests_nodes)
    demo = Demo("--cluster", "kubeconfig", "--yes", kubeconfig=cluster.kubeconfig)

    await demo.says("somebodys-1", "tainted")
    demo.process.send_signal(signal.SIGINT)
    code, _ = await demo.end(60.0)
    assert code == 130
    assert await _traces(kube, guests_nodes) == before


@pytest.mark.only_on("embedded")
async def test_a_guest_asks_first(cluster: Cluster, guests_nodes: list[str]) -> None:
    code, output = await Demo("--cluster", "kubeconfig", kubeconfig=cluster.kubeconfig).end(20.0)
    assert code == 2
    assert "taints one of these nodes maintenance=true:NoExecute" in output
    assert output.endswith("demo: there is no terminal to ask on: say --yes to agree to the above\n")


@pytest.mark.only_on("embedded")
@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"metadata": {"labels": {NODE_LABEL: None}}}, "1 nodes have the label, two are needed"),
        ({"spec": {"unschedulable": True}}, "must be ready, uncordoned and untainted: somebodys-1"),
    ],
)
async def test_a_guest_refuses_what_it_cannot_use(
    cluster: Cluster, kube: Kube, guests_nodes: list[str], patch: Object, why: str
) -> None:
    await kube.patch("nodes", "", guests_nodes[0], patch)
    demo = Demo("--cluster", "kubeconfig", "--yes", kubeconfig=cluster.kubeconfig)
    code, output = await demo.end(20.0)
    assert code == 2
    assert why in output
    assert output.count("\n") == 1


# What the checks find


class FixedClock(Clock):
    """A clock that shows what it is set to."""

    time = 0.0

    def now(self) -> float:
        return self.time


class Seen:
    """A record of one node under maintenance with one pod, that tolerates it for 5 s and has a budget of one."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.record = Record(self.clock)
        self.pod = manifests.batch("n")
        self.pod["metadata"]["uid"] = "uid"
        self.pod["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
        selector = {"matchLabels": {"app": "batch"}}
        self.budget: Object = {"metadata": {"name": "b"}, "spec": {"selector": selector}, "status": {}}
        self.record.take("nodes", {"metadata": {"name": "n"}, "spec": {}})
        self.record.take("pods", self.pod)
        self.forecast = forecasts(self.record, "n", manifests.MAINTENANCE, float("inf"))[0]
        self.record.set_by_hand("n", spelled(manifests.MAINTENANCE))
        self.record.take("nodes", {"metadata": {"name": "n"}, "spec": {"taints": [manifests.MAINTENANCE]}})

    def leaves(self, at: float, how: str = EVICTED) -> checks.Check:
        """Have the pod leave then, and check."""
        self.clock.time = at
        target = {"type": "DisruptionTarget", "status": "True", "reason": how}
        metadata = {**self.pod["metadata"], "deletionTimestamp": "now"}
        self.record.take("pods", {**self.pod, "metadata": metadata, "status": {"conditions": [target]}})
        return checks.outcome(self.record, self.forecast)


@pytest.mark.parametrize(("at", "ok"), [(4.9, False), (5.0, True), (6.5, True), (6.6, False)])
def test_a_pod_that_leaves_early_or_late_is_noticed(at: float, ok: bool) -> None:
    check = Seen().leaves(at)
    assert (check.ok, check.expected) == (ok, "evicted between 5 and 6.5 s after the taint")
    assert check.seen == f"evicted after {at:.2f} s"


def test_a_pod_that_is_deleted_past_its_budget_is_noticed() -> None:
    check = Seen().leaves(5.1, "DeletionByTaintManager")
    assert (check.ok, check.seen) == (False, "deleted (DeletionByTaintManager) after 5.10 s")


def test_a_broken_budget_is_noticed_however_short_it_was_broken() -> None:
    seen = Seen()
    seen.record.take("poddisruptionbudgets", seen.budget)
    seen.record.guard()
    assert checks.budget_kept(seen.record, "b", 1).ok
    seen.leaves(5.0)
    seen.record.take("pods", {**seen.pod, "metadata": {**seen.pod["metadata"], "uid": "another"}})
    assert checks.budget_kept(seen.record, "b", 1).seen == "the fewest were 0"


def test_a_pod_that_leaves_though_it_should_not_is_noticed() -> None:
    seen = Seen()
    seen.leaves(5.0)
    assert checks.only_these_left(seen.record, [seen.forecast]).ok
    check = checks.only_these_left(seen.record, [])
    assert (check.ok, check.seen) == (False, "1 pods left, also batch")
