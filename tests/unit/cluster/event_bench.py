"""An event sink at work in virtual time, with an API server that follows a script."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from taintkeeper.cluster.events import EventSink, Notice, Subject
from tests.unit.cluster.scripted_api import Answer, ScriptedApi, reply

START = 1767225600.0
POD = Subject("Pod", "p1", "p1-uid", "default")
EVICTED = Notice(POD, "Normal", "TaintManagerEviction", "Marking for deletion Pod default/p1")
BLOCKED = Notice(POD, "Warning", "EvictionBlocked", "Eviction of pod default/p1 is blocked")
TAINTED = Notice(Subject("Node", "n1", "n1-uid"), "Normal", "TaintAdded", "Taint foo:NoSchedule added")
CREATED = reply(201, {})


@dataclass
class SinkBench:
    """A sink at work, with a switch for what is more important."""

    api: ScriptedApi
    busy: bool = False
    dropped: int = 0
    sink: EventSink = field(init=False)

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.sink = EventSink(
            self.api, lambda: START + loop.time(), Random(0), busy=lambda: self.busy, dropped=self._count
        )

    def _count(self) -> None:
        self.dropped += 1

    def calls(self) -> list[str]:
        return [sent.call.method for sent in self.api.sent]

    def body(self, index: int = -1) -> Any:
        return self.api.sent[index].call.body


@contextlib.asynccontextmanager
async def at_work(*script: Answer) -> AsyncIterator[SinkBench]:
    bench = SinkBench(ScriptedApi(*script, forever=CREATED))
    task = asyncio.create_task(bench.sink.run())
    try:
        yield bench
        assert not task.done(), "nothing may end it"
    finally:
        task.cancel()
