"""Log lines, for people or for machines."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

QUIET = ("kopf", "aiohttp.access", "asyncio")
"""Loggers whose INFO lines tell an administrator nothing."""


def set_up_logging(log_format: str, *, verbose: bool) -> None:
    """Send log lines to standard error, as ``text`` or ``json``, from INFO up or, when verbose, from DEBUG up."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        fields = {"asctime": "time", "levelname": "level", "name": "logger"}
        handler.setFormatter(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=fields))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("taintkeeper").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
