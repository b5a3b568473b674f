"""The operator put together, without Kopf, against the embedded control plane over real HTTP."""

import asyncio
import gc
import signal
from collections.abc import Iterator

import pytest

from taintkeeper import runtime
from taintkeeper.controllers.node_health import NodeHealth
from taintkeeper.controllers.node_taint import NodeTaint
from taintkeeper.controllers.taint_eviction import TaintEviction
from testbed.client import Kube
from testbed.embedded import EmbeddedCluster
from testbed.embedded.access import Denial
from testbed.embedded.faults import Fault, Loss
from testbed.embedded.samples import sample_nodes, sample_pods
from tests.unit.runtime_bench import ACCOUNT, SECONDS, free_port, get, make, running, taint, until

CONTROLLERS = (NodeTaint, NodeHealth, TaintEviction)
EVICTING = {"nodes", "pods", "poddisruptionbudgets", "namespaces", "persistentvolumes", "evictionpolicies"}


@pytest.fixture(autouse=True)
def collector_as_it_was() -> Iterator[None]:
    """The operator switches the garbage collector off for its first lists."""
    yield
    gc.enable()
    gc.unfreeze()


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    """A cluster of two nodes with six pods."""
    monkeypatch.setattr(runtime, "ACCESS_SECONDS", 0.05)
    with EmbeddedCluster(bookmark_seconds=0.2, heartbeat_seconds=0.1, termination_seconds=0.05) as cluster:
        cluster.seed([*sample_nodes(2), *sample_pods(6, 2)])
        yield cluster


async def test_pods_are_evicted_from_a_tainted_node_and_people_are_told(embedded: EmbeddedCluster) -> None:
    async with running(embedded) as operator:
        await taint(embedded, operator)
        await until(lambda: len(embedded.objects("pods")) == 3)
        await until(lambda: len(embedded.objects("events")) >= 3)
    assert sorted(call.name for call in embedded.evictions) == ["pod-1", "pod-3", "pod-5"]
    told = [event for event in embedded.objects("events") if event["reason"] == "TaintManagerEviction"]
    assert sorted(event["message"] for event in told) == [
        f"Marking for deletion Pod default/pod-{number}" for number in (1, 3, 5)
    ]
    assert {event["source"]["component"] for event in told} == {"taintkeeper"}


async def test_a_dry_run_decides_but_writes_nothing(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    async with running(embedded, dry_run="true") as operator:
        await taint(embedded, operator)
        await until(lambda: sum("evicted" in line for line in caplog.messages) == 3)
    written = [kind for kind in embedded.requests if kind.method not in ("GET", "WATCH")]
    assert {kind.resource for kind in written} <= {"nodes", "selfsubjectaccessreviews"}
    assert len(embedded.objects("pods")) == 6
    assert embedded.objects("events") == []
    assert any("dry run: nothing is written" in line for line in caplog.messages)


@pytest.mark.parametrize(("least", "evicted"), [(6, 0), (5, 1), (4, 2), (0, 3)])
async def test_a_dry_run_evicts_as_many_pods_as_their_budget_allows(
    least: int, evicted: int, embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    async with running(embedded, dry_run="true") as operator, Kube(embedded.kubeconfig) as kube:
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "sample"}}}
        await kube.create("poddisruptionbudgets", {"metadata": {"name": "b", "namespace": "default"}, "spec": spec})
        assert operator._dry_writer is not None
        seen = operator._dry_writer._budgets._budgets
        await until(lambda: any(b is not None and b.allowed == 6 - least for b in [seen.get("default", "b")]))
        await taint(embedded, operator)
        await until(lambda: _told(caplog, "evicted,") + _told(caplog, "held by disruption budget default/b") == 3)
        assert operator.health() == {"engine": None}
    assert _told(caplog, "evicted,") == evicted
    assert embedded.evictions == []


def _told(caplog: pytest.LogCaptureFixture, words: str) -> int:
    return sum(words in line for line in caplog.messages)


