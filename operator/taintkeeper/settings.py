"""What a cluster administrator may choose, read from flags and environment variables."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from taintkeeper.core.disruption import Marking
from taintkeeper.core.rules import Limit
from taintkeeper.flag_values import read_boolean
from taintkeeper.flags import FLAGS, Flag


class SettingsError(Exception):
    """A flag or variable cannot be used; the message names it and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All choices, checked. Rates are in nodes per second, periods in seconds; addresses are (host, port) or None."""

    kubeconfig: str | None
    context: str | None
    controllers: frozenset[str]
    node_eviction_rate: float
    secondary_node_eviction_rate: float
    full_disruption_rate: float
    unhealthy_zone_threshold: float
    large_cluster_size_threshold: int
    storm_cooldown: float
    max_concurrent_evicting_nodes: Limit | None
    node_monitor_grace_period: float
    node_startup_grace_period: float
    node_shutdown_grace_period: float
    mark_pods_not_ready: Marking
    max_concurrent_evictions: int
    leader_elect: bool
    leader_elect_lease_duration: int
    leader_elect_renew_deadline: float
    leader_elect_retry_period: float
    leader_elect_resource_name: str
    leader_elect_resource_namespace: str | None
    dry_run: bool
    metrics_bind_address: tuple[str, int] | None
    health_probe_bind_address: tuple[str, int] | None
    log_format: str
    verbose: bool


def parse_settings(flags: Mapping[str, str | None], environment: Mapping[str, str] = os.environ) -> Settings:
    """Build the settings: a flag wins over its variable, that over the default.

    ``flags`` maps the names of flags to their text, None where they were not given. Raises :class:`SettingsError`.
    """
    values: dict[str, Any] = {}
    for flag in FLAGS:
        text, source = flags.get(flag.name), f"--{flag.name}"
        if text is None:
            text, source = environment.get(flag.variable), flag.variable
        if text is None:
            text, source = flag.default, f"--{flag.name}"
        values[flag.field] = None if text is None else _read(flag, text, source)
    if values["full_disruption_rate"] is None:
        values["full_disruption_rate"] = values["node_eviction_rate"]
    _check_order(values)
    return Settings(**values)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Give the parser all flags; their values stay text until :func:`parse_settings` reads them."""
    for flag in FLAGS:
        shown = f" (default {flag.default})" if flag.default not in (None, "false") else ""
        text = f"{flag.help}{shown} [${flag.variable}]".replace("%", "%%")
        names = ["-v"] * (flag.name == "verbose") + [f"--{flag.name}"]
        if flag.read is read_boolean:
            parser.add_argument(*names, nargs="?", const="true", metavar="true|false", help=text)
        else:
            parser.add_argument(f"--{flag.name}", metavar=flag.metavar, help=text)


def given_flags(namespace: argparse.Namespace) -> dict[str, str | None]:
    """Return the text of each flag as it was given, None where it was not."""
    return {flag.name: getattr(namespace, flag.field) for flag in FLAGS}


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports a mistake in one line, without the usage; exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the mistake and exit with 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def _read(flag: Flag, text: str, source: str) -> Any:
    try:
        return flag.read(text)
    except ValueError as error:
        raise SettingsError(f"{source}: {text!r} {error}") from None


def _check_order(values: Mapping[str, Any]) -> None:
    """Hold the times of the election to what makes it safe (``NewLeaderElector`` in client-go)."""
    names = ("leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period")
    for longer, shorter in pairwise(names):
        longest, least = (values[name.replace("-", "_")] for name in (longer, shorter))
        if longest <= least:
            raise SettingsError(f"--{longer}: {longest:g}s is not longer than --{shorter}, which is {least:g}s")
