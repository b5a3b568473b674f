"""Rivals as they are noticed and told: event, log line, metric."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from random import Random
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from taintkeeper.cluster.client import ApiClient, Call, UnreachableError
from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_writer import DryCustomWriter
from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.cluster.writer import Writer
from taintkeeper.controllers.rivals import Rivals
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core.rivals import NODE_LIFECYCLE, TAINT_EVICTION, Rival

pytestmark = pytest.mark.looptime

HOUR = 3600.0


class SilentApi(ApiClient):
    """An API server that cannot be reached."""

    def __init__(self) -> None:
        self.selectors: list[str] = []

    async def send(self, call: Call) -> object:  # type: ignore[override]
        self.selectors.append((call.params or {})["fieldSelector"])
        raise UnreachableError("nobody there")


class Bench:
    """The controller, and all that it told."""

    def __init__(self, *rivals: Rival, own: tuple[str, str] | None = None) -> None:
        self.notices: list[Notice] = []
        self.crashes: list[BaseException] = []
        self.registry = CollectorRegistry()
        self.clock = SteadyClock()
        self.api = SilentApi()
        around = Surroundings(
            writer=cast("Writer", None),
            custom_writer=DryCustomWriter(),
            send=self.notices.append,
            registry=self.registry,
            clock=self.clock,
            random=Random(1),
            crashed=self.crashes.append,
            stalled=lambda _: None,
        )
        self.rivals = Rivals(rivals, around, self.api, own)

    def sign(self, rival: Rival) -> None:
        """Have a rival's watch tell of an event."""
        self.rivals._signed(rival, "event TaintManagerEviction on Pod a/b: Marking for deletion Pod a/b")

    def metric(self, name: str, rival: Rival) -> float | None:
        return self.registry.get_sample_value(f"taintkeeper_rival_{name}", {"controller": rival.name})


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("rival", [TAINT_EVICTION, NODE_LIFECYCLE], ids=lambda rival: rival.name)
async def test_a_rival_is_named_with_what_it_does_and_how_to_switch_it_off(
    rival: Rival, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(rival)
    bench.sign(rival)
    (notice,) = bench.notices
    (line,) = warnings(caplog)
    assert (notice.type, notice.reason) == ("Warning", "RivalController")
    for text in (notice.message, line):
        assert f"kube-controller-manager's {rival.name} is running too, so that {rival.harm}." in text
        assert f"--controllers=*,-{rival.name}" in text
    assert "Marking for deletion Pod a/b" in line


async def test_what_is_told_again_is_the_same_event_so_that_its_count_goes_up() -> None:
    bench = Bench(TAINT_EVICTION)
    for _ in range(3):
        bench.sign(TAINT_EVICTION)
        await asyncio.sleep(601.0)
    assert len(bench.notices) == 3
    assert len(set(bench.notices)) == 1


@pytest.mark.parametrize(
    ("own", "subject"),
    [
        (("taintkeeper", "taintkeeper-1"), Subject("Pod", "taintkeeper-1", "", "taintkeeper")),
        (None, Subject("Namespace", "kube-system", "")),
    ],
    ids=["in a pod", "elsewhere"],
)
async def test_people_are_told_where_they_look(own: tuple[str, str] | None, subject: Subject) -> None:
    bench = Bench(TAINT_EVICTION, own=own)
    bench.sign(TAINT_EVICTION)
    assert [notice.subject for notice in bench.notices] == [subject]


async def test_a_rival_is_seen_in_the_metrics_until_it_has_been_quiet_for_an_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    bench = Bench(TAINT_EVICTION, NODE_LIFECYCLE)
    assert bench.metric("seen", TAINT_EVICTION) == 0
    assert bench.metric("last_seen_timestamp_seconds", TAINT_EVICTION) is None
    bench.sign(TAINT_EVICTION)
    last = bench.clock()
    await asyncio.sleep(HOUR - 1.0)
    assert bench.metric("seen", TAINT_EVICTION) == 1
    assert bench.metric("seen", NODE_LIFECYCLE) == 0
    await asyncio.sleep(2.0)
    assert bench.metric("seen", TAINT_EVICTION) == 0
    assert bench.metric("last_seen_timestamp_seconds", TAINT_EVICTION) == pytest.approx(last)
    assert caplog.messages[-1] == ("kube-controller-manager's taint-eviction-controller has given no sign for an hour")


async def test_nothing_is_asked_about_a_controller_that_is_no_rival() -> None:
    bench = Bench(TAINT_EVICTION)
    assert bench.metric("seen", NODE_LIFECYCLE) is None
    await run(*bench.rivals.tasks().values())
    assert set(bench.api.selectors) == {"reportingComponent=taint-eviction-controller"}


async def test_a_rival_that_could_go_unnoticed_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(NODE_LIFECYCLE)
    await run(*bench.rivals.tasks().values())
    assert len(bench.api.selectors) > 1
    assert warnings(caplog) == [
        "events of node-controller cannot be watched, so that nobody would notice it: nobody there"
    ]


async def test_nothing_is_told_once_it_is_stopped() -> None:
    bench = Bench(TAINT_EVICTION)
    await bench.rivals.stop()
    bench.sign(TAINT_EVICTION)
    assert bench.notices == []


async def run(*works: Callable[[], Awaitable[None]]) -> None:
    """Let tasks run for a minute."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(60.0):
            await asyncio.gather(*(work() for work in works))


def changed_by_kcm(key: str) -> dict[str, object]:
    managed = [{"manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:taints": {}}}}]
    node = {"metadata": {"name": "node-1", "managedFields": managed}, "spec": {"taints": [{"key": key}]}}
    return {"type": "MODIFIED", "object": node}


@pytest.mark.parametrize(
    ("rivals", "told"),
    [((NODE_LIFECYCLE, TAINT_EVICTION), [NODE_LIFECYCLE.name]), ((TAINT_EVICTION,), [])],
    ids=["we taint", "it is left to taint"],
)
async def test_taints_that_kube_controller_manager_writes_tell_of_its_node_lifecycle_controller(
    rivals: tuple[Rival, ...], told: list[str]
) -> None:
    bench = Bench(*rivals)
    for key in ("a", "b"):
        bench.rivals.node_event(changed_by_kcm(key))
    assert [name for name in told for notice in bench.notices if f"{name} is running" in notice.message] == told
    assert len(bench.notices) == len(told)
