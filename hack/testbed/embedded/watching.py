"""Watches: initial events, changes that pass the selectors, bookmarks, and an end by timeout, error or cut."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping

import msgspec

from testbed.embedded.failures import Cause, Failure
from testbed.embedded.listing import Query, invalid_options, parse_query, too_large_version
from testbed.embedded.resources import Kind, Object
from testbed.embedded.store import Change, Record, Store
from testbed.embedded.validation import denied, unsupported

DEFAULT_TIMEOUT_SECONDS = 1800.0
BATCH = 500
"""How many initial events are written at a time."""

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


class WatchSettings:
    """How all watches of a server behave; tests change it while the server runs."""

    def __init__(self, bookmark_seconds: float) -> None:
        self.bookmark_seconds = bookmark_seconds
        self.refuse_initial_events = False
        """Answer ``sendInitialEvents`` as a server older than that feature."""
        self.frozen: set[Kind] = set()
        """Kinds whose watches stay open and say nothing."""


class Watch:
    """One watch of one kind: produces the lines to send until it ends.

    Args:
        store: the objects and their histories.
        settings: how watches behave at the moment.
        kind: the kind watched.
        namespace: the namespace watched, empty for all.
        parameters: the parameters of the request.

    Raises:
        Failure: 400 or 422, the parameters make no sense.
    """

    def __init__(
        self, store: Store, settings: WatchSettings, kind: Kind, namespace: str, parameters: Mapping[str, str]
    ) -> None:
        self.kind = kind
        self.query = parse_query(kind, parameters)
        self.abrupt_end = False
        """The connection is to be torn down rather than closed in good order."""
        self._store = store
        self._settings = settings
        self._namespace = namespace
        self._bookmarks = parameters.get("allowWatchBookmarks") in {"true", "1"}
        self._initial_events = _initial_events(self.query, parameters, refuse=settings.refuse_initial_events)
        self._timeout_seconds = float(parameters.get("timeoutSeconds") or 0) or DEFAULT_TIMEOUT_SECONDS
        self._after = int(self.query.version or "0")
        self._wake = asyncio.Event()
        self._injected: Object | None = None
        self._ended = False

    def end(self, *, abruptly: bool = False) -> None:
        """End the watch, in good order or as a lost connection."""
        self._ended, self.abrupt_end = True, abruptly
        self._wake.set()

    def inject_error(self, status: Object) -> None:
        """Send an ERROR event with this status and end the watch."""
        self._injected = status
        self._wake.set()

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield what to send; now and then that is nothing, so that the caller can look for its client."""
        history = self._store.histories[self.kind]
        history.subscribe(self._wake)
        try:
            async with contextlib.aclosing(self._stream()) as stream:
                async for chunk in stream:
                    yield chunk
        except Failure as failure:
            yield _line("ERROR", msgspec.json.encode(failure.body()))
        finally:
            history.unsubscribe(self._wake)

    async def _stream(self) -> AsyncGenerator[bytes]:
        clock = asyncio.get_running_loop().time
        ends_at = clock() + self._timeout_seconds
        next_bookmark = clock() + self._settings.bookmark_seconds
        position, initial = self._start()
        for start in range(0, len(initial), BATCH):
            yield b"".join(initial[start : start + BATCH])
        while not self._ended:
            if self._injected is not None:
                yield _line("ERROR", msgspec.json.encode(self._injected))
                return
            if self.kind not in self._settings.frozen:
                position, chunk = self._read(position)
                yield chunk
                if self._bookmarks and clock() >= next_bookmark:
                    next_bookmark = clock() + self._settings.bookmark_seconds
                    yield self._bookmark()
            if clock() >= ends_at:
                return
            await self._wait(min(ends_at, next_bookmark, clock() + 1.0) - clock())

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.01)):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _start(self) -> tuple[int, list[bytes]]:
        """Return the position to read changes from and the initial events."""
        store, wanted = self._store, self._after
        if wanted > store.version and self._initial_events:
            raise too_large_version(wanted, store.version)
        history = store.histories[self.kind]
        if not self._initial_events:
            return (history.position_after(wanted) if wanted else history.end), []
        records = store.sorted_records(self.kind, self._namespace)
        lines = [_line("ADDED", record.full) for _, record in records if self.query.matches(record.value)]
        if self._bookmarks and self._initial_events == "requested":
            lines.append(self._bookmark(INITIAL_EVENTS_END))
        return history.end, lines

    def _read(self, position: int) -> tuple[int, bytes]:
        changes = self._store.histories[self.kind].read(position)
        return position + len(changes), b"".join(self._event(change) for change in changes)

    def _event(self, change: Change) -> bytes:
        """Return the line for a change seen through the selectors: to start or cease to match is one too."""
        value = change.record.value
        if change.record.version <= self._after:
            return b""  # the watch starts in the future, which the API takes literally
        if self._namespace and value["metadata"].get("namespace", self._namespace) != self._namespace:
            return b""
        is_now = change.type != "DELETED" and self.query.matches(value)
        was = change.previous is not None and self.query.matches(change.previous.value)
        if is_now:
            return _line("MODIFIED" if was else "ADDED", change.record.full)
        if was and change.previous is not None:
            return _line("DELETED", _last_state(change.previous, change.record).full)
        return b""

    def _bookmark(self, annotations: Object | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self._store.version)}
        if annotations:
            metadata["annotations"] = annotations
        return _line("BOOKMARK", Record(self.kind, {"metadata": metadata}, self._store.version).full)


def _last_state(previous: Record, current: Record) -> Record:
    """Return the last state that matched, with the version of the change that ended it."""
    metadata = {**previous.value["metadata"], "resourceVersion": str(current.version)}
    return Record(previous.kind, {**previous.value, "metadata": metadata}, current.version)


def _line(event: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (event.encode(), body)


def _initial_events(query: Query, parameters: Mapping[str, str], *, refuse: bool) -> str:
    """Return why initial events are sent: asked for, implied by the version, or not at all."""
    asked, match = parameters.get("sendInitialEvents"), query.version_match
    causes = _option_causes(asked, match, query.token, refuse=refuse)
    if causes:
        raise invalid_options(causes)
    if asked is not None:
        return "requested" if asked in {"true", "1"} else ""
    return "implied" if query.version in {"", "0"} else ""


def _option_causes(asked: str | None, match: str, token: str, *, refuse: bool) -> list[Cause]:
    causes = []
    if asked is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(denied("resourceVersionMatch", text))
    if asked is not None and refuse:
        text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        causes.append(denied("sendInitialEvents", text))
    if match and asked is None:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(denied("resourceVersionMatch", text))
    if match and match != "NotOlderThan":
        causes.append(unsupported("resourceVersionMatch", match, ("NotOlderThan",)))
    if match and token:
        causes.append(denied("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
    return causes
