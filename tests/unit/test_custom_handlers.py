"""Kopf's entry point for objects of our own kinds."""

from types import SimpleNamespace
from typing import Any

import kopf

from taintkeeper import custom_handlers
from taintkeeper.cluster.rule_wire import RULES

ENTRY: Any = custom_handlers
EVENT: kopf.RawEvent = {"type": "ADDED", "object": {"metadata": {"name": "r"}}}


class Runtime:
    """Stands for the operator."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def custom_event(self, resource: str, event: Any) -> str:
        self.told.append((resource, event))
        return "something"


def registered(*resources: str) -> Any:
    registry: Any = kopf.OperatorRegistry()
    custom_handlers.register(registry, resources)
    return registry


def test_what_is_asked_for_is_watched_and_nothing_is_registered_that_writes_to_it() -> None:
    registry = registered(RULES.resource)
    (watching,) = registry._watching._handlers
    selector = watching.selector
    assert f"/apis/{selector.group}/{selector.version}/{selector.plural or selector.any_name}" == RULES.path
    for kind in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert not list(getattr(registry, kind)._handlers), kind


def test_nothing_is_watched_that_nobody_asks_for() -> None:
    assert not registered()._watching._handlers


def test_each_event_is_told_once_however_often_kopf_was_started() -> None:
    registry = registered(RULES.resource, RULES.resource)
    resource = kopf.Resource("taintkeeper.io", "v1alpha1", RULES.resource)
    cause = SimpleNamespace(resource=resource, body={}, patch={}, memo=None, logger=None)
    assert len(registry._watching.get_handlers(cause)) == 1


async def test_an_object_is_passed_on_with_its_resource_and_nothing_is_returned_that_kopf_would_write() -> None:
    runtime = Runtime()
    resource = SimpleNamespace(plural=RULES.resource)
    assert await ENTRY.custom(event=EVENT, resource=resource, memo=kopf.Memo(runtime=runtime)) is None
    assert runtime.told == [(RULES.resource, EVENT)]
