"""Kopf's entry points: what Kopf may do, and what it is told."""

import asyncio
import logging
import os
import threading
from itertools import islice
from pathlib import Path
from typing import Any

import kopf
import pytest

from taintkeeper import handlers
from taintkeeper.cluster.credentials import CredentialsError
from taintkeeper.serving import AddressError
from taintkeeper.settings import parse_settings

ENTRY: Any = handlers
"""Called with no more than they use; Kopf gives them far more."""

SETTINGS = parse_settings({}, {})
NODE: kopf.RawEvent = {"type": "ADDED", "object": {"metadata": {"name": "n1"}}}


class Runtime:
    """Stands for the operator; fails where a test says so."""

    fails: BaseException | None = None
    elected_after = 0.0
    made: "list[Runtime]"
    customs = ("nodetaintrules",)
    streams = True

    def __init__(self, settings: object, credentials: object) -> None:
        self.given = (settings, credentials)
        self.calls: list[Any] = []
        type(self).made.append(self)

    async def start(self) -> None:
        self.calls.append("start")
        if self.fails is not None:
            raise self.fails

    async def wait_for_access(self) -> None:
        self.calls.append("wait")
        await asyncio.sleep(0.01)

    async def wait_for_leadership(self) -> None:
        self.calls.append("lead")
        await asyncio.sleep(self.elected_after)

    def interrupted(self, interrupted: bool) -> None:
        self.calls.append("interrupted" if interrupted else "works again")

    async def streams_lists(self) -> bool:
        return self.streams

    def serve(self) -> None:
        self.calls.append("serve")

    async def stop(self) -> None:
        self.calls.append("stop")

    def node_event(self, event: object) -> str:
        self.calls.append(event)
        return "something"

    def readiness(self) -> dict[str, str | None]:
        return {"access": None}


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """No operator of ours is started."""
    monkeypatch.setattr(Runtime, "made", [], raising=False)
    monkeypatch.setattr(Runtime, "fails", None)
    monkeypatch.setattr(handlers, "Taintkeeper", Runtime)
    monkeypatch.setattr(handlers, "REGISTRY", kopf.OperatorRegistry())


def memo(**more: Any) -> kopf.Memo:
    return kopf.Memo(settings=SETTINGS, credentials="credentials", **more)


def configured() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    handlers.configure(settings, interrupted=lambda _: None)
    return settings


def test_kopf_sends_no_events_and_coordinates_with_nobody() -> None:
    settings = configured()
    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
    assert settings.scanning.disabled is True


@pytest.mark.reported("nolar/kopf#833")
def test_kopf_has_nothing_to_write_to_a_node_and_no_finalizer_of_others_to_remove() -> None:
    persistence = configured().persistence
    assert persistence.finalizer == "taintkeeper.io/unused"
    assert persistence.finalizer != kopf.OperatorSettings().persistence.finalizer
    assert isinstance(persistence.progress_storage, kopf.AnnotationsProgressStorage)
    assert persistence.progress_storage.prefix == "taintkeeper.io"
    assert isinstance(persistence.diffbase_storage, handlers.NoDiffBase)


@pytest.mark.reported("nolar/kopf#1276")
def test_a_watch_of_kopfs_that_is_silent_is_given_up_and_it_never_asks_for_pages() -> None:
    settings = configured()
    assert settings.watching.inactivity_timeout == 90.0
    assert settings.watching.chunk_size is None
    assert settings.networking.connect_timeout == 10.0


@pytest.mark.reported("nolar/kopf#833")
def test_workers_of_kopfs_do_not_linger_and_objects_are_not_logged() -> None:
    assert configured().queueing.idle_timeout == 0.2
    assert logging.getLogger("kopf.objects").level == logging.WARNING


async def test_kopf_tries_for_ever_and_each_time_from_the_beginning() -> None:
    backoffs: Any = configured().networking.error_backoffs
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert pauses[:5] == [0.5, 1.0, 2.0, 4.0, 5.0]
        assert pauses[5:] == [5.0] * 995
    one, other = iter(backoffs), iter(backoffs)
    assert (next(one), next(one), next(other)) == (0.5, 1.0, 0.5)


@pytest.mark.parametrize("task", ["watcher for nodes.v1@None", "Task-1"])
async def test_it_is_told_when_kopf_cannot_see_nodes_and_when_it_can_again(task: str) -> None:
    told: list[bool] = []

    async def request(failures: int) -> None:
        for tries, _ in enumerate(handlers.ForeverBackoffs(told.append)):
            if tries == failures:
                return

    await asyncio.create_task(request(0), name=task)
    assert told == []
    await asyncio.create_task(request(3), name=task)
    assert told == [True, False]


async def test_what_else_kopf_cannot_see_says_nothing_of_nodes() -> None:
    told: list[bool] = []

    async def request() -> None:
        assert len(list(islice(handlers.ForeverBackoffs(told.append), 5))) == 5

    await asyncio.create_task(request(), name="watcher for nodetaintrules.v1alpha1.taintkeeper.io@None")
    assert told == []


def test_no_last_seen_state_is_built_or_kept() -> None:
    storage = handlers.NoDiffBase()
    body = kopf.Body({"metadata": {"name": "n1", "annotations": {"kopf.zalando.org/last-handled-configuration": "{}"}}})
    patch = kopf.Patch()
    assert storage.build(body=body) == {}
    assert storage.build(body=body, extra_fields=["status"]) == {}
    assert storage.fetch(body=body) is None
    storage.store(body=body, patch=patch, essence=kopf.BodyEssence({"spec": {}}))
    assert dict(patch) == {}


