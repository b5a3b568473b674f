"""Puts the operator together: watches, controllers, reports and probes, started and stopped as one.

Data flows one way: the views feed the controllers, the controllers write to the cluster and report.
"""

import asyncio
import logging
import signal
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from taintkeeper.assembly import Controllers
from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.client import ApiClient, StatusError, UnreachableError
from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.credentials import Credentials
from taintkeeper.cluster.custom_writer import ApiCustomWriter, DryCustomWriter
from taintkeeper.cluster.departing_writer import DepartingWriter, Departure
from taintkeeper.cluster.dry_writer import DryWriter
from taintkeeper.cluster.events import EventSink, Notice
from taintkeeper.cluster.status_writer import ApiStatusWriter, DryStatusWriter, StatusWriter
from taintkeeper.cluster.streaming import streams_lists
from taintkeeper.cluster.writer import ApiWriter, Writer
from taintkeeper.collector import collect_later
from taintkeeper.controllers.permissions import Permissions
from taintkeeper.controllers.rivals import Rivals
from taintkeeper.controllers.shell import STALL_SECONDS
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core.objects import Node
from taintkeeper.core.rivals import rivals_of
from taintkeeper.leadership import Leadership, own_pod
from taintkeeper.metrics import RuntimeMetrics
from taintkeeper.serving import Servers
from taintkeeper.settings import Settings
from taintkeeper.views import Audience, Views

logger = logging.getLogger("taintkeeper")

ACCESS_SECONDS = 10.0
FAREWELL_SECONDS = 2.0
PULSE_SECONDS = 1.0
READING = frozenset({"get", "list", "watch"})
EVENT_PERMISSIONS = (Permission("create", "events"), Permission("patch", "events"))


