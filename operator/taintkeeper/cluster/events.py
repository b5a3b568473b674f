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
"""How often it is looked whether evictions are through; also the time between events that can wait no longer."""
PATIENCE_SECONDS = 30.0
"""How long events wait for evictions to be through before they are sent all the same."""
MESSAGE_BYTES = 1_024
"""How long a message may be: what events.k8s.io/v1 allows (``NoteLengthLimit`` in kubernetes/kubernetes
``pkg/apis/core/validation/events.go``). core/v1 takes any length, but nobody wants to read a proxy's page there."""
NAME_LENGTH = 253
"""How long the name of an object may be (``DNS1123SubdomainMaxLength`` in k8s.io/apimachinery). Kubernetes 1.36 takes
longer ones for events, but client-go sends none."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about."""

    kind: str
    name: str
    uid: str
    namespace: str = ""
    api_version: str = "v1"


Identity = tuple[Subject, str, str, str]


@dataclass(frozen=True, slots=True)
class Notice:
    """An event to be sent. ``type`` is Normal or Warning.

    What is equal but for the message is the same event again where ``key`` is given, as it has to be for messages in
    the server's own words, which may differ each time. Without a key another message is another event.
    """

    subject: Subject
    type: str
    reason: str
    message: str
    key: str = ""

    @property
    def identity(self) -> Identity:
        """What tells it from other events."""
        return self.subject, self.type, self.reason, self.key or self.message


@dataclass(slots=True)
class _Series:
    """An event with its repetitions. ``notice`` is the last of them, ``told`` the message that the server has."""

    name: str
    notice: Notice
    began: float
    queued_at: float
    count: int = 1
    created: bool = False
    told: str = ""


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
        self._waiting: OrderedDict[Identity, _Series] = OrderedDict()
        self._remembered: OrderedDict[Identity, _Series] = OrderedDict()
        self._filled = asyncio.Event()

    def send(self, notice: Notice) -> None:
        """Take an event; when too many wait, it is dropped and counted."""
        now = self._clock()
        known = self._waiting.get(notice.identity) or self._remembered.get(notice.identity)
        if known is None:
            self._enqueue(_Series(self._new_name(notice.subject), notice, now, now))
            return
        known.notice = notice
        known.count += 1
        if notice.identity not in self._waiting and now - known.queued_at >= REPEAT_SECONDS:
            known.queued_at = now
            self._enqueue(known)

    async def run(self) -> None:
        """Send what waits, one at a time, until cancelled."""
        while True:
            await self._filled.wait()
            until = self._clock() + PATIENCE_SECONDS
            while self._waiting:
                await self._wait_for_calm(until)
                await self._deliver_next()
            self._filled.clear()

    async def drain(self, seconds: float) -> None:
        """Send what still waits, for so many seconds at most: the last thing before we leave."""
        try:
            async with asyncio.timeout(seconds):
                while self._waiting and await self._deliver_next():
                    pass
        except TimeoutError:
            pass
        while self._waiting:
            self._waiting.popitem()
            self._dropped()

    def _enqueue(self, series: _Series) -> None:
        if len(self._waiting) >= QUEUE_LENGTH:
            self._dropped()
            return
        identity = series.notice.identity
        self._remembered.pop(identity, None)
        self._waiting[identity] = series
        self._filled.set()

    async def _wait_for_calm(self, until: float) -> None:
        """Wait while evictions are under way; when it has been long enough, only a moment for each event."""
        # Polled, since being told of every change would cost the evictions more than this costs the events.
        while self._busy():
            await asyncio.sleep(BUSY_SECONDS)
            if self._clock() >= until:
                return

    async def _deliver_next(self) -> bool:
        """Send what has waited longest; return whether the server answered.

        Until it has, the event stays where it is: should we have to leave meanwhile, :meth:`drain` sends it.
        """
        identity, series = next(iter(self._waiting.items()))
        try:
            status = await self._deliver(series)
        except UnreachableError:
            status = 0
        del self._waiting[identity]
        # Events expire after an hour and cannot be written into a namespace that is going: those begin anew next time.
        if status < 300:
            self._remember(identity, series)
        if not 200 <= status < 300:
            self._dropped()
        return status > 0

    async def _deliver(self, series: _Series) -> int:
        message = _shorten(series.notice.message)
        call = self._repeat(series, message) if series.created else self._create(series, message)
        reply = await self._client.send(call)
        if reply.status < 300:
            series.created, series.told = True, message
        return reply.status

    def _remember(self, identity: Identity, series: _Series) -> None:
        self._remembered[identity] = series
        if len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)

    def _new_name(self, subject: Subject) -> str:
        mark = f".{self._random.getrandbits(64):016x}"
        return subject.name[: NAME_LENGTH - len(mark)].rstrip(".-") + mark

    def _create(self, series: _Series, message: str) -> Call:
        path = _path(series.notice)
        return Call("POST", path, "create", "events", body=_event(series, message, self._clock()))

    def _repeat(self, series: _Series, message: str) -> Call:
        body: dict[str, Any] = {"count": series.count, "lastTimestamp": timestamp(self._clock())}
        if message != series.told:
            body["message"] = message
        path = f"{_path(series.notice)}/{series.name}"
        return Call("PATCH", path, "patch", "events", body=body, content_type=MERGE_PATCH)


def _shorten(message: str) -> str:
    """Return the message, cut where it is longer than a message may be, never within a character."""
    data = message.encode()
    if len(data) <= MESSAGE_BYTES:
        return message
    mark = "..."
    return data[: MESSAGE_BYTES - len(mark)].decode(errors="ignore") + mark


def _namespace(notice: Notice) -> str:
    """Events about what has no namespace are kept in ``default``, where kubectl looks for them."""
    return notice.subject.namespace or "default"


def _path(notice: Notice) -> str:
    return f"/api/v1/namespaces/{_namespace(notice)}/events"


def _event(series: _Series, message: str, now: float) -> dict[str, Any]:
    notice, subject = series.notice, series.notice.subject
    involved = {"apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name, "uid": subject.uid}
    if subject.namespace:
        involved["namespace"] = subject.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": series.name, "namespace": _namespace(notice)},
        "involvedObject": involved,
        "type": notice.type,
        "reason": notice.reason,
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "firstTimestamp": timestamp(series.began),
        "lastTimestamp": timestamp(now),
        "count": series.count,
    }