@pytest.mark.reported("nolar/kopf#833")
def test_nodes_are_watched_and_nothing_is_registered_that_writes_to_an_object() -> None:
    registry: Any = kopf.get_default_registry()
    watching = list(registry._watching._handlers)
    assert [(each.fn.__name__, each.selector.plural or each.selector.any_name) for each in watching] == [
        ("node", "nodes")
    ]
    for kind in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert not list(getattr(registry, kind)._handlers), kind


async def test_it_works_only_once_it_is_allowed_to() -> None:
    mind = memo()
    await ENTRY.start(settings=kopf.OperatorSettings(), memo=mind)
    (made,) = Runtime.made
    assert made.given == (SETTINGS, "credentials")
    assert made.calls == ["start", "wait", "lead", "serve"]
    assert mind.runtime is made
    (custom,) = ENTRY.REGISTRY._watching._handlers
    assert custom.selector.any_name == "nodetaintrules", "what the controllers need of our own kinds"


@pytest.mark.reported("kopf worker per object (worker_limit None, idle_timeout 5 s)")
@pytest.mark.parametrize("streams", [True, False])
async def test_kopf_holds_no_list_of_all_nodes_where_the_server_can_stream_it(
    monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    monkeypatch.setattr(Runtime, "streams", streams)
    settings = kopf.OperatorSettings()
    await ENTRY.start(settings=settings, memo=memo())
    assert settings.watching.initial_streaming is streams


async def test_an_address_that_is_taken_is_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "fails", AddressError("--metrics-bind-address: ':8080' cannot be served"))
    mind = memo()
    with pytest.raises(kopf.PermanentError, match=r"^--metrics-bind-address: ':8080' cannot be served$"):
        await ENTRY.start(settings=kopf.OperatorSettings(), memo=mind)
    assert Runtime.made[0].calls == ["start", "stop"]
    assert mind.fatal == "--metrics-bind-address: ':8080' cannot be served"
    assert "runtime" not in mind


async def test_another_fault_at_the_start_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "fails", KeyError("x"))
    mind = memo()
    with pytest.raises(KeyError):
        await ENTRY.start(settings=kopf.OperatorSettings(), memo=mind)
    assert Runtime.made[0].calls == ["start", "stop"]
    assert "fatal" not in mind


async def test_a_start_that_is_interrupted_closes_what_was_opened() -> None:
    task = asyncio.create_task(ENTRY.start(settings=kopf.OperatorSettings(), memo=memo()))
    await asyncio.sleep(0.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert Runtime.made[0].calls == ["start", "wait", "stop"]


async def test_a_standby_that_is_told_to_end_closes_what_was_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "elected_after", 3600.0)
    task = asyncio.create_task(ENTRY.start(settings=kopf.OperatorSettings(), memo=memo()))
    while not Runtime.made or "lead" not in Runtime.made[0].calls:  # noqa: ASYNC110 - there is nobody to tell
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert Runtime.made[0].calls == ["start", "wait", "lead", "stop"]


async def test_stopping_stops_what_was_started() -> None:
    mind = memo(runtime=Runtime(None, None))
    await ENTRY.stop(memo=mind)
    assert mind.runtime.calls == ["stop"]
    await ENTRY.stop(memo=memo())


async def test_a_node_is_passed_on_and_nothing_is_returned_that_kopf_would_write() -> None:
    mind = memo(runtime=Runtime(None, None))
    assert await ENTRY.node(event=NODE, memo=mind) is None
    assert mind.runtime.calls == [NODE]


async def test_kopf_gets_our_credentials_without_holding_anything_up() -> None:
    threads: list[int] = []
    info = kopf.ConnectionInfo(server="https://k8s.example.com")

    class Credentials:
        def for_kopf(self) -> kopf.ConnectionInfo:
            threads.append(threading.get_ident())
            return info

    assert await ENTRY.login(memo=kopf.Memo(credentials=Credentials())) is info
    assert threads != [threading.get_ident()], "an exec plugin may take seconds"


async def test_kopf_asks_again_for_credentials_that_cannot_be_had_now() -> None:
    class Credentials:
        def for_kopf(self) -> kopf.ConnectionInfo:
            raise CredentialsError("the exec plugin failed")

    with pytest.raises(kopf.TemporaryError, match="the exec plugin failed") as caught:
        await ENTRY.login(memo=kopf.Memo(credentials=Credentials()))
    assert caught.value.delay == 10.0


async def test_kopfs_own_probe_says_what_ours_says() -> None:
    assert await ENTRY.probe(memo=kopf.Memo()) == {"start": "not yet"}
    assert await ENTRY.probe(memo=memo(runtime=Runtime(None, None))) == {"access": None}


def test_choices_of_the_command_line_are_kept() -> None:
    assert ENTRY.choose(memo()) == (SETTINGS, "credentials")


def test_under_kopf_run_the_environment_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAINTKEEPER_DRY_RUN", "true")
    monkeypatch.setattr(handlers, "load_credentials", lambda *given: given)
    monkeypatch.setenv("TAINTKEEPER_KUBECONFIG", str(tmp_path))
    mind = kopf.Memo()
    settings, credentials = ENTRY.choose(mind)
    assert settings.dry_run
    assert credentials == (str(tmp_path), None)
    assert (mind.settings, mind.credentials) == (settings, credentials)


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("TAINTKEEPER_DRY_RUN", "perhaps", "TAINTKEEPER_DRY_RUN: 'perhaps'"),
        ("TAINTKEEPER_KUBECONFIG", "/missing", "'/missing' cannot be used"),
    ],
)
def test_under_kopf_run_a_bad_choice_ends_the_process_with_one_line(
    variable: str, value: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit, match="2"):
        ENTRY.choose(kopf.Memo())
    error = capsys.readouterr().err
    assert error.startswith("taintkeeper: ")
    assert named in error
    assert error.count("\n") == 1
