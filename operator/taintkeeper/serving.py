"""Serves metrics and probes over HTTP, for Prometheus and the kubelet."""

import os
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

Address = tuple[str, int]
Checks = Callable[[], Mapping[str, str | None]]
"""Returns each check's name with what is wrong, or None where all is well."""


class AddressError(OSError):
    """An address cannot be served; the message names the flag, the address and what is wrong."""


class Servers:
    """The HTTP servers of the process; each address is served once, with all that belongs there."""

    def __init__(self) -> None:
        self._runners: list[web.AppRunner] = []

    async def start(
        self,
        *,
        metrics: Address | None,
        probes: Address | None,
        registry: CollectorRegistry,
        healthy: Checks,
        ready: Checks,
    ) -> None:
        """Serve ``/metrics`` and ``/healthz``, ``/readyz``; raises :class:`AddressError` where an address is taken."""
        wanted = [
            ("--metrics-bind-address", metrics, [web.get("/metrics", _metrics_handler(registry))]),
            (
                "--health-probe-bind-address",
                probes,
                [web.get("/healthz", _probe_handler(healthy)), web.get("/readyz", _probe_handler(ready))],
            ),
        ]
        for address in dict.fromkeys(address for _, address, _ in wanted if address is not None):
            here = [(flag, routes) for flag, where, routes in wanted if where == address]
            try:
                await self._serve(address, [route for _, routes in here for route in routes])
            except OSError as error:
                raise _unusable(" and ".join(flag for flag, _ in here), address, error) from error

    async def stop(self) -> None:
        """Close every server."""
        for runner in self._runners:
            await runner.cleanup()

    async def _serve(self, address: Address, routes: list[web.RouteDef]) -> None:
        app = web.Application()
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        host, port = address
        await web.TCPSite(runner, host or None, port).start()


def _unusable(flags: str, address: Address, error: OSError) -> AddressError:
    host, port = address
    text = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    match error:
        case OSError(errno=int(number)) if number > 0:
            # The event loop's own words name the address once more.
            why = os.strerror(number)
        case _:
            why = error.strerror or str(error)
    return AddressError(f"{flags}: {text!r} cannot be served: {why}")


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _metrics_handler(registry: CollectorRegistry) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return handle


def _probe_handler(checks: Checks) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        results = checks()
        lines = [f"[-]{name}: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in results.items()]
        failed = any(results.values())
        return web.Response(text="\n".join(lines) + "\n", status=503 if failed else 200)

    return handle
