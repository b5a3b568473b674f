"""The command: ``taintkeeper run``."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from random import Random
from typing import Any

import kopf

from taintkeeper import __version__, handlers
from taintkeeper.cluster.credentials import Credentials, CredentialsError, load_credentials
from taintkeeper.core.pacing import Backoff
from taintkeeper.logs import set_up_logging
from taintkeeper.settings import (
    OneLineParser,
    Settings,
    SettingsError,
    add_flags,
    given_flags,
    parse_settings,
)

logger = logging.getLogger("taintkeeper")

RESTART_BACKOFF = Backoff(base=1.0, cap=60.0)
LONG_RUN_SECONDS = 600.0
"""After a run that was this long, what ended it is no longer the same fault again."""
USAGE_ERROR = 2


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    about = "Taints nodes by their conditions and evicts what does not tolerate them, disruption budgets first."
    parser = OneLineParser(prog="taintkeeper", description=about, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"taintkeeper {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    does = "Runs the operator until it is told to stop."
    # What is an abbreviation today may be another flag's name, or nobody's, in the next version.
    run = commands.add_parser("run", help="run the operator", description=does, allow_abbrev=False)
    add_flags(run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0 after a signal, 1 after an error of ours, 2 for a bad flag."""
    namespace = build_parser().parse_args(arguments)
    try:
        settings = parse_settings(given_flags(namespace))
        credentials = load_credentials(settings.kubeconfig, settings.context)
    except (SettingsError, CredentialsError) as error:
        print(f"taintkeeper: {error}", file=sys.stderr)
        return USAGE_ERROR
    set_up_logging(settings.log_format, verbose=settings.verbose, dry_run=settings.dry_run)
    return asyncio.run(run_operator(settings, credentials))


async def run_operator(settings: Settings, credentials: Credentials) -> int:
    """Run the operator until SIGINT or SIGTERM; return the exit code.

    Kopf ends when a watch fails in a way it does not know. That is no reason for us to end: it is started again, and
    with it everything, since a restart is a start.
    """
    stopping = asyncio.Event()
    attempt = 0
    while True:
        memo = kopf.Memo(settings=settings, credentials=credentials)
        began = asyncio.get_running_loop().time()
        error = await _run_once(memo, stopping)
        runtime = memo.get("runtime")
        if runtime is not None and runtime.failure is not None:
            return 1
        if stopping.is_set():
            return 0
        if "fatal" in memo:
            return 1
        if asyncio.get_running_loop().time() - began >= LONG_RUN_SECONDS:
            attempt = 0
        pause = RESTART_BACKOFF.delay(attempt, Random())
        logger.error("the watch of nodes ended (%s), starting again in %.0f s", error or "no reason given", pause)
        attempt += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), pause)
            return 0


async def _run_once(memo: kopf.Memo, stopping: asyncio.Event) -> BaseException | None:
    existing = asyncio.all_tasks()
    # Otherwise Kopf asks the system for our user's name, which may have none, and a name server for our host's.
    identity: Any = os.environ.get("POD_NAME", "taintkeeper")
    tasks = await kopf.spawn_tasks(
        registry=handlers.REGISTRY, memo=memo, clusterwide=True, stop_flag=stopping, identity=identity
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # In place of Kopf's own, which do not let us tell a signal from a failure.
        loop.add_signal_handler(number, stopping.set)
    try:
        await kopf.run_tasks(tasks, ignored=existing)
    except Exception as error:
        return error
    return None
