"""Notices kube-controller-manager's own controllers where ours do their work, and says so; it never fights them."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from taintkeeper.cluster.client import ApiClient
from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.cluster.rivals import PERMISSIONS, SignWatch, TaintWrites
from taintkeeper.controllers.shell import Shell
from taintkeeper.controllers.surroundings import Surroundings
from taintkeeper.core.rivals import (
    NODE_LIFECYCLE,
    Rival,
    RivalActive,
    RivalEffect,
    RivalEngine,
    RivalQuiet,
    RivalSigned,
)

logger = logging.getLogger("taintkeeper.rivals")

REASON = "RivalController"
HOME = Subject("Namespace", "kube-system", "")
"""Where kube-controller-manager lives; people are told there when it is not known which pod we are."""


class Rivals:
    """Watches for these rivals. Run each of :meth:`tasks` as a task of its own.

    ``own`` is our own pod, as (namespace, name): its events are where people look for what is wrong with us.
    """

    permissions = PERMISSIONS

    def __init__(
        self, rivals: Sequence[Rival], around: Surroundings, client: ApiClient, own: tuple[str, str] | None
    ) -> None:
        self._send = around.send
        self._clock = around.clock
        self._subject = HOME if own is None else Subject("Pod", own[1], "", own[0])
        self._metrics = RivalMetrics(around.registry, rivals)
        self._shell: Shell[RivalSigned, RivalEffect] = Shell(
            RivalEngine(), around.clock, self._perform, crashed=around.crashed, stalled=around.stalled
        )
        self._watches = {
            rival.name: SignWatch(
                client,
                rival.component,
                around.random,
                seen=partial(self._signed, rival),
                failed=partial(_log_failure, rival),
            )
            for rival in rivals
        }

        self._writes = TaintWrites(partial(self._signed, NODE_LIFECYCLE)) if NODE_LIFECYCLE in rivals else None

    def node_event(self, event: Mapping[str, Any]) -> None:
        """Take in a watch event of a node, as Kopf hands it to its handlers."""
        if self._writes is not None:
            self._writes.take(event)

    def tasks(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return what has to run for rivals to be noticed, by the rival's name: functions that return coroutines."""
        return {name: watch.run for name, watch in self._watches.items()}

    async def stop(self) -> None:
        """Notice no more."""
        await self._shell.stop()

    def _signed(self, rival: Rival, sign: str) -> None:
        self._metrics.seen(rival, self._clock())
        self._shell.feed(RivalSigned(rival, sign))

    def _perform(self, effect: RivalEffect) -> None:
        match effect:
            case RivalActive(rival=rival, sign=sign):
                message = _explain(rival)
                logger.warning("%s Last sign: %s", message, sign)
                self._send(Notice(self._subject, "Warning", REASON, message))
            case RivalQuiet(rival=rival):
                self._metrics.gone(rival)
                logger.info("kube-controller-manager's %s has given no sign for an hour", rival.name)


class RivalMetrics:
    """What Prometheus sees of rivals."""

    def __init__(self, registry: CollectorRegistry, rivals: Sequence[Rival]) -> None:
        self._seen = Gauge(
            "taintkeeper_rival_seen",
            "1 if a controller of kube-controller-manager that does the same as ours gave a sign within the last hour.",
            ["controller"],
            registry=registry,
        )
        self._last_seen = Gauge(
            "taintkeeper_rival_last_seen_timestamp_seconds",
            "When a controller of kube-controller-manager that does the same as ours last gave a sign, if it ever did.",
            ["controller"],
            registry=registry,
        )
        for rival in rivals:
            self.gone(rival)

    def seen(self, rival: Rival, now: float) -> None:
        """Note a sign."""
        self._seen.labels(rival.name).set(1)
        self._last_seen.labels(rival.name).set(now)

    def gone(self, rival: Rival) -> None:
        """Note that there has been no sign for long, or none yet."""
        self._seen.labels(rival.name).set(0)


def _explain(rival: Rival) -> str:
    return (
        f"kube-controller-manager's {rival.name} is running too, so that {rival.harm}. "
        f"Switch it off: add -{rival.name} to kube-controller-manager's flag --controllers, "
        f"as in --controllers=*,-{rival.name}."
    )


def _log_failure(rival: Rival, why: str) -> None:
    logger.warning("events of %s cannot be watched, so that nobody would notice it: %s", rival.component, why)
