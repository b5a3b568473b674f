"""``python -m bench.probing URL`` asks for a page again and again, until its input ends, and prints how long each took.

It is a process of its own, so that what is measured is not how busy the bench is. What the operator's probe takes to
answer is for how long its event loop was busy with something else.
"""

import asyncio
import http.client
import json
import select
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.05
TIMEOUT_SECONDS = 60.0


@asynccontextmanager
async def probed(url: str) -> AsyncIterator[list[float]]:
    """Ask for the page while the block runs; what is yielded is filled at its end, with seconds.

    While nobody answers nobody is asked: so a long wait counts for each time that it would have been asked meanwhile.
    """
    command = (sys.executable, "-m", "bench.probing", url)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    times: list[float] = []
    try:
        yield times
    finally:
        output, _ = await process.communicate(b"")  # closes its input
        times += [waited for answer in json.loads(output or "[]") for waited in _moments(answer)]


def _moments(seconds: float) -> list[float]:
    return [seconds - number * PAUSE_SECONDS for number in range(int(seconds / PAUSE_SECONDS) + 1)]


def main() -> None:
    """Ask until the input ends."""
    parts = urlsplit(sys.argv[1])
    connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_SECONDS)
    times: list[float] = []
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        begun = time.monotonic()
        try:
            connection.request("GET", parts.path)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()  # it does not listen yet
            continue
        times.append(time.monotonic() - begun)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
