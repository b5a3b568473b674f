"""Kopf's entry points: ``kopf run -m taintkeeper.handlers`` does the same as ``taintkeeper run``.

Nodes, and objects of our own kinds, come through Kopf; it never writes to them. What Kopf would do by default and must
not do here is decided in :func:`configure`, each with its reason.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf

from taintkeeper import custom_handlers
from taintkeeper.cluster.credentials import Credentials, CredentialsError, load_credentials
from taintkeeper.runtime import Taintkeeper
from taintkeeper.serving import AddressError
from taintkeeper.settings import Settings, SettingsError, parse_settings

REGISTRY = kopf.get_default_registry()
"""Where the decorators below register; ``kopf run`` uses the same."""

NODES = "nodes.v1"
PAUSES = (0.5, 1.0, 2.0, 4.0, 5.0)
"""Seconds between tries; short to the end, since nothing can be decided while Kopf sees no nodes."""
LOGIN_SECONDS = 10.0
INACTIVITY_SECONDS = 90.0
WORKER_IDLE_SECONDS = 0.2


class ForeverBackoffs:
    """Kopf's pauses between tries, without end: an API server that is down for an hour must not end the operator.

    Kopf asks for one pause before each try of a request, and for no more once it has succeeded: so ``interrupted`` is
    told when a request for nodes has failed, which Kopf tells nobody, and when it is over.
    """

    def __init__(self, interrupted: Callable[[bool], None]) -> None:
        self._interrupted = interrupted

    def __iter__(self) -> Iterator[float]:
        """Return the pauses of one request."""
        return self._pauses(_watched_by_this_task() in ("", NODES))

    def _pauses(self, concerns_nodes: bool) -> Iterator[float]:
        failed = False
        try:
            for pause in chain(PAUSES, repeat(PAUSES[-1])):
                yield pause
                if concerns_nodes and not failed:
                    failed = True
                    self._interrupted(True)
        finally:
            if failed:
                self._interrupted(False)


def _watched_by_this_task() -> str:
    """Return the resource that Kopf watches in the current task, as ``plural.version``; "" where it watches none."""
    task = asyncio.current_task()
    name = "" if task is None else task.get_name()
    return name.removeprefix("watcher for ").partition("@")[0] if name.startswith("watcher for ") else ""


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last-seen state: no handler needs one, and copying every node for it is most of what Kopf costs."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> kopf.BodyEssence:  # noqa: ARG002
        """Return nothing to compare with."""
        return kopf.BodyEssence({})

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:  # noqa: ARG002
        """Find nothing on the object."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Leave the object as it is."""


def configure(settings: kopf.OperatorSettings, interrupted: Callable[[bool], None]) -> None:
    """Tell Kopf what it may not do, and how patient it has to be; ``interrupted`` is told when it cannot see nodes."""
    # Events are ours to send, after what they tell of has happened.
    settings.posting.enabled = False
    # Peering is no lock: equal priorities would pause everyone.
    settings.peering.standalone = True
    # The kinds we watch are built in; looking out for new ones would need permissions for nothing.
    settings.scanning.disabled = True
    # Nothing is ever written to a node by Kopf, and another operator's finalizer is none of its business.
    settings.persistence.finalizer = "taintkeeper.io/unused"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="taintkeeper.io")
    settings.persistence.diffbase_storage = NoDiffBase()
    # Kopf ends the operator after its last try, and when a later page of a list is answered with 410: so it tries
    # for ever and asks for no pages.
    settings.networking.error_backoffs = ForeverBackoffs(interrupted)
    settings.networking.connect_timeout = 10.0
    settings.watching.chunk_size = None
    # A watch without even a bookmark for this long is dead, whatever TCP thinks.
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    # It would log a line for every event of every node.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    # One worker for each node lingers this long after an event: 5,000 of them need not.
    settings.queueing.idle_timeout = WORKER_IDLE_SECONDS


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Begin to work once the API server can be reached and grants what is needed, and nobody else does that work."""
    chosen, credentials = choose(memo)
    runtime = Taintkeeper(chosen, credentials)
    configure(settings, runtime.interrupted)
    try:
        await runtime.start()
        await runtime.wait_for_access()
        await runtime.wait_for_leadership()
        # Kopf would hold the list of all nodes several times over: as bytes, as text and as dictionaries.
        settings.watching.initial_streaming = await runtime.streams_lists()
    except BaseException as error:
        # Kopf calls no clean-up handler for a start that failed or was interrupted.
        await runtime.stop()
        if isinstance(error, AddressError):
            memo.fatal = str(error)
            raise kopf.PermanentError(memo.fatal) from error
        raise
    custom_handlers.register(REGISTRY, runtime.customs)
    runtime.serve()
    memo.runtime = runtime


@kopf.on.cleanup(errors=kopf.ErrorsMode.PERMANENT)
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Stop working; what is left on the cluster is enough to go on from."""
    if "runtime" in memo:
        await memo.runtime.stop()


@kopf.on.login(errors=kopf.ErrorsMode.PERMANENT)
async def login(memo: kopf.Memo, **_: Any) -> kopf.ConnectionInfo:
    """Give Kopf the credentials that we use ourselves; its session is its own, since it closes it on HTTP 401.

    Where there are none for now (an exec plugin fails, say) it asks again: without them it would end.
    """
    credentials: Credentials = memo.credentials
    try:
        return await asyncio.to_thread(credentials.for_kopf)
    except CredentialsError as error:
        raise kopf.TemporaryError(str(error), delay=LOGIN_SECONDS) from error


@kopf.on.event("", "v1", "nodes")
async def node(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """Pass a node on. Nothing is returned, since Kopf would write that into the node's status."""
    memo.runtime.node_event(event)


@kopf.on.probe(id="taintkeeper")
async def probe(memo: kopf.Memo, **_: Any) -> dict[str, str | None]:
    """Answer Kopf's own probe (``kopf run --liveness``) with what ``/readyz`` says."""
    runtime: Taintkeeper | None = memo.get("runtime")
    return {"start": "not yet"} if runtime is None else runtime.readiness()


def choose(memo: kopf.Memo) -> tuple[Settings, Credentials]:
    """Return the choices made on the command line, or under ``kopf run`` those in the environment.

    Ends the process with code 2 and one line where those cannot be used.
    """
    if "settings" not in memo:
        try:
            memo.settings = parse_settings({})
            memo.credentials = load_credentials(memo.settings.kubeconfig, memo.settings.context)
        except (SettingsError, CredentialsError) as error:
            print(f"taintkeeper: {error}", file=sys.stderr, flush=True)
            # Kopf has no exit code for this; nothing has been started yet that would have to be stopped.
            os._exit(2)
    return memo.settings, memo.credentials
