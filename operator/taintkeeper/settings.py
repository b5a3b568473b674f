"""What a cluster administrator may choose: the flags of ``taintkeeper run``, each also an environment variable.

Names and defaults are those of kube-controller-manager where it has the same flag.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from taintkeeper.core.disruption import Marking
from taintkeeper.core.rules import Limit
from taintkeeper.flag_values import (
    read_address,
    read_at_least_one,
    read_boolean,
    read_count,
    read_duration,
    read_fraction,
    read_limit,
    read_log_format,
    read_marking,
    read_name,
    read_number,
    read_period,
    read_text,
    read_whole_seconds,
)

NODE_TAINT = "node-taint"
TAINT_EVICTION = "taint-eviction"
NODE_HEALTH = "node-health"
CONTROLLERS = (NODE_TAINT, NODE_HEALTH, TAINT_EVICTION)


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


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: its name, how its text is read, its default as text, what it is for."""

    name: str
    read: Callable[[str], Any]
    default: str | None
    help: str
    metavar: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable that says the same."""
        return "TAINTKEEPER_" + self.name.upper().replace("-", "_")

    @property
    def field(self) -> str:
        """The field of :class:`Settings` that it fills."""
        return self.name.replace("-", "_")


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


def _controllers(text: str) -> frozenset[str]:
    """Read the list as kube-controller-manager does: ``*``, ``name``, ``-name``; the first that fits a name counts."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in entries:
        name = entry.removeprefix("-")
        if entry != "*" and name not in CONTROLLERS:
            what = "is" if name == text else f"names {name!r}, which is"
            raise ValueError(f"{what} no controller: there are {', '.join(CONTROLLERS)}")
    chosen = frozenset(name for name in CONTROLLERS if _enabled(name, entries))
    if not chosen:
        raise ValueError("leaves no controller to run")
    return chosen


def _enabled(name: str, entries: Sequence[str]) -> bool:
    for entry in entries:
        if entry in (name, f"-{name}"):
            return entry == name
    return "*" in entries


FLAGS: tuple[Flag, ...] = (
    Flag("kubeconfig", read_text, None, "the kubeconfig; without it the pod's service account, or as kubectl does"),
    Flag("context", read_text, None, "the context of the kubeconfig to use"),
    Flag(
        "controllers",
        _controllers,
        "*",
        f"which controllers run: '*' for all, 'name' for one, '-name' for all but one; of {', '.join(CONTROLLERS)}",
        "LIST",
    ),
    Flag(
        "node-eviction-rate",
        read_number,
        "0.1",
        "nodes per second that are tainted NoExecute in a healthy zone",
        "RATE",
    ),
    Flag(
        "secondary-node-eviction-rate",
        read_number,
        "0.01",
        "the same in a large zone in PartialDisruption; in a small one it is 0",
        "RATE",
    ),
    Flag(
        "full-disruption-rate",
        read_number,
        None,
        "the same in a zone in FullDisruption; as --node-eviction-rate unless given",
        "RATE",
    ),
    Flag(
        "unhealthy-zone-threshold",
        read_fraction,
        "0.55",
        "the part of a zone's nodes, more than 2, that must be not ready for PartialDisruption",
        "FRACTION",
    ),
    Flag(
        "large-cluster-size-threshold",
        read_count,
        "50",
        "a zone with more nodes than this is large",
        "NODES",
    ),
    Flag(
        "storm-cooldown",
        read_duration,
        "60s",
        "how long a zone keeps the lower rate after it has got better",
        "DURATION",
    ),
    Flag(
        "max-concurrent-evicting-nodes",
        read_limit,
        None,
        "how many nodes, or what part of all, may be tainted NoExecute as not-ready or unreachable at once",
        "NODES|PERCENT%",
    ),
    Flag(
        "node-monitor-grace-period",
        read_duration,
        "50s",
        "after how long without a sign of life a node is declared Unknown; also how long nodes are spared NoExecute "
        "after every zone had failed at once",
        "DURATION",
    ),
    Flag(
        "node-startup-grace-period",
        read_duration,
        "60s",
        "the same for a node that has never reported, from its creation",
        "DURATION",
    ),
    Flag(
        "mark-pods-not-ready",
        read_marking,
        "always",
        f"whether the pods of a node that is not ready are marked as not ready: {', '.join(Marking)}",
        "WHEN",
    ),
    Flag("max-concurrent-evictions", read_at_least_one, "16", "evictions that may be under way at once", "COUNT"),
    Flag(
        "leader-elect",
        read_boolean,
        "false",
        "work only while holding a Lease, so that of several replicas one does; a dry run needs none",
    ),
    Flag(
        "leader-elect-lease-duration",
        read_whole_seconds,
        "15s",
        "how long others wait, after the last renewal that they saw, until they take the Lease",
        "DURATION",
    ),
    Flag(
        "leader-elect-renew-deadline",
        read_period,
        "10s",
        "how long after its last renewal the leader stops and ends; less than the lease duration",
        "DURATION",
    ),
    Flag(
        "leader-elect-retry-period",
        read_period,
        "2s",
        "the time between two renewals; who stands by looks twice as often",
        "DURATION",
    ),
    Flag("leader-elect-resource-name", read_name, "taintkeeper", "the name of the Lease", "NAME"),
    Flag(
        "leader-elect-resource-namespace",
        read_text,
        None,
        "its namespace; without it that of the pod ($POD_NAMESPACE), outside a cluster 'taintkeeper'",
        "NAMESPACE",
    ),
    Flag("dry-run", read_boolean, "false", "decide and report, but write nothing to the cluster"),
    Flag("metrics-bind-address", read_address, ":8080", "where /metrics is served; 0 for nowhere", "ADDRESS"),
    Flag("health-probe-bind-address", read_address, ":8081", "where /healthz, /readyz are; 0 for nowhere", "ADDRESS"),
    Flag("log-format", read_log_format, "text", "how log lines are written: text or json", "FORMAT"),
    Flag("verbose", read_boolean, "false", "log what is decided about each object too"),
)
