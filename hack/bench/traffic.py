"""``python -m bench.traffic`` lets pods change and Leases be renewed, so many a second, as kubelets do.

It is a process of its own, so that the bench has time to measure. It prints how many there were, since a busy server
may allow fewer.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from bench.load import LEASES, NAMESPACE
from testbed.client import Kube

TICK_SECONDS = 0.05
MOST_UNDER_WAY = 32


@dataclass(slots=True)
class Done:
    """How many changes and renewals there were, in how many seconds."""

    changes: int = 0
    renewals: int = 0
    seconds: float = 0.0


@asynccontextmanager
async def traffic(kubeconfig: Path, options: argparse.Namespace) -> AsyncIterator[Done]:
    """Let there be traffic until it ends by itself, after the block; what is yielded is filled in then."""
    given = {name: getattr(options, name) for name in ("pods", "nodes", "changes", "renewals", "seconds")}
    flags = [f"--{name}={value}" for name, value in given.items()]
    command = (sys.executable, "-m", "bench.traffic", f"--kubeconfig={kubeconfig}", *flags)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    done = Done()
    try:
        yield done
        output, _ = await process.communicate()
        found = json.loads(output)
        done.changes, done.renewals, done.seconds = found["changes"], found["renewals"], found["seconds"]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _keep_going(options: argparse.Namespace) -> Done:
    done = Done()
    begun = time.monotonic()
    async with Kube(options.kubeconfig) as kube, asyncio.TaskGroup() as group:
        places = asyncio.Semaphore(MOST_UNDER_WAY)
        changes = (partial(_change, kube, done, number, options.pods) for number in count())
        renewals = (partial(_renew, kube, done, number, options.nodes) for number in count())
        for calls, rate in ((changes, options.changes), (renewals, options.renewals)):
            group.create_task(_send(calls, rate, begun + options.seconds, places))
    done.seconds = time.monotonic() - begun
    return done


async def _send(
    calls: Iterator[Callable[[], Awaitable[None]]], rate: float, end: float, places: asyncio.Semaphore
) -> None:
    """Send so many calls a second, each when it is its time: what is late is not made up for by fewer."""
    begun, sent = time.monotonic(), 0
    async with asyncio.TaskGroup() as group:
        while (now := time.monotonic()) < end:
            for _ in range(int((now - begun) * rate) - sent):
                if time.monotonic() >= end:
                    break
                await places.acquire()
                group.create_task(_one(next(calls), places))
                sent += 1
            await asyncio.sleep(TICK_SECONDS)


async def _one(call: Callable[[], Awaitable[None]], places: asyncio.Semaphore) -> None:
    try:
        await call()
    finally:
        places.release()


async def _change(kube: Kube, done: Done, number: int, pods: int) -> None:
    # A step that meets every pod once before it meets one twice, and neighbours on different nodes.
    name = f"pod-{number * 7919 % pods}"
    condition = {"type": "Ready", "status": "True" if number // pods % 2 == 0 else "False"}
    await kube.patch_status("pods", NAMESPACE, name, {"phase": "Running", "conditions": [condition]})
    done.changes += 1


async def _renew(kube: Kube, done: Done, number: int, nodes: int) -> None:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    await kube.patch("leases", LEASES, f"node-{number % nodes}", {"spec": {"renewTime": moment}})
    done.renewals += 1


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    for name in ("pods", "nodes", "changes", "renewals", "seconds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    print(json.dumps(asdict(asyncio.run(_keep_going(parser.parse_args())))))


if __name__ == "__main__":
    main()
