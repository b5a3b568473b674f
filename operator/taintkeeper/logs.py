"""Log lines, for people or for machines."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

QUIET = ("kopf", "aiohttp.access", "asyncio")
"""Loggers whose INFO lines tell an administrator nothing."""


def set_up_logging(log_format: str, *, verbose: bool, dry_run: bool) -> None:
    """Send log lines to standard error, as ``text`` or ``json``, from INFO up or, when verbose, from DEBUG up.

    In a dry run every line says so, since each tells of something that has not really been done.
    """
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        extra = {"dry_run": True} if dry_run else {}
        fields = {"asctime": "time", "levelname": "level", "name": "logger"}
        handler.setFormatter(
            JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=fields, static_fields=extra)
        )
    else:
        mark = "(dry run) " if dry_run else ""
        handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)-7s %(name)s: {mark}%(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("taintkeeper").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
