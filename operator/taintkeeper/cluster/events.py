"""Tells people what was done, as Kubernetes events; never in the way of what is being done.

Events wait in a bounded queue and are sent while nothing more important is under way. The same event about the same
object is not sent twice: its count goes up, at most once a minute.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from taintkeeper.cluster.client import MERGE_PATCH, ApiClient, Call, UnreachableError
from taintkeeper.cluster.wire import timestamp

COMPONENT = "taintkeeper"
QUEUE_LENGTH = 10_000
REMEMBERED = 4_096
REPEAT_SECONDS = 60.0
BUSY_SECONDS = 0.05
PATIENCE_SECONDS = 30.0
"""How long an event waits for evictions to be through before it is sent all the same."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about."""

    kind: str
    name: str
    uid: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """An event to be sent. ``type`` is Normal or Warning; what is equal in all fields is the same event again."""

    subject: Subject
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Series:
    name: str
    queued_at: float
    count: int = 1
    created: bool = False


class EventSink:
    """Takes events and sends them in its own time. Run :meth:`run` as a task."""

    def __init__(
        self,
        client: ApiClient,
        clock: Callable[[], float],
        random: Random,
        *,
        busy: Callable[[], bool],
        dropped: Callable[[], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._busy = busy
        self._dropped = dropped
        self._queue: asyncio.Queue[Notice] = asyncio.Queue(QUEUE_LENGTH)
        self._series: OrderedDict[Notice, _Series] = OrderedDict()

    def send(self, notice: Notice) -> None:
        """Take an event; when too many wait, it is dropped and counted."""
        now = self._clock()
        known = self._series.get(notice)
        if known is None:
            self._begin(notice, now)
        else:
            known.count += 1
            if now - known.queued_at < REPEAT_SECONDS:
                return
            known.queued_at = now
        self._enqueue(notice)

    async def run(self) -> None:
        """Send what waits, one at a time, until cancelled."""
        while True:
            notice = await self._queue.get()
            try:
                await self._wait_for_calm()
                await self._deliver(notice)
            except UnreachableError:
                self._dropped()
            except asyncio.CancelledError:
                # We are about to leave; it is among what :meth:`drain` sends.
                self._enqueue(notice)
                raise

    async def drain(self, seconds: float) -> None:
        """Send what still waits, for so many seconds at most: the last thing before we leave."""
        try:
            async with asyncio.timeout(seconds):
                while not self._queue.empty():
                    await self._deliver(self._queue.get_nowait())
        except (TimeoutError, UnreachableError):
            self._dropped()

    def _enqueue(self, notice: Notice) -> None:
        try:
            self._queue.put_nowait(notice)
        except asyncio.QueueFull:
            self._dropped()

    async def _wait_for_calm(self) -> None:
        until = self._clock() + PATIENCE_SECONDS
        # Polled, since being told of every change would cost the evictions more than this costs the events.
        while self._busy() and self._clock() < until:  # noqa: ASYNC110
            await asyncio.sleep(BUSY_SECONDS)

    def _begin(self, notice: Notice, now: float) -> None:
        self._series[notice] = _Series(f"{notice.subject.name}.{self._random.getrandbits(64):016x}", now)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    async def _deliver(self, notice: Notice) -> None:
        series = self._series.get(notice)
        if series is None:
            self._dropped()
            return
        self._series.move_to_end(notice)
        call = self._repeat(notice, series) if series.created else self._create(notice, series)
        reply = await self._client.send(call)
        series.created = True
        if reply.status >= 300:
            # Events expire after an hour and cannot be written into a namespace that is going: begin anew next time.
            self._series.pop(notice, None)
            self._dropped()

    def _create(self, notice: Notice, series: _Series) -> Call:
        return Call("POST", _path(notice), "create", "events", body=_event(notice, series, self._clock()))

    def _repeat(self, notice: Notice, series: _Series) -> Call:
        body = {"count": series.count, "lastTimestamp": timestamp(self._clock())}
        path = f"{_path(notice)}/{series.name}"
        return Call("PATCH", path, "patch", "events", body=body, content_type=MERGE_PATCH)


def _namespace(notice: Notice) -> str:
    """Events about what has no namespace are kept in ``default``, where kubectl looks for them."""
    return notice.subject.namespace or "default"


def _path(notice: Notice) -> str:
    return f"/api/v1/namespaces/{_namespace(notice)}/events"


def _event(notice: Notice, series: _Series, now: float) -> dict[str, Any]:
    subject = notice.subject
    at = timestamp(now)
    involved = {"apiVersion": "v1", "kind": subject.kind, "name": subject.name, "uid": subject.uid}
    if subject.namespace:
        involved["namespace"] = subject.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": series.name, "namespace": _namespace(notice)},
        "involvedObject": involved,
        "type": notice.type,
        "reason": notice.reason,
        "message": notice.message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "firstTimestamp": timestamp(series.queued_at),
        "lastTimestamp": at,
        "count": series.count,
    }
