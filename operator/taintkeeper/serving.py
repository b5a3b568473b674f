"""Serves metrics and probes over HTTP, for Prometheus and the kubelet."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

Address = tuple[str, int]
Checks = Callable[[], Mapping[str, str | None]]
"""Returns each check's name with what is wrong, or None where all is well."""


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
        """Serve ``/metrics`` and ``/healthz``, ``/readyz``; raises OSError where an address is taken."""
        routes: dict[Address, list[web.RouteDef]] = {}
        if metrics is not None:
            routes.setdefault(metrics, []).append(web.get("/metrics", _metrics_handler(registry)))
        if probes is not None:
            probe_routes = [web.get("/healthz", _probe_handler(healthy)), web.get("/readyz", _probe_handler(ready))]
            routes.setdefault(probes, []).extend(probe_routes)
        for address, handlers in routes.items():
            await self._serve(address, handlers)

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
        try:
            await web.TCPSite(runner, host or None, port).start()
        except UnicodeError as error:
            raise OSError(f"{host!r} is no name of a host") from error


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
