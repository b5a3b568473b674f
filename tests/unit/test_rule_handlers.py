"""Kopf's entry point for rules."""

from typing import Any

import kopf

from taintkeeper import rule_handlers
from taintkeeper.cluster.rule_feed import RULES_PATH

ENTRY: Any = rule_handlers
EVENT: kopf.RawEvent = {"type": "ADDED", "object": {"metadata": {"name": "r"}}}


class Runtime:
    """Stands for the operator."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def rule_event(self, event: Any) -> str:
        self.told.append(event)
        return "something"


def test_rules_are_watched_and_nothing_is_registered_that_writes_to_them() -> None:
    registry: Any = kopf.OperatorRegistry()
    rule_handlers.register(registry)
    (watching,) = registry._watching._handlers
    selector = watching.selector
    assert f"/apis/{selector.group}/{selector.version}/{selector.plural or selector.any_name}" == RULES_PATH
    for kind in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert not list(getattr(registry, kind)._handlers), kind


async def test_a_rule_is_passed_on_and_nothing_is_returned_that_kopf_would_write() -> None:
    runtime = Runtime()
    assert await ENTRY.rule(event=EVENT, memo=kopf.Memo(runtime=runtime)) is None
    assert runtime.told == [EVENT]