class Taintkeeper:
    """The operator: ``start``, ``wait_for_access``, ``wait_for_leadership`` and ``serve`` it, and ``stop`` it."""

    def __init__(self, settings: Settings, credentials: Credentials) -> None:
        self.failure: BaseException | None = None
        """The error of our own that ended the operator, if one did."""
        self._settings = settings
        self._credentials = credentials
        self._clock = SteadyClock()
        self._random = Random()
        self._metrics = RuntimeMetrics(dry_run=settings.dry_run)
        self._leadership = Leadership(settings, observe=self._metrics.request, send=self._send)
        self._client = ApiClient(credentials, observe=self._requested, fence=self._leadership.leads)
        self._dry_writer = DryWriter(self._echo) if settings.dry_run else None
        self._writer: Writer = self._dry_writer or self._real_writer()
        self._dry_status_writer = DryStatusWriter(self._echo) if settings.dry_run else None
        self._status_writer: StatusWriter = self._dry_status_writer or ApiStatusWriter(self._client)
        self._events = EventSink(
            self._client, self._clock, self._random, busy=self._busy, dropped=self._metrics.event_dropped
        )
        self._servers = Servers()
        self._tasks: set[asyncio.Task[None]] = set()
        self._missing: str | None = "not checked yet"
        self._departure: Departure | None = None
        around = Surroundings(
            writer=self._writer,
            custom_writer=DryCustomWriter() if settings.dry_run else ApiCustomWriter(self._client),
            send=self._send,
            registry=self._metrics.registry,
            clock=self._clock,
            random=self._random,
            crashed=self._crashed,
            stalled=self._stood_still,
        )
        self._controllers = Controllers(settings, around, self._client, self._status_writer)
        self._views = Views(
            self._client, self._random, self._audiences(), as_seen=self._as_seen, failed=self._watch_failed
        )
        # Beside a dry run, somebody else should do the work.
        nodes = not settings.dry_run and (self._controllers.node_taint or self._controllers.node_health) is not None
        evictions = not settings.dry_run and self._controllers.eviction is not None
        self._rivals = Rivals(rivals_of(nodes=nodes, evictions=evictions), around, self._client, own_pod())
        self._permissions = Permissions(self._client, self._needed(), around.registry, self._random)
        self._metrics.observe_knowledge(self._views.last_heard, self._views.unreadable, lambda: not self._views.stale())
        if self._leadership.elected:
            self._metrics.observe_leadership(settings.leader_elect_resource_name, self._leadership.leads)

    async def start(self) -> None:
        """Serve probes and metrics; raises OSError where an address cannot be had."""
        await self._servers.start(
            metrics=self._settings.metrics_bind_address,
            probes=self._settings.health_probe_bind_address,
            registry=self._metrics.registry,
            healthy=self.health,
            ready=self.readiness,
        )

    async def wait_for_access(self) -> None:
        """Wait until the API server can be reached and grants all that is needed; say what is missing meanwhile."""
        while missing := await self._find_missing():
            if missing != self._missing:
                logger.error("%s; trying again every %.0f s", missing, ACCESS_SECONDS)
            self._missing = missing
            await asyncio.sleep(ACCESS_SECONDS)
        self._missing = None
        names = ", ".join(sorted(self._settings.controllers))
        alone = "dry run: nothing is written" if self._settings.dry_run else "at work"
        mode = "at work once elected" if self._leadership.elected else alone
        logger.info("connected to %s; controllers %s; %s", self._credentials.server, names, mode)

    async def wait_for_leadership(self) -> None:
        """Wait until no other process does what we would do. Nothing is watched meanwhile: to lead is to start."""
        await self._leadership.acquire()
        if self._leadership.elected:
            # That may have taken weeks, for some of which the machine slept.
            self._clock.wake_up()
            with suppress(UnreachableError):
                self._set_clock(await self._client.server_time())

    async def streams_lists(self) -> bool:
        """Say whether the API server can begin a watch with all objects, so that nobody has to hold their list."""
        return await streams_lists(self._client)

    def serve(self) -> None:
        """Start watching; what must be done is done from then on."""
        for name, run in self._views.tasks().items():
            self._spawn(run(), f"watch of {name}")
        for name, run in self._rivals.tasks().items():
            self._spawn(run(), f"watch for {name}")
        self._spawn(self._permissions.run(), "permissions")
        self._spawn(self._events.run(), "events")
        self._spawn(self._notice_absences(), "pulse")
        self._spawn(collect_later(self._views.stale), "collector")

    async def stop(self) -> None:
        """Stop deciding, then writing, then reporting; the Lease is given back when nothing is under way any more."""
        await asyncio.gather(*(each.stop() for each in (*self._controllers.all(), self._rivals)))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._leadership.resign()
        await self._events.drain(FAREWELL_SECONDS)
        settled = await self._client.settle(FAREWELL_SECONDS)
        await self._client.close()
        await self._leadership.end(release=settled)
        if self._departure is not None and settled:
            await self._depart(self._departure)
        await self._servers.stop()

    def node_event(self, event: Mapping[str, Any]) -> None:
        """Take in a watch event of a node, as Kopf hands it to its handlers."""
        self._views.node_event(event)
        self._rivals.node_event(event)

    @property
    def customs(self) -> list[str]:
        """The resources of our own kinds that Kopf is to watch."""
        return self._views.customs

    def custom_event(self, resource: str, event: Mapping[str, Any]) -> None:
        """Take in a watch event of an object of one of these kinds, as Kopf hands it to its handlers."""
        self._views.custom_event(resource, event)

    def interrupted(self, interrupted: bool) -> None:
        """Note that Kopf's watch of nodes fails, or works again."""
        self._views.interrupted(interrupted)

    def health(self) -> dict[str, str | None]:
        """Return what is wrong with the process itself, by check; None where all is well."""
        return {"engine": None if self.failure is None else f"failed: {self.failure}"}

    def readiness(self) -> dict[str, str | None]:
        """Return what keeps us from doing our work, by check; None where all is well."""
        stale = ", ".join(self._views.stale())
        access = self._missing or self._permissions.missing
        watches = {} if self._leadership.standby else {"watches": f"{stale} not up to date" if stale else None}
        return self.health() | {"access": access} | watches | self._leadership.checks()

    def _real_writer(self) -> Writer:
        own = own_pod()
        if own is None or not self._leadership.elected:
            return ApiWriter(self._client)
        return DepartingWriter(self._client, own, self._end_for)

    def _end_for(self, departure: Departure) -> None:
        """End, since our own pod has to leave now, after all others."""
        logger.info("our own pod has to leave: ending, so that another may lead first")
        self._departure = departure
        signal.raise_signal(signal.SIGTERM)

    async def _depart(self, departure: Departure) -> None:
        client = ApiClient(self._credentials, observe=self._requested)
        answer = await departure(ApiWriter(client))
        await client.close()
        if not answer.accepted:
            logger.warning("our own pod could not be evicted in the end (%d %s)", answer.status, answer.message)

    def _audiences(self) -> list[Audience]:
        """Return who is told of what is seen: what answers for the API server in a dry run before all others."""
        controllers = [Audience(each, each.resources) for each in self._controllers.all()]
        imagining = [each for each in (self._dry_writer, self._dry_status_writer) if each is not None]
        watched = frozenset[str]().union(*(each.resources for each in controllers))
        return [*(Audience(each, each.resources & watched) for each in imagining), *controllers]

    def _needed(self) -> set[Permission]:
        needed = {permission for each in self._controllers.all() for permission in each.permissions}
        if self._settings.dry_run:
            return {permission for permission in needed if permission.verb in READING}
        return needed | set(EVENT_PERMISSIONS) | set(Rivals.permissions) | set(self._leadership.permissions)

    async def _find_missing(self) -> str | None:
        try:
            self._set_clock(await self._client.server_time())
            return await self._permissions.check()
        except (UnreachableError, StatusError, msgspec.DecodeError) as error:
            return f"the API server at {self._credentials.server} cannot be used: {error}"

    def _requested(self, verb: str, resource: str, status: int, seconds: float) -> None:
        self._metrics.request(verb, resource, status, seconds)
        self._permissions.requested(resource, status)

    def _send(self, notice: Notice) -> None:
        if not self._settings.dry_run:
            self._events.send(notice)

    def _as_seen(self, node: Node) -> Node:
        return self._writer.as_seen(self._status_writer.as_seen(node))

    def _echo(self, node: Any) -> None:
        self._views.node_seen(node)

    def _busy(self) -> bool:
        return self._controllers.eviction is not None and self._controllers.eviction.busy

    def _set_clock(self, server: float | None) -> None:
        if server is not None and (ahead := self._clock.set_by(server)):
            direction = "ahead of" if ahead > 0 else "behind"
            logger.warning(
                "this machine's clock is %.0f s %s the API server's: going by the server's", abs(ahead), direction
            )

    async def _notice_absences(self) -> None:
        """Notice that the process stood still, or the machine slept, though no engine had to be woken meanwhile."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(PULSE_SECONDS)
            late, slept = loop.time() - began - PULSE_SECONDS, self._clock.wake_up()
            if late > STALL_SECONDS or slept:
                self._stood_still(late + slept)

    def _stood_still(self, seconds: float) -> None:
        """See to it that nothing is decided by what was known before we were away."""
        logger.warning("stood still for %.1f s: looking at all nodes again before anything is decided", seconds)
        self._metrics.stood_still()
        self._views.distrust()

    def _watch_failed(self, resource: str, why: str) -> None:
        self._metrics.watch_failed(resource)
        follows = "nothing is decided meanwhile" if resource in self._views.stale() else "what was known stays good"
        logger.warning("%s cannot be watched, %s: %s", resource, follows, why)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)

    def _crashed(self, error: BaseException) -> None:
        """End the process after an error of our own: what is in memory may be wrong, a restart builds it anew."""
        if self.failure is not None:
            return
        self.failure = error
        logger.critical("internal error, ending: %r", error, exc_info=error)
        signal.raise_signal(signal.SIGTERM)
