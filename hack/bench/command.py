"""What all benches have in common on the command line."""

import argparse
import asyncio
import functools
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bench.report import Report
from testbed.real import BuildError, StartError

say = functools.partial(print, flush=True)

CANNOT, INTERRUPTED = 2, 130


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser for a bench that this text describes."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file as well")
    return made


def run(measure: Callable[[argparse.Namespace], Coroutine[Any, Any, Report]], options: argparse.Namespace) -> int:
    """Measure, print and write what was measured; return the exit code, 2 where it cannot be measured."""
    # Both, so that a cluster is taken down however the bench is told to end.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    try:
        report = asyncio.run(measure(options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BuildError, StartError, TimeoutError) as error:
        print(f"cannot measure: {error or 'it took too long'}", file=sys.stderr)
        return CANNOT
    say(f"\n{report.table()}")
    if options.json:
        report.write(options.json)
    return 0
