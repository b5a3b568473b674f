"""The flags of ``taintkeeper run``, each also an environment variable.

Names and defaults are those of kube-controller-manager where it has the same flag.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from taintkeeper.core.disruption import Marking
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
    read_namespace,
    read_number,
    read_period,
    read_text,
    read_whole_seconds,
)

NODE_TAINT = "node-taint"
TAINT_EVICTION = "taint-eviction"
NODE_HEALTH = "node-health"
CONTROLLERS = (NODE_TAINT, NODE_HEALTH, TAINT_EVICTION)


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
        "how many nodes, or what part of all, may have NoExecute as not-ready, as unreachable or by a rule at once",
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
        "node-shutdown-grace-period",
        read_duration,
        "0s",
        "how long a node that shuts down in order, and says so, gets no NoExecute: its kubelet ends the pods itself",
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
        read_namespace,
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
