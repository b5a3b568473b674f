"""What a cluster administrator may choose: the flags of ``taintkeeper run``, each also an environment variable.

Names and defaults are those of kube-controller-manager where it has the same flag.
"""

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from taintkeeper.core.disruption import Marking
from taintkeeper.core.rules import Limit

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
    return Settings(**values)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Give the parser all flags; their values stay text until :func:`parse_settings` reads them."""
    for flag in FLAGS:
        shown = f" (default {flag.default})" if flag.default not in (None, "false") else ""
        text = f"{flag.help}{shown} [${flag.variable}]".replace("%", "%%")
        names = ["-v"] * (flag.name == "verbose") + [f"--{flag.name}"]
        if flag.read is _boolean:
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


def _text(text: str) -> str | None:
    return text or None


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("is neither true nor false")
    return text.lower() in ("true", "1")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError("is not a number of zero or more")
    return number


def _fraction(text: str) -> float:
    number = _number(text)
    if number > 1:
        raise ValueError("is not between 0 and 1")
    return number


def _count(text: str, *, least: int = 0) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("is not a whole number") from None
    if number < least:
        raise ValueError(f"is less than {least}")
    return number


def _limit(text: str) -> Limit:
    digits = text.removesuffix("%")
    percent = digits != text
    if not (digits.isascii() and digits.isdecimal()) or (percent and int(digits) > 100):
        raise ValueError("is neither a whole number nor a percentage such as 20%")
    return Limit(int(digits), percent)


def _at_least_one(text: str) -> int:
    return _count(text, least=1)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s)", re.ASCII)


def _duration(text: str) -> float:
    if _DURATION.fullmatch(text) is None:
        raise ValueError("is not a duration such as 50s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _address(text: str) -> tuple[str, int] | None:
    if text == "0":
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ValueError("is not an address such as :8080 or 127.0.0.1:8080, or 0 for none")
    return host.strip("[]"), int(port)


def _controllers(text: str) -> frozenset[str]:
    """Read the list as kube-controller-manager does: ``*``, ``name``, ``-name``; the first that fits a name counts."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in entries:
        if entry != "*" and entry.removeprefix("-") not in CONTROLLERS:
            raise ValueError(f"names an unknown controller {entry!r}: there are {', '.join(CONTROLLERS)}")
    chosen = frozenset(name for name in CONTROLLERS if _enabled(name, entries))
    if not chosen:
        raise ValueError("leaves no controller to run")
    return chosen


def _enabled(name: str, entries: Sequence[str]) -> bool:
    for entry in entries:
        if entry in (name, f"-{name}"):
            return entry == name
    return "*" in entries


def _marking(text: str) -> Marking:
    try:
        return Marking(text)
    except ValueError:
        raise ValueError(f"is none of {', '.join(Marking)}") from None


def _log_format(text: str) -> str:
    if text not in ("text", "json"):
        raise ValueError("is neither text nor json")
    return text


FLAGS: tuple[Flag, ...] = (
    Flag("kubeconfig", _text, None, "the kubeconfig to use; without it the pod's service account, or as kubectl does"),
    Flag("context", _text, None, "the context of the kubeconfig to use"),
    Flag(
        "controllers",
        _controllers,
        "*",
        f"which controllers run: '*' for all, 'name' for one, '-name' for all but one; of {', '.join(CONTROLLERS)}",
        "LIST",
    ),
    Flag(
        "node-eviction-rate",
        _number,
        "0.1",
        "nodes per second that are tainted NoExecute in a healthy zone",
        "RATE",
    ),
    Flag(
        "secondary-node-eviction-rate",
        _number,
        "0.01",
        "the same in a large zone in PartialDisruption; in a small one it is 0",
        "RATE",
    ),
    Flag(
        "full-disruption-rate",
        _number,
        None,
        "the same in a zone in FullDisruption; as --node-eviction-rate unless given",
        "RATE",
    ),
    Flag(
        "unhealthy-zone-threshold",
        _fraction,
        "0.55",
        "the part of a zone's nodes, more than 2, that must be not ready for PartialDisruption",
        "FRACTION",
    ),
    Flag(
        "large-cluster-size-threshold",
        _count,
        "50",
        "a zone with more nodes than this is large",
        "NODES",
    ),
    Flag(
        "storm-cooldown",
        _duration,
        "60s",
        "how long a zone keeps the lower rate after it has got better",
        "DURATION",
    ),
    Flag(
        "max-concurrent-evicting-nodes",
        _limit,
        None,
        "how many nodes, or what part of all, may be tainted NoExecute as not-ready or unreachable at once",
        "NODES|PERCENT%",
    ),
    Flag(
        "node-monitor-grace-period",
        _duration,
        "50s",
        "after how long without a sign of life a node is declared Unknown; also how long nodes are spared NoExecute "
        "after every zone had failed at once",
        "DURATION",
    ),
    Flag(
        "node-startup-grace-period",
        _duration,
        "60s",
        "the same for a node that has never reported, from its creation",
        "DURATION",
    ),
    Flag(
        "mark-pods-not-ready",
        _marking,
        "always",
        f"whether the pods of a node that is not ready are marked as not ready: {', '.join(Marking)}",
        "WHEN",
    ),
    Flag("max-concurrent-evictions", _at_least_one, "16", "evictions that may be under way at once", "COUNT"),
    Flag("dry-run", _boolean, "false", "decide and report, but write nothing to the cluster"),
    Flag("metrics-bind-address", _address, ":8080", "where /metrics is served; 0 for nowhere", "ADDRESS"),
    Flag("health-probe-bind-address", _address, ":8081", "where /healthz and /readyz are; 0 for nowhere", "ADDRESS"),
    Flag("log-format", _log_format, "text", "how log lines are written: text or json", "FORMAT"),
    Flag("verbose", _boolean, "false", "log what is decided about each object too"),
)
