"""The HTTP side: faults first, then authentication, authorization and the operation; watches are streamed."""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from typing import Any

import msgspec
from aiohttp import web

from testbed.embedded.access import Access
from testbed.embedded.discovery import PLAIN_PATHS, discover, is_served_group
from testbed.embedded.dispatch import JSON, Answer, Dispatcher
from testbed.embedded.failures import Failure, generic
from testbed.embedded.faults import EvictionCall, Fault, Faults, Journal, Loss, RequestKind
from testbed.embedded.listing import Lister
from testbed.embedded.registry import Registry
from testbed.embedded.resources import ACCESS_REVIEWS, Kind
from testbed.embedded.routes import Route, parse_path
from testbed.embedded.store import Store
from testbed.embedded.watching import Watch, WatchSettings

JSON_HEADERS = {"Content-Type": JSON}
TEXT_HEADERS = {"Content-Type": "text/plain; charset=utf-8"}


class ApiServer:
    """The API as one aiohttp handler."""

    def __init__(self, store: Store, registry: Registry, bookmark_seconds: float) -> None:
        self.access = Access()
        self.faults = Faults()
        self.journal = Journal()
        self.lister = Lister(store)
        self.watch_settings = WatchSettings(bookmark_seconds)
        self._store = store
        self._dispatcher = Dispatcher(registry, self.lister, self.access)
        self._watches: set[Watch] = set()

    def watches(self, kinds: Iterable[Kind]) -> list[Watch]:
        """Return the watches of these kinds that are open now."""
        wanted = set(kinds)
        return [watch for watch in self._watches if watch.kind in wanted]

    def end_watches(self) -> None:
        """End every watch, in good order."""
        for watch in self._watches:
            watch.end()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        route = parse_path(request.path)
        body = await request.read()
        fault = self.faults.take(request.method, request.path_qs)
        if fault is not None and fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault is not None and fault.loss is not Loss.AFTER and (fault.loss is Loss.BEFORE or fault.status):
            return self._misbehave(request, route, body, fault)
        if route is not None and _is_watch(request, route):
            return await self._watch(request, route)
        code, content, headers = self._answer(request, route, body)
        lost = fault is not None and fault.loss is Loss.AFTER
        self._record(request, route, body, 0 if lost else code)
        response = web.Response(status=code, body=content, headers=headers)
        if lost:
            _drop(request)
        return response

    def _misbehave(
        self, request: web.BaseRequest, route: Route | None, body: bytes, fault: Fault
    ) -> web.StreamResponse:
        self._record(request, route, body, fault.status or 0)
        if fault.status is None or fault.loss is Loss.BEFORE:
            _drop(request)
            return web.Response()
        content = fault.body if fault.body is not None else generic(fault.status).body()
        headers = {**JSON_HEADERS, **fault.headers}
        return web.Response(status=fault.status, body=msgspec.json.encode(content), headers=headers)

    def _answer(self, request: web.BaseRequest, route: Route | None, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if request.path in PLAIN_PATHS:
            return 200, b"ok", TEXT_HEADERS
        try:
            user = self.access.user_of(request.headers.get("Authorization", ""))
            if route is not None:
                return *self._carry_out(request, route, body, user), JSON_HEADERS
        except Failure as failure:
            return _failed(failure)
        document = discover(request.path.rstrip("/"))
        if document is not None:
            return 200, msgspec.json.encode(document), JSON_HEADERS
        if is_served_group(request.path):
            return _failed(generic(404))
        return 404, b"404 page not found\n", TEXT_HEADERS

    def _carry_out(self, request: web.BaseRequest, route: Route, body: bytes, user: str) -> Answer:
        if route.kind is not ACCESS_REVIEWS:
            self.access.check(route.call(request.method, watch=False), user, route.kind)
        content_type = request.headers.get("Content-Type", "")
        return self._dispatcher.carry_out(request.method, route, request.query, content_type, body, user)

    async def _watch(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        try:
            user = self.access.user_of(request.headers.get("Authorization", ""))
            self.access.check(route.call("GET", watch=True), user, route.kind)
            watch = Watch(self._store, self.watch_settings, route.kind, route.namespace, request.query)
        except Failure as failure:
            self._record(request, route, b"", failure.code)
            code, content, headers = _failed(failure)
            return web.Response(status=code, body=content, headers=headers)
        self._record(request, route, b"", 200)
        return await self._stream(request, watch)

    async def _stream(self, request: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(headers=JSON_HEADERS)
        response.enable_chunked_encoding()
        self._watches.add(watch)
        try:
            await response.prepare(request)
            async with contextlib.aclosing(watch.lines()) as lines:
                async for chunk in lines:
                    if request.transport is None or request.transport.is_closing():
                        break
                    if chunk:
                        await response.write(chunk)
            if watch.abrupt_end:
                _drop(request)
        except ConnectionError:
            pass  # the client has left, which is how most watches end
        finally:
            self._watches.discard(watch)
        return response

    def _record(self, request: web.BaseRequest, route: Route | None, body: bytes, code: int) -> None:
        if route is None:
            return
        method = "WATCH" if _is_watch(request, route) else request.method
        self.journal.count(RequestKind(method, route.kind.plural, route.subresource, code))
        if route.subresource == "eviction":
            uid = _precondition_uid(body)
            self.journal.record_eviction(EvictionCall(time.monotonic(), route.namespace, route.name, uid, code))


def _failed(failure: Failure) -> tuple[int, bytes, dict[str, str]]:
    seconds = (failure.details or {}).get("retryAfterSeconds")
    headers = {**JSON_HEADERS, "Retry-After": str(seconds)} if seconds else JSON_HEADERS
    return failure.code, msgspec.json.encode(failure.body()), headers


def _is_watch(request: web.BaseRequest, route: Route) -> bool:
    return request.method == "GET" and not route.name and request.query.get("watch") in {"true", "1"}


def _drop(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _precondition_uid(body: bytes) -> str:
    try:
        content: Any = msgspec.json.decode(body)
        return str(content["deleteOptions"]["preconditions"]["uid"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""