async def test_a_dry_run_needs_no_permission_to_write(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    for permission in (*runtime.EVENT_PERMISSIONS, *(each for those in CONTROLLERS for each in those.permissions)):
        if permission.verb not in ("get", "list", "watch"):
            embedded.access.deny(
                Denial(
                    verb=permission.verb,
                    resource=permission.resource,
                    group=permission.group,
                    subresource=permission.subresource,
                )
            )
    async with running(embedded, dry_run="true") as operator:
        await taint(embedded, operator)
        await until(lambda: _told(caplog, "evicted,") == 3)


async def test_a_dry_run_needs_permission_to_read(embedded: EmbeddedCluster) -> None:
    embedded.access.deny(Denial(verb="get", resource="nodes"))
    operator = make(embedded, dry_run="true")
    waiting = asyncio.create_task(operator.wait_for_access())
    await until(lambda: operator.readiness()["access"] == "permission is missing to get nodes")
    waiting.cancel()
    await operator.stop()


async def test_what_was_decided_last_is_told_before_we_leave(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(embedded) as operator:
        monkeypatch.setattr(operator._events, "_busy", lambda: True)
        await taint(embedded, operator)
        await until(lambda: len(embedded.objects("pods")) == 3)
        assert embedded.objects("events") == []
    assert _events(embedded) == ["EvictionsIssued", *["TaintManagerEviction"] * 3]


async def test_what_is_accepted_while_we_leave_is_told(embedded: EmbeddedCluster) -> None:
    slow = Fault(method="POST", path="/eviction$", delay_seconds=0.5)
    embedded.faults.add(slow)
    async with running(embedded) as operator:
        await taint(embedded, operator)
        await until(lambda: slow.hits == 3)
        assert embedded.evictions == []
    assert [call.code for call in embedded.evictions] == [201] * 3
    assert _events(embedded) == ["EvictionsIssued", *["TaintManagerEviction"] * 3]


def _events(embedded: EmbeddedCluster) -> list[str]:
    return sorted(event["reason"] for event in embedded.objects("events"))


async def test_a_dry_run_goes_by_what_it_would_have_written(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    async with running(embedded, dry_run="true") as operator:
        pressure = {"conditions": [{"type": "DiskPressure", "status": "True"}]}
        for turn in range(3):
            async with Kube(embedded.kubeconfig) as kube:
                await kube.patch_status("nodes", "", "node-1", pressure)
                node = await kube.patch("nodes", "", "node-1", {"metadata": {"labels": {"turn": str(turn)}}})
            operator.node_event({"type": "MODIFIED", "object": node})
            await asyncio.sleep(0.05)
        assert operator._controllers.eviction is not None
        assert operator._controllers.eviction._engine.queue._options.confirm_seconds == float("inf")
    assert ["disk-pressure:NoSchedule added" in line for line in caplog.messages].count(True) == 1


@pytest.mark.parametrize(
    ("environment", "own"),
    [
        ({"POD_NAMESPACE": "a", "POD_NAME": "b"}, ("a", "b")),
        ({"POD_NAME": "b"}, None),
        ({"POD_NAMESPACE": "a"}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_it_knows_its_own_pod_which_goes_last(
    environment: dict[str, str], own: object, embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("POD_NAMESPACE", "POD_NAME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    operator = make(embedded)
    assert operator._controllers.eviction is not None
    assert operator._controllers.eviction._engine.queue._options.own == own
    await operator.stop()


@pytest.mark.parametrize(
    ("controllers", "watched"),
    [
        ("node-taint", {"nodes", "nodetaintrules"}),
        ("node-health", {"nodes", "pods", "leases"}),
        ("taint-eviction", EVICTING),
        ("*", EVICTING | {"leases", "nodetaintrules"}),
    ],
)
async def test_only_what_the_chosen_controllers_need_is_asked_for(
    controllers: str, watched: set[str], embedded: EmbeddedCluster
) -> None:
    async with running(embedded, controllers=controllers):
        pass
    read = {kind.resource for kind in embedded.requests if kind.method in ("GET", "WATCH")}
    assert read == watched | {"events"}


@pytest.mark.reported("planetlabs/draino#104")
async def test_a_missing_permission_is_named_and_waited_for(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    denials = [Denial(verb="create", resource="pods", subresource="eviction"), Denial(verb="patch", resource="events")]
    for denial in denials:
        embedded.access.deny(denial)
    operator = make(embedded)
    assert operator.readiness()["access"] == "not checked yet"
    waiting = asyncio.create_task(operator.wait_for_access())
    missing = "permission is missing to create pods/eviction, patch events"
    await until(lambda: operator.readiness()["access"] == missing)
    await asyncio.sleep(0.3)
    assert [line for line in caplog.messages if missing in line] == [f"{missing}; trying again every 0 s"]
    for denial in denials:
        embedded.access.allow(denial)
    await asyncio.wait_for(waiting, SECONDS)
    assert operator.readiness()["access"] is None
    await operator.stop()


@pytest.mark.parametrize(
    ("fault", "words"),
    [(Fault(loss=Loss.BEFORE, times=3), "cannot be used"), (Fault(status=500, times=3), "cannot be used: 500")],
    ids=["nobody answers", "500"],
)
async def test_an_api_server_that_cannot_be_used_is_waited_for(
    fault: Fault, words: str, embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    embedded.faults.add(fault)
    async with running(embedded):
        pass
    assert any("the API server at http://127.0.0.1:" in line and words in line for line in caplog.messages)


async def test_probes_and_metrics_are_served_from_the_start(embedded: EmbeddedCluster) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    operator = make(embedded, metrics_bind_address=address, health_probe_bind_address=address)
    await operator.start()
    before = [await get(port, path) for path in ("/healthz", "/readyz")]
    await operator.wait_for_access()
    operator.serve()
    await until(lambda: not any(operator.readiness().values()))
    after = [await get(port, path) for path in ("/healthz", "/readyz")]
    metrics = await get(port, "/metrics")
    await operator.stop()
    assert [status for status, _ in before + after] == [200, 503, 200, 200]
    assert before[1][1] == (
        "[+]engine ok\n[-]access: not checked yet\n"
        "[-]watches: evictionpolicies, leases, namespaces, nodes, nodetaintrules, persistentvolumes, "
        "poddisruptionbudgets, pods not up to date\n"
    )
    assert "taintkeeper_knowledge_fresh 1.0" in metrics[1]
    assert 'taintkeeper_api_request_duration_seconds_count{code="200",resource="nodes",verb="list"}' in metrics[1]


async def test_a_watch_that_breaks_is_told_and_taken_up_again(
    embedded: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(embedded) as operator:
        assert embedded.inject_watch_error(500, "pods") == 1
        await until(lambda: operator.readiness()["watches"] == "pods not up to date")
        assert operator.health() == {"engine": None}
        await until(lambda: operator.readiness()["watches"] is None)
    assert any(line.startswith("pods cannot be watched, nothing is decided meanwhile: 500") for line in caplog.messages)


@pytest.mark.parametrize("abruptly", [False, True])
async def test_what_happened_while_a_watch_was_cut_is_not_missed(embedded: EmbeddedCluster, abruptly: bool) -> None:
    async with running(embedded) as operator:
        embedded.cut_watches("pods", abruptly=abruptly)
        embedded.seed(sample_pods(8, 2, namespace="kube-system"))
        await taint(embedded, operator)
        await until(lambda: len(embedded.evictions) == 7)


@pytest.mark.parametrize("initial_events", [False, True], ids=["in pages", "streamed"])
async def test_a_history_that_was_forgotten_is_made_up_for(embedded: EmbeddedCluster, initial_events: bool) -> None:
    embedded.refuse_initial_events(refuse=not initial_events)
    async with running(embedded) as operator:
        embedded.seed(sample_pods(4, 2, namespace="kube-system"))
        embedded.forget_history()
        embedded.cut_watches("pods", abruptly=True)
        await taint(embedded, operator)
        await until(lambda: len(embedded.evictions) == 5)


async def test_a_token_that_was_rotated_is_read_again(embedded: EmbeddedCluster) -> None:
    kubeconfig = embedded.kubeconfig_for(*ACCOUNT)
    async with running(embedded, kubeconfig=str(kubeconfig)) as operator:
        embedded.rotate_token(kubeconfig)
        await taint(embedded, operator)
        await until(lambda: len(embedded.objects("pods")) == 3)
        assert operator.health() == {"engine": None}


async def test_a_fault_of_ours_ends_the_process_and_fails_the_probe(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signals: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", signals.append)

    def broken(_: object) -> None:
        raise ZeroDivisionError("a fault")

    async with running(embedded) as operator:
        monkeypatch.setattr(operator._views, "_feed", lambda _resource, event: broken(event))
        embedded.seed(sample_pods(8, 2, namespace="kube-system"))
        await until(lambda: bool(signals))
        assert operator.health() == {"engine": "failed: a fault"}
        assert isinstance(operator.failure, ZeroDivisionError)
    assert signals == [signal.SIGTERM]
    assert [line for line in caplog.messages if "internal error" in line] == [
        "internal error, ending: ZeroDivisionError('a fault')"
    ]


async def test_only_the_first_fault_counts(embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", signals.append)
    operator = make(embedded)
    first = KeyError("first")
    for error in (first, KeyError("second")):
        operator._crashed(error)
    assert (operator.failure, signals) == (first, [signal.SIGTERM])
    await operator.stop()


async def test_the_collector_is_off_for_the_first_lists_and_on_again_after_them(embedded: EmbeddedCluster) -> None:
    operator = make(embedded)
    await operator.wait_for_access()
    operator.serve()
    assert not gc.isenabled()
    await until(gc.isenabled)
    assert operator.readiness()["watches"] is None
    assert gc.get_freeze_count() > 0
    await operator.stop()


async def test_stopping_leaves_no_task_and_no_connection(embedded: EmbeddedCluster) -> None:
    before = asyncio.all_tasks()
    async with running(embedded):
        pass
    await asyncio.sleep(0.05)
    assert asyncio.all_tasks() == before
