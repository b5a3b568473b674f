"""Objects of our own kinds, rules here, as they are seen: through Kopf at once, through our own lists in any case."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any
from uuid import uuid4

import kopf
import pytest

from taintkeeper import custom_handlers, handlers
from taintkeeper.cluster import custom_feed, rule_wire
from taintkeeper.cluster.client import ApiClient
from taintkeeper.cluster.credentials import Credentials, load_credentials
from taintkeeper.cluster.custom_feed import CustomFeed, CustomListener
from taintkeeper.cluster.custom_writer import ApiCustomWriter
from taintkeeper.core.rules import RuleCondition, RuleSeen, RuleStatus
from testbed import Cluster
from testbed.client import until
from tests.cluster.rule_definition import RULES, Definition, rule
from tests.cluster.world import World
from tests.rule_specs import spec


class Eyes:
    """Stands for the operator: what it is told by Kopf, and what its feed makes of that."""

    def __init__(self, credentials: Credentials) -> None:
        self.client = ApiClient(credentials, observe=lambda *_: None)
        self.nodes: set[str] = set()
        self.events: list[tuple[str, str]] = []
        self.rules: dict[str, RuleSeen] = {}
        self.lists = 0
        self.defined: list[bool] = []
        listener = CustomListener(
            seen=self._see, gone=self._drop, listed=self._count, defined=self.defined.append, failed=lambda _: None
        )
        self.feed = CustomFeed(self.client, rule_wire.RULES, listener, Random(0))

    def custom_event(self, resource: str, event: kopf.RawEvent) -> None:
        """Take in an event of a rule."""
        assert resource == RULES
        self.events.append((str(event["type"]), event["object"]["metadata"]["name"]))
        self.feed.take(event)

    def has_status(self, name: str, status: RuleStatus) -> bool:
        """Say whether a rule was seen with this status."""
        return name in self.rules and self.rules[name].status == status

    def _see(self, seen: RuleSeen) -> None:
        self.rules[seen.name] = seen

    def _drop(self, name: str) -> None:
        del self.rules[name]

    def _count(self) -> None:
        self.lists += 1


@asynccontextmanager
async def watching(cluster: Cluster) -> AsyncIterator[Eyes]:
    """Run Kopf as the operator does, with a handler for nodes and the one for rules, and the feed beside it."""
    credentials = load_credentials(str(cluster.kubeconfig), None)
    eyes = Eyes(credentials)
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return credentials.for_kopf()

    @kopf.on.event("", "v1", "nodes", registry=registry)
    async def node(event: kopf.RawEvent, **_: Any) -> None:
        eyes.nodes.add(event["object"]["metadata"]["name"])

    custom_handlers.register(registry, [RULES])
    settings = kopf.OperatorSettings()
    handlers.configure(settings, lambda _: None)
    stop = asyncio.Event()
    existing = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=settings,
        memo=kopf.Memo(runtime=eyes),
        clusterwide=True,
        stop_flag=stop,
        identity="test",  # type: ignore[arg-type]
    )
    kopf_runs = asyncio.create_task(kopf.run_tasks(tasks, ignored=existing))
    feed_runs = asyncio.create_task(eyes.feed.run())
    try:
        yield eyes
        assert not kopf_runs.done(), "Kopf has ended"
    finally:
        stop.set()
        feed_runs.cancel()
        await asyncio.wait([kopf_runs, feed_runs])
        await eyes.client.close()


@pytest.fixture
def name() -> str:
    """The name of a rule that no other test uses."""
    return f"rule-{uuid4().hex[:8]}"


async def test_without_the_definition_the_rest_goes_on_and_rules_are_noticed_once_it_is_installed(
    world: World, cluster: Cluster, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(custom_feed, "SWEEP_SECONDS", 0.5)
    definition = Definition(cluster, world.kube)
    await definition.remove()
    with caplog.at_level(logging.WARNING):
        async with watching(cluster) as eyes:
            node = await world.node()
            await until(lambda: node in eyes.nodes)
            await until(lambda: eyes.lists >= 4)
            assert eyes.defined == [False]
            (told,) = [each.getMessage() for each in caplog.records if RULES in each.getMessage()]
            assert "try creating their CRDs" in told
            await definition.install()
            await world.kube.create(RULES, rule(spec(), name))
            await until(lambda: name in eyes.rules)
            await world.kube.delete(RULES, "", name)
            await until(lambda: name not in eyes.rules)
            assert eyes.defined == [False, True]
            assert eyes.events == [], "Kopf does not look again"


async def test_what_happens_to_a_rule_is_seen_at_once(world: World, cluster: Cluster, name: str) -> None:
    await Definition(cluster, world.kube).install()
    await world.kube.create(RULES, rule(spec(), f"{name}-before"))
    async with watching(cluster) as eyes:
        await until(lambda: ("None", f"{name}-before") in eyes.events)
        await world.kube.create(RULES, rule(spec(), name))
        await until(lambda: name in eyes.rules, 5.0)
        await world.kube.patch(RULES, "", name, {"spec": {"forSeconds": 60}}, "application/merge-patch+json")
        await until(lambda: eyes.rules[name].generation == 2, 5.0)
        await world.kube.delete(RULES, "", name)
        await until(lambda: name not in eyes.rules, 5.0)
        assert [type_ for type_, about in eyes.events if about == name] == ["ADDED", "MODIFIED", "DELETED"]
        await world.kube.delete(RULES, "", f"{name}-before")


async def test_a_status_is_written_and_read_back_and_is_no_new_generation(
    world: World, cluster: Cluster, name: str
) -> None:
    await Definition(cluster, world.kube).install()
    await world.kube.create(RULES, rule(spec(), name))
    conditions = tuple(
        RuleCondition(type_, "True", "Fine", "All is well.", 1767225600.0) for type_ in ("Accepted", "Active")
    )
    first, second = RuleStatus(1, 10, 1, 2, 3, conditions), RuleStatus(1, 10, 0, 3, 0, conditions[:1])
    async with watching(cluster) as eyes:
        writer = ApiCustomWriter(eyes.client)
        for status in (first, second):
            assert await writer.write_status(rule_wire.RULES, name, status)
            await until(partial(eyes.has_status, name, status))
        assert (await world.kube.get(RULES, "", name))["metadata"]["generation"] == 1
        await world.kube.delete(RULES, "", name)
        assert await writer.write_status(rule_wire.RULES, name, first)
