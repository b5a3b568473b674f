"""Permissions that vanish while the operator runs, and come back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.client import ApiClient, Call, Reply, StatusError, UnreachableError
from taintkeeper.controllers.permissions import Permissions

pytestmark = pytest.mark.looptime

EVICT = Permission("create", "pods", subresource="eviction")
BUDGETS = Permission("list", "poddisruptionbudgets", group="policy")
NODES = Permission("patch", "nodes")
MISSING = "permission is missing to create pods/eviction"


class Reviewer(ApiClient):
    """An API server that grants everything but what is denied; it notes when it was asked."""

    def __init__(self) -> None:
        self.denied: set[str] = set()
        self.broken: Reply | Exception | None = None
        self.asked: list[float] = []

    async def send(self, call: Call) -> Reply:
        self.asked.append(asyncio.get_running_loop().time())
        if isinstance(self.broken, Exception):
            raise self.broken
        if self.broken is not None:
            return self.broken
        attributes: dict[str, Any] = call.body["spec"]["resourceAttributes"]
        key = f"{attributes['verb']} {attributes['resource']}"
        key += f" in {attributes['namespace']}" if attributes.get("namespace") else ""
        return Reply(201, msgspec.json.encode({"status": {"allowed": key not in self.denied}}), {})

    def checks(self) -> list[float]:
        """When all permissions were asked for."""
        return sorted(set(self.asked))


class Bench:
    """The permissions at work."""

    def __init__(self) -> None:
        self.api = Reviewer()
        self.registry = CollectorRegistry()
        self.permissions = Permissions(self.api, {EVICT, BUDGETS, NODES}, self.registry, Random(1))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.permissions.check()
        task = asyncio.create_task(self.permissions.run())
        yield
        assert not task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def metric(self, verb: str, resource: str) -> float | None:
        labels = {"verb": verb, "resource": resource}
        return self.registry.get_sample_value("taintkeeper_permission_missing", labels)


async def test_what_is_needed_is_asked_for_again_every_five_minutes() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(1000.0)
    assert bench.api.checks() == [0.0, 300.0, 600.0, 900.0]


@pytest.mark.reported("planetlabs/draino#104")
async def test_a_permission_that_vanishes_is_named_and_one_that_is_back_is_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "taintkeeper")
    bench = Bench()
    async with bench.running():
        assert bench.permissions.missing is None
        bench.api.denied = {"create pods"}
        await asyncio.sleep(350.0)
        assert bench.permissions.missing == MISSING
        assert bench.metric("create", "pods/eviction") == 1
        assert bench.metric("list", "poddisruptionbudgets.policy") == 0
        assert bench.metric("patch", "nodes") == 0
        bench.api.denied = set()
        await asyncio.sleep(11.0)
        assert bench.permissions.missing is None
        assert bench.metric("create", "pods/eviction") == 0
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [
        ("ERROR", f"{MISSING}; trying again every 10 s"),
        ("INFO", "all permissions are there again"),
    ]


@pytest.mark.parametrize("denied", ["a", "b"])
async def test_the_metric_tells_of_kinds_whatever_single_object_is_concerned(denied: str) -> None:
    api = Reviewer()
    api.denied = {f"patch leases in {denied}"}
    registry = CollectorRegistry()
    leases = {Permission("patch", "leases", "coordination.k8s.io", namespace=each, name="one") for each in "ab"}
    await Permissions(api, leases, registry, Random(1)).check()
    labels = {"verb": "patch", "resource": "leases.coordination.k8s.io"}
    assert registry.get_sample_value("taintkeeper_permission_missing", labels) == 1


async def test_another_permission_that_vanishes_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.api.denied = {"create pods"}
    async with bench.running():
        bench.api.denied |= {"patch nodes"}
        await asyncio.sleep(60.0)
    assert [line.partition(";")[0] for line in caplog.messages] == [f"{MISSING}, patch nodes"]


async def test_a_refused_request_has_them_checked_at_once() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(100.0)
        bench.api.denied = {"patch nodes"}
        bench.permissions.requested("nodes", 403)
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.1)
        assert bench.permissions.missing == "permission is missing to patch nodes"


@pytest.mark.parametrize("status", [0, 200, 401, 404, 409, 429, 500])
async def test_no_other_answer_has_them_checked(status: int) -> None:
    bench = Bench()
    async with bench.running():
        bench.permissions.requested("pods/eviction", status)
        await asyncio.sleep(100.0)
    assert bench.api.checks() == [0.0]


async def test_refusals_for_other_reasons_cost_few_questions() -> None:
    bench = Bench()
    async with bench.running():
        for _ in range(3600):
            bench.permissions.requested("pods/eviction", 403)
            await asyncio.sleep(1.0)
    checks = bench.api.checks()
    assert len(checks) < 75
    assert min(after - before for before, after in zip(checks[-10:], checks[-9:], strict=False)) >= 60.0


async def test_after_a_time_without_refusals_the_next_is_looked_into_soon() -> None:
    bench = Bench()
    async with bench.running():
        for _ in range(600):
            bench.permissions.requested("pods/eviction", 403)
            await asyncio.sleep(1.0)
        await asyncio.sleep(1000.0)
        bench.permissions.requested("nodes", 403)
        await asyncio.sleep(3.0)
        bench.permissions.requested("nodes", 403)
        await asyncio.sleep(6.0)
        assert len([at for at in bench.api.checks() if at >= 1600.0]) == 2


async def test_one_who_may_not_even_ask_does_not_ask_in_circles() -> None:
    bench = Bench()
    async with bench.running():
        bench.permissions.requested("selfsubjectaccessreviews", 403)
        await asyncio.sleep(100.0)
    assert bench.api.checks() == [0.0]


@pytest.mark.parametrize(
    "broken",
    [UnreachableError("nobody there"), Reply(403, b"{}", {}), Reply(200, b"<html>", {})],
    ids=["nobody answers", "403", "a proxy's page"],
)
@pytest.mark.parametrize("denied", [set(), {"create pods"}], ids=["nothing missing", "something missing"])
async def test_where_there_is_no_verdict_the_last_one_stands(broken: Reply | Exception, denied: set[str]) -> None:
    bench = Bench()
    bench.api.denied = denied
    async with bench.running():
        before = bench.permissions.missing
        bench.api.broken = broken
        await asyncio.sleep(400.0)
        assert bench.permissions.missing == before
        with pytest.raises((UnreachableError, StatusError, msgspec.DecodeError)):
            await bench.permissions.check()
        bench.api.broken, bench.api.denied = None, set()
        await asyncio.sleep(310.0)
        assert bench.permissions.missing is None
