"""``python -m demo`` shows the operator at work, and ends with 0 only if everything it did was right."""

import argparse
import asyncio
import contextlib
import shlex
import signal
import sys
from collections.abc import Sequence

import aiohttp

from demo import beds, guest
from demo.beds import Bed
from demo.clock import Clock
from demo.story import perform
from demo.timeline import Timeline, Tone
from demo.watching import WatchEndedError
from testbed.client import ApiError
from testbed.real.build import BuildError
from testbed.real.processes import StartError

STORY_WRONG, NOT_PLAYED, INTERRUPTED = 1, 2, 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m demo", description="Shows the operator at work on a small cluster."
    )
    parser.add_argument(
        "--cluster",
        choices=("embedded", "real", "kubeconfig"),
        default="embedded",
        help="the control plane: one in this process, one of real programs, or the current context of your kubeconfig",
    )
    parser.add_argument("--yes", action="store_true", help="with kubeconfig: do not ask")
    parser.add_argument("--operator-args", default="", metavar="FLAGS", help="more flags for the operator, as one word")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the demo; return 0 if it came out right, 1 if not, 2 if it could not be played, 130 after Ctrl-C."""
    options = build_parser().parse_args(arguments)
    # A shell that starts us in the background has us ignore SIGINT, which both signals come down to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    clock = Clock()
    timeline = Timeline(clock)
    try:
        with _bed(options, timeline) as bed:
            # Building, starting and asking are no part of the story.
            clock.restart()
            timeline.say(f"Taintkeeper at work on {bed.title}", Tone.HEADING)
            timeline.say(
                "Told from what the API shows: seconds since the start, who it is about, what happened.", Tone.ASIDE
            )
            return _perform(bed, clock, timeline, shlex.split(options.operator_args))
    except (BuildError, StartError, guest.RefusedError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return NOT_PLAYED
    except KeyboardInterrupt:
        print("\ninterrupted, everything has been taken down", file=sys.stderr)
        return INTERRUPTED


def _perform(bed: Bed, clock: Clock, timeline: Timeline, operator_args: Sequence[str]) -> int:
    code = NOT_PLAYED
    try:
        code = 0 if asyncio.run(perform(bed, clock, timeline, operator_args)) else STORY_WRONG
    except* (ApiError, WatchEndedError, aiohttp.ClientError, TimeoutError) as group:
        for error in group.exceptions:
            print(f"demo: the control plane failed: {error!r}", file=sys.stderr)
    return code


def _bed(options: argparse.Namespace, timeline: Timeline) -> contextlib.AbstractContextManager[Bed]:
    if options.cluster == "embedded":
        return beds.embedded()
    if options.cluster == "real":
        return beds.real(timeline.say)
    visit = asyncio.run(guest.inspect(guest.find_kubeconfig()))
    for line in visit.plan():
        timeline.say(line, hanging=10)
    if not options.yes and not _agreed():
        raise guest.RefusedError("nothing was done")
    return contextlib.nullcontext(Bed(visit.server, visit.kubeconfig, is_ours=False))


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise guest.RefusedError("there is no terminal to ask on: say --yes to agree to the above")
    return input("Type yes to go on: ").strip() == "yes"


if __name__ == "__main__":
    sys.exit(main())
