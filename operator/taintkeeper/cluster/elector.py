"""Takes part in the election of who leads, in a thread of its own.

Renewals must not be late because the event loop takes in 5,000 nodes: so they have their own thread, event loop,
session and credentials, and share nothing with the rest but :meth:`Elector.leads` and a few words about how it goes.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from taintkeeper.cluster.client import ApiClient, Observer, StatusError, UnreachableError
from taintkeeper.cluster.clock import AWAKE_CLOCK
from taintkeeper.cluster.credentials import Credentials
from taintkeeper.cluster.lease_lock import LeaseLock
from taintkeeper.core.election import NEVER, Claim, Election, Look, Record, Terms

logger = logging.getLogger("taintkeeper")

RELEASE_SECONDS = 2.0
"""How long giving the Lease back may take: whatever the API server does, it must not keep us from ending."""
JOIN_SECONDS = 2.0 * RELEASE_SECONDS


def awake_clock() -> float:
    """Return the seconds since the machine was started, asleep or not: a lease goes on while its holder sleeps."""
    return time.clock_gettime(AWAKE_CLOCK)


class Elector:
    """One candidate at work: :meth:`start`, :meth:`until_elected`, and at the end :meth:`stop`.

    ``login`` gives credentials that nobody else uses. ``lost`` is told why the Lease was lost, or what error ended the
    thread: in that thread, once, when :meth:`leads` says no already. It had better end the process.
    """

    def __init__(
        self,
        terms: Terms,
        place: tuple[str, str],
        login: Callable[[], Credentials],
        *,
        observe: Observer,
        lost: Callable[[str], None],
        clock: Callable[[], float] = awake_clock,
    ) -> None:
        self.terms = terms
        self.place = place
        """Namespace and name of the Lease."""
        self.trouble: str | None = None
        """Why the Lease could not be read or written at the last try; None where it could."""
        self._login = login
        self._observe = observe
        self._lost = lost
        self._clock = clock
        self._election = Election(terms)
        self._elected = asyncio.Event()
        self._main_loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._release = False
        self._interrupt: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name="elector", daemon=True)

    @property
    def record(self) -> Record | None:
        """The Lease as it was last seen."""
        return self._election.record

    def start(self) -> None:
        """Begin to look at the Lease, and take it when it is free."""
        self._thread.start()

    def leads(self) -> bool:
        """Return whether we may act at this moment. Any thread may ask."""
        return self._election.leads(self._clock())

    async def until_elected(self) -> None:
        """Wait until we lead."""
        await self._elected.wait()

    async def stop(self, *, release: bool) -> None:
        """Take part no longer; give the Lease back where ``release`` says that no write of ours is under way."""
        if not self._thread.is_alive():
            return
        self._release = release
        self._stopped.set()
        with suppress(RuntimeError):  # its loop may have ended meanwhile
            self._interrupt()
        await asyncio.to_thread(self._thread.join, JOIN_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._take_part())
            why = self._election.ended
        except Exception as error:
            logger.critical("internal error in the election: %r", error, exc_info=error)
            why = f"internal error: {error!r}"
        if why is not None and not self._stopped.is_set():
            self._election.step_down()
            self._lost(why)

    async def _take_part(self) -> None:
        client = ApiClient(self._login(), observe=self._observe, timeout_seconds=self._patience)
        try:
            lock = LeaseLock(client, *self.place, self.terms)
            loop = asyncio.get_running_loop()
            campaign = loop.create_task(self._campaign(lock))
            self._interrupt = lambda: loop.call_soon_threadsafe(campaign.cancel)
            if self._stopped.is_set():
                campaign.cancel()
            await asyncio.wait([campaign])
            if self._stopped.is_set():
                await self._leave(lock)
            else:
                campaign.result()
        finally:
            await client.close()

    async def _campaign(self, lock: LeaseLock) -> None:
        while (request := self._election.request(self._clock())) is not None:
            await self._ask(lock, request)
            wake = min(self._election.due, self._until())
            await asyncio.sleep(max(0.0, wake - self._clock()))

    async def _ask(self, lock: LeaseLock, request: Look | Claim) -> None:
        before = self._election.record
        try:
            async with asyncio.timeout(min(self._patience, self._until() - self._clock())):
                if isinstance(request, Look):
                    self._election.found(await lock.look(), self._clock())
                else:
                    self._election.claimed(await lock.claim(request), self._clock())
        except (UnreachableError, StatusError, msgspec.DecodeError, TimeoutError) as error:
            self._election.failed(self._clock())
            self._note_failure(request, error)
            return
        self._note_success(before)

    async def _leave(self, lock: LeaseLock) -> None:
        # From here on nobody may write, so that whoever takes the Lease next is alone.
        self._election.step_down()
        if not self._release:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await lock.release()
        except (UnreachableError, StatusError, msgspec.DecodeError, TimeoutError) as error:
            logger.warning("the Lease could not be given back, others wait until it is over: %s", _words(error))

    @property
    def _patience(self) -> float:
        """How long a request may take: half of the deadline, so that there is time for another (as client-go)."""
        return self.terms.renew_seconds / 2.0

    def _until(self) -> float:
        until = self._election.until
        return float("inf") if until == NEVER else until

    def _note_failure(self, request: Look | Claim, error: Exception) -> None:
        if isinstance(error, StatusError) and error.code == 409:
            # Somebody was faster; what they have written is seen next.
            return
        what = "read" if isinstance(request, Look) else "written"
        trouble = f"the Lease {'/'.join(self.place)} cannot be {what}: {_words(error)}"
        if trouble != self.trouble:
            logger.warning("%s", trouble)
        self.trouble = trouble

    def _note_success(self, before: Record | None) -> None:
        self.trouble = None
        now = self._election.record
        if self.leads() and not self._elected.is_set():
            logger.info("leading as %s", self.terms.identity)
            self._main_loop.call_soon_threadsafe(self._elected.set)
        elif now is not None and now.holder not in ("", self.terms.identity, before and before.holder):
            logger.info("standing by: %s leads", now.holder)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
