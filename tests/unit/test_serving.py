"""Probes and metrics over HTTP."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from taintkeeper.serving import Address, AddressError, Servers

Checks = dict[str, str | None]


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def no_checks() -> Mapping[str, str | None]:
    return {}


@asynccontextmanager
async def serving(
    metrics: Address | None, probes: Address | None, healthy: Checks | None = None, ready: Checks | None = None
) -> AsyncIterator[None]:
    registry = CollectorRegistry()
    Counter("taintkeeper_test", "A test.", registry=registry)
    servers = Servers()
    try:
        await servers.start(
            metrics=metrics,
            probes=probes,
            registry=registry,
            healthy=lambda: healthy or {},
            ready=lambda: ready or {},
        )
        yield
    finally:
        await servers.stop()


async def get(port: int, path: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{port}{path}", headers=headers) as answer,
    ):
        return answer.status, await answer.text(), answer.headers["Content-Type"]


@pytest.mark.parametrize(
    ("checks", "status", "body"),
    [
        pytest.param({"engine": None}, 200, "[+]engine ok\n", id="well"),
        pytest.param({"engine": "failed: x"}, 503, "[-]engine: failed: x\n", id="not well"),
        pytest.param(
            {"engine": None, "access": "permission is missing to list pods", "watches": None},
            503,
            "[+]engine ok\n[-]access: permission is missing to list pods\n[+]watches ok\n",
            id="one of several",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_probe_names_each_check_and_what_is_wrong(path: str, checks: Checks, status: int, body: str) -> None:
    port = free_port()
    healthy, ready = (checks, {}) if path == "/healthz" else ({}, checks)
    async with serving(None, ("127.0.0.1", port), healthy, ready):
        assert await get(port, path) == (status, body, "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/plain; version="),
        ("text/plain", "text/plain; version="),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0"),
    ],
)
async def test_metrics_are_served_in_the_format_that_is_asked_for(accept: str, kind: str) -> None:
    port = free_port()
    async with serving(("127.0.0.1", port), None):
        status, body, content_type = await get(port, "/metrics", Accept=accept)
    assert status == 200
    assert content_type.startswith(kind)
    assert "taintkeeper_test_total 0.0" in body
    assert body.endswith("# EOF\n") is kind.startswith("application/openmetrics")


async def test_one_address_may_serve_everything() -> None:
    port = free_port()
    address = ("127.0.0.1", port)
    async with serving(address, address):
        assert [(await get(port, path))[0] for path in ("/metrics", "/healthz", "/readyz")] == [200, 200, 200]


async def test_each_address_serves_only_what_belongs_there() -> None:
    one, other = free_port(), free_port()
    async with serving(("127.0.0.1", one), ("127.0.0.1", other)):
        found = [
            (await get(port, path))[0] for port in (one, other) for path in ("/metrics", "/healthz", "/readyz", "/")
        ]
    assert found == [200, 404, 404, 404, 404, 200, 200, 404]


@pytest.mark.parametrize(("host", "asked"), [("", "127.0.0.1"), ("::1", "[::1]"), ("localhost", "localhost")])
async def test_an_address_may_have_any_kind_of_host(host: str, asked: str) -> None:
    port = free_port()
    async with serving(None, (host, port)):
        assert (await get(port, "/healthz", host=asked))[0] == 200


async def test_nothing_is_served_where_nothing_was_asked_for() -> None:
    async with serving(None, None):
        pass


@pytest.mark.parametrize("taken", ["metrics", "probes"])
async def test_an_address_that_is_taken_is_an_error_and_leaves_nothing_behind(taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        busy, free = ("127.0.0.1", other.getsockname()[1]), ("127.0.0.1", free_port())
        with pytest.raises(AddressError) as caught:
            async with serving(busy if taken == "metrics" else free, busy if taken == "probes" else free):
                pytest.fail("it must not start")
    flag = "metrics" if taken == "metrics" else "health-probe"
    assert str(caught.value) == f"--{flag}-bind-address: '127.0.0.1:{busy[1]}' cannot be served: Address already in use"
    with socket.create_server(free):
        pass


async def test_an_address_for_everything_that_is_taken_is_told_with_both_flags() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        busy = ("::1", other.getsockname()[1])
        with pytest.raises(AddressError) as caught:
            async with serving(busy, busy):
                pytest.fail("it must not start")
    assert str(caught.value).startswith(
        f"--metrics-bind-address and --health-probe-bind-address: '[::1]:{busy[1]}' cannot be served: "
    )


async def test_a_port_that_is_taken_on_every_host_is_told_as_it_was_given() -> None:
    with socket.create_server(("0.0.0.0", 0)) as other:
        busy = ("", other.getsockname()[1])
        with pytest.raises(AddressError, match=rf"^--metrics-bind-address: ':{busy[1]}' cannot be served: Address al"):
            async with serving(busy, None):
                pytest.fail("it must not start")


async def test_a_check_that_raises_fails_the_probe_and_nothing_else() -> None:
    port = free_port()
    servers = Servers()

    def broken() -> Mapping[str, str | None]:
        raise RuntimeError

    address = ("127.0.0.1", port)
    await servers.start(metrics=None, probes=address, registry=CollectorRegistry(), healthy=broken, ready=no_checks)
    assert [(await get(port, path))[0] for path in ("/healthz", "/readyz")] == [500, 200]
    await servers.stop()
