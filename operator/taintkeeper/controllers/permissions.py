"""Keeps asking whether all that we need is still allowed: a permission that vanishes later must be named as well."""

import asyncio
import logging
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from random import Random

import msgspec
from prometheus_client import CollectorRegistry, Gauge

from taintkeeper.cluster.access import REVIEWS, Permission, missing_permissions
from taintkeeper.cluster.client import ApiClient, StatusError, UnreachableError
from taintkeeper.core.pacing import Backoff

logger = logging.getLogger("taintkeeper")

RECHECK_SECONDS = 300.0
MISSING_SECONDS = 10.0
"""How soon to ask again while something is missing."""

REFUSED_BACKOFF = Backoff(base=2.0, cap=60.0)
"""How long after one check a refused request may lead to another. Most refusals have other reasons, webhooks and
namespaces that are going, and go on for long: each check that finds nothing missing makes this longer."""


class Permissions:
    """What we need to be allowed, and what of it is missing. Run :meth:`run` as a task, and tell of every request."""

    def __init__(
        self, client: ApiClient, needed: Collection[Permission], registry: CollectorRegistry, random: Random
    ) -> None:
        self.missing: str | None = None
        """What is missing, in words; None where nothing is, as far as is known."""
        self._client = client
        self._needed = sorted(needed, key=str)
        self._random = random
        self._refused = asyncio.Event()
        self._vain = 0
        self._checked_at = float("-inf")
        self._gauge = Gauge(
            "taintkeeper_permission_missing",
            "1 if we are not allowed what we need.",
            ["verb", "resource"],
            registry=registry,
        )

    def requested(self, resource: str, status: int) -> None:
        """Take note of a request to the API server and the HTTP status of its answer."""
        # Those who may not even ask what they may are told 403 at each check, and that is no news.
        if status == 403 and resource != REVIEWS:
            self._refused.set()

    async def check(self) -> str | None:
        """Ask what is allowed now; return what is missing, in words.

        Raises UnreachableError, StatusError or msgspec.DecodeError where there is no verdict; then nothing changes.
        """
        self._refused.clear()
        self._checked_at = asyncio.get_running_loop().time()
        missing = await missing_permissions(self._client, self._needed)
        lacking = set(map(_labels, missing))
        for labels in map(_labels, self._needed):
            self._gauge.labels(*labels).set(float(labels in lacking))
        self.missing = f"permission is missing to {', '.join(map(str, missing))}" if missing else None
        return self.missing

    async def run(self) -> None:
        """Check every few minutes, and when a request was refused; say what has vanished and what is there again."""
        while True:
            await self._wait()
            before = self.missing
            with suppress(UnreachableError, StatusError, msgspec.DecodeError):
                await self.check()
            if self.missing == before:
                continue
            if self.missing is None:
                logger.info("all permissions are there again")
            else:
                logger.error("%s; trying again every %.0f s", self.missing, MISSING_SECONDS)

    async def _wait(self) -> None:
        if self.missing:
            await asyncio.sleep(MISSING_SECONDS)
            return
        try:
            async with asyncio.timeout(RECHECK_SECONDS):
                await self._refused.wait()
        except TimeoutError:
            self._vain = 0
            return
        pause = REFUSED_BACKOFF.delay(self._vain, self._random)
        self._vain += 1
        await asyncio.sleep(self._checked_at + pause - asyncio.get_running_loop().time())


def _labels(permission: Permission) -> tuple[str, str]:
    """Return verb and resource, without the names that it may be limited to: one series for each kind of thing."""
    verb, _, resource = str(replace(permission, name="", namespace="")).partition(" ")
    return verb, resource
