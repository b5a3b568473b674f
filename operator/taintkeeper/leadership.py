"""Who we are, and whether we may act: always, or only while we hold the Lease."""

import logging
import os
import platform
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from taintkeeper.cluster.access import Permission
from taintkeeper.cluster.client import Observer
from taintkeeper.cluster.credentials import load_credentials
from taintkeeper.cluster.elector import Elector
from taintkeeper.cluster.events import Notice, Subject
from taintkeeper.cluster.lease_lock import API_VERSION, lock_permissions
from taintkeeper.core.election import Terms
from taintkeeper.settings import Settings

logger = logging.getLogger("taintkeeper")

NAMESPACE = "taintkeeper"
"""Where the Lease is when neither a flag nor the pod says so: the namespace of the manifests."""


class Leadership:
    """Waits for the Lease, and says at any moment whether we may write. ``send`` takes events for people."""

    def __init__(self, settings: Settings, *, observe: Observer, send: Callable[[Notice], None]) -> None:
        elected = settings.leader_elect and not settings.dry_run
        self.standby = elected
        """Whether we have yet to be elected."""
        self._send = send
        self._elector = _make_elector(settings, observe) if elected else None

    @property
    def elected(self) -> bool:
        """Whether there is an election at all. Without one we lead; a dry run needs none, since it writes nothing."""
        return self._elector is not None

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """What an election needs to be allowed."""
        return () if self._elector is None else lock_permissions(*self._elector.place)

    def leads(self) -> bool:
        """Return whether we may write at this moment."""
        return self._elector is None or self._elector.leads()

    async def acquire(self) -> None:
        """Wait until we lead."""
        if self._elector is None:
            return
        self._elector.start()
        await self._elector.until_elected()
        self.standby = False
        self._tell("became leader")

    def checks(self) -> dict[str, str | None]:
        """Return how the election goes, as a check of ``/readyz``: to stand by is to be ready."""
        if self._elector is None:
            return {}
        return {"leader: standby" if self.standby else "leader": self._elector.trouble}

    def resign(self) -> None:
        """Tell people that we lead no longer, while that can still be sent."""
        if self._elector is not None and self._elector.leads():
            self._tell("stopped leading")

    async def end(self, *, release: bool) -> None:
        """Take part no longer; ``release`` says that no write of ours is under way, so that others may begin now."""
        if self._elector is not None:
            await self._elector.stop(release=release)

    def _tell(self, what: str) -> None:
        """Tell it as client-go does (``tools/leaderelection/resourcelock``)."""
        if self._elector is None or self._elector.record is None:
            return
        namespace, name = self._elector.place
        subject = Subject("Lease", name, self._elector.record.uid, namespace, API_VERSION)
        self._send(Notice(subject, "Normal", "LeaderElection", f"{self._elector.terms.identity} {what}"))


def own_pod() -> tuple[str, str] | None:
    """Return namespace and name of the pod that we are, where the manifest tells."""
    name, namespace = os.environ.get("POD_NAME"), os.environ.get("POD_NAMESPACE")
    return (namespace, name) if name and namespace else None


def end_process(why: str) -> None:
    """End the process at once: who leads no longer has nothing to finish, and whoever leads next relies on that.

    kube-controller-manager does the same. All that was decided, and what has been sent and not been answered, goes with
    the process; Kubernetes starts it again, and a restart is a start. To go on as a standby would be a second way to
    get there, with an engine and watches that have to forget all they know.
    """
    logger.critical("no longer the leader, ending: %s", why)
    os._exit(1)


def _make_elector(settings: Settings, observe: Observer) -> Elector:
    terms = Terms(
        identity=f"{os.environ.get('POD_NAME') or platform.node()}_{uuid4()}",
        lease_seconds=settings.leader_elect_lease_duration,
        renew_seconds=settings.leader_elect_renew_deadline,
        retry_seconds=settings.leader_elect_retry_period,
    )
    namespace = settings.leader_elect_resource_namespace or os.environ.get("POD_NAMESPACE") or NAMESPACE
    place = namespace, settings.leader_elect_resource_name
    login = partial(load_credentials, settings.kubeconfig, settings.context)
    return Elector(terms, place, login, observe=observe, lost=end_process)
