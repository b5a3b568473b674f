"""Every choice of a cluster administrator: where it comes from, what it means, and what is said of a bad one."""

from typing import Any

import pytest

from taintkeeper.core.disruption import Marking
from taintkeeper.core.rules import Limit
from taintkeeper.flags import CONTROLLERS, FLAGS, NODE_HEALTH, NODE_TAINT, TAINT_EVICTION, Flag
from taintkeeper.settings import SettingsError, parse_settings

ALL = frozenset(CONTROLLERS)

VALUES: dict[str, tuple[str, Any, str, Any]] = {
    "kubeconfig": ("/a", "/a", "/b", "/b"),
    "context": ("prod", "prod", "test", "test"),
    "controllers": ("node-taint", frozenset({NODE_TAINT}), "taint-eviction", frozenset({TAINT_EVICTION})),
    "node-eviction-rate": ("0.5", 0.5, "2", 2.0),
    "secondary-node-eviction-rate": ("0.5", 0.5, "0", 0.0),
    "full-disruption-rate": ("0", 0.0, "3", 3.0),
    "unhealthy-zone-threshold": ("0.3", 0.3, "1", 1.0),
    "large-cluster-size-threshold": ("10", 10, "0", 0),
    "storm-cooldown": ("0s", 0.0, "5m", 300.0),
    "node-shutdown-grace-period": ("30s", 30.0, "0s", 0.0),
    "max-concurrent-evicting-nodes": ("3", Limit(3), "20%", Limit(20, percent=True)),
    "node-monitor-grace-period": ("1m30s", 90.0, "40s", 40.0),
    "node-startup-grace-period": ("2m", 120.0, "0s", 0.0),
    "mark-pods-not-ready": ("unless-zone-disrupted", Marking.UNLESS_ZONE, "always", Marking.ALWAYS),
    "max-concurrent-evictions": ("1", 1, "64", 64),
    "leader-elect": ("true", True, "false", False),
    "leader-elect-lease-duration": ("11s", 11, "2m", 120),
    "leader-elect-renew-deadline": ("2500ms", 2.5, "14s", 14.0),
    "leader-elect-retry-period": ("500ms", 0.5, "9s", 9.0),
    "leader-elect-resource-name": ("one", "one", "two", "two"),
    "leader-elect-resource-namespace": ("one", "one", "two", "two"),
    "dry-run": ("true", True, "false", False),
    "metrics-bind-address": ("127.0.0.1:9", ("127.0.0.1", 9), "0", None),
    "health-probe-bind-address": (":9", ("", 9), "0", None),
    "log-format": ("json", "json", "text", "text"),
    "verbose": ("true", True, "false", False),
}
"""For each flag two texts with what they mean."""

DEFAULTS = {
    "kubeconfig": None,
    "context": None,
    "controllers": ALL,
    "node_eviction_rate": 0.1,
    "secondary_node_eviction_rate": 0.01,
    "full_disruption_rate": 0.1,
    "unhealthy_zone_threshold": 0.55,
    "large_cluster_size_threshold": 50,
    "storm_cooldown": 60.0,
    "max_concurrent_evicting_nodes": None,
    "node_monitor_grace_period": 50.0,
    "node_startup_grace_period": 60.0,
    "node_shutdown_grace_period": 0.0,
    "mark_pods_not_ready": Marking.ALWAYS,
    "max_concurrent_evictions": 16,
    "leader_elect": False,
    "leader_elect_lease_duration": 15,
    "leader_elect_renew_deadline": 10.0,
    "leader_elect_retry_period": 2.0,
    "leader_elect_resource_name": "taintkeeper",
    "leader_elect_resource_namespace": None,
    "dry_run": False,
    "metrics_bind_address": ("", 8080),
    "health_probe_bind_address": ("", 8081),
    "log_format": "text",
    "verbose": False,
}

BAD: dict[str, list[str]] = {
    "kubeconfig": [],
    "context": [],
    "controllers": [
        *("", ",", "node", "*,node", "-", "-*", "--node-taint", "Node-Taint", "-node-taint", "-node-health"),
        *("*,-node-taint,-node-health,-taint-eviction", "-node-taint,*,-taint-eviction,-node-health"),
    ],
    "node-eviction-rate": ["", "fast", "-1", "-0.1", "nan", "inf", "1/s", "0,1"],
    "secondary-node-eviction-rate": ["", "slow", "-1"],
    "full-disruption-rate": ["", "none", "-1"],
    "unhealthy-zone-threshold": ["", "half", "-0.1", "1.1", "55", "55%", "nan"],
    "large-cluster-size-threshold": ["", "large", "-1", "1.5", "1e3"],
    "storm-cooldown": ["", "60", "-1s"],
    "max-concurrent-evicting-nodes": ["", "all", "-1", "1.5", "101%", "%", "20 %", "\u0663", "3%%"],
    "node-monitor-grace-period": ["", "50", "50 s", "s", "-50s", "1d", "50S", "1m 30s", "1.2.3s", "\u0665s", "50s\n"],
    "node-startup-grace-period": ["", "60", "-1s"],
    "node-shutdown-grace-period": ["", "30", "-1s"],
    "mark-pods-not-ready": ["", "never", "true", "Always", "unless"],
    "max-concurrent-evictions": ["", "many", "0", "-1", "1.5"],
    "leader-elect": ["", "yes"],
    "leader-elect-lease-duration": ["", "15", "0s", "1500ms", "-15s"],
    "leader-elect-renew-deadline": ["", "10", "0s"],
    "leader-elect-retry-period": ["", "2", "0s"],
    "leader-elect-resource-name": ["", "Foo", "foo/bar", "-foo", "foo.", "a" * 254],
    "leader-elect-resource-namespace": ["Foo", "foo.bar", "foo/bar", "-", "a" * 64],
    "dry-run": ["", "yes", "2", "on"],
    "metrics-bind-address": [
        *("", "8080", ":", ":http", "host:", ":-1", ":65536", "localhost", ":80 "),
        *("256.1.1.1:80", "a.b:80", "::1:80", "[::1:80", "[127.0.0.1]:80"),
    ],
    "health-probe-bind-address": ["", "8081", ":70000", "00"],
    "log-format": ["", "xml", "JSON"],
    "verbose": ["", "very"],
}

every_flag = pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)


def rows(table: dict[str, list[str]]) -> list[Any]:
    return [pytest.param(name, text, id=f"{name}={text!r}") for name, texts in table.items() for text in texts]


def read(name: str, text: str) -> Any:
    return getattr(parse_settings({name: text}, {}), name.replace("-", "_"))


def test_without_any_choice_everything_is_as_in_kube_controller_manager() -> None:
    settings = parse_settings({}, {})
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert set(DEFAULTS) == {flag.field for flag in FLAGS}


@every_flag
def test_a_flag_wins_over_its_variable_and_that_over_the_default(flag: Flag) -> None:
    one, one_means, other, other_means = VALUES[flag.name]
    variable = "TAINTKEEPER_" + flag.name.upper().replace("-", "_")
    assert getattr(parse_settings({flag.name: one}, {}), flag.field) == one_means
    assert getattr(parse_settings({flag.name: None}, {variable: one}), flag.field) == one_means
    assert getattr(parse_settings({flag.name: other}, {variable: one}), flag.field) == other_means


def test_variables_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAINTKEEPER_MAX_CONCURRENT_EVICTIONS", "7")
    assert parse_settings({}).max_concurrent_evictions == 7


def test_variables_that_kubernetes_sets_for_a_service_of_our_name_are_none_of_ours() -> None:
    environment = {
        "TAINTKEEPER_SERVICE_HOST": "10.0.0.1",
        "TAINTKEEPER_SERVICE_PORT": "8080",
        "TAINTKEEPER_SERVICE_PORT_METRICS": "8080",
        "TAINTKEEPER_PORT": "tcp://10.0.0.1:8080",
        "TAINTKEEPER_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    assert parse_settings({}, environment) == parse_settings({}, {})


@pytest.mark.parametrize(
    ("given", "rate"),
    [({}, 0.1), ({"node-eviction-rate": "5"}, 5.0), ({"node-eviction-rate": "5", "full-disruption-rate": "0"}, 0.0)],
    ids=["by default", "with another normal rate", "with its own"],
)
@pytest.mark.reported("kubernetes/kubernetes#70501")
def test_a_failed_zone_has_the_normal_rate_unless_told_otherwise(given: dict[str, str], rate: float) -> None:
    assert parse_settings(given, {}).full_disruption_rate == rate


def test_every_flag_has_its_bad_values_in_the_table() -> None:
    assert set(BAD) == set(VALUES) == {flag.name for flag in FLAGS}


@pytest.mark.parametrize(("name", "text"), rows(BAD))
@pytest.mark.parametrize("by", ["flag", "variable"])
def test_a_bad_value_is_told_in_one_line_that_names_it_and_where_it_is_from(name: str, text: str, by: str) -> None:
    variable = "TAINTKEEPER_" + name.upper().replace("-", "_")
    with pytest.raises(SettingsError) as caught:
        parse_settings(*(({name: text}, {}) if by == "flag" else ({}, {variable: text})))
    message = str(caught.value)
    assert message.startswith(f"{f'--{name}' if by == 'flag' else variable}: {text!r} ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"leader-elect-lease-duration": "10s"},
            "--leader-elect-lease-duration: 10s is not longer than --leader-elect-renew-deadline, which is 10s",
        ),
        (
            {"leader-elect-renew-deadline": "1500ms"},
            "--leader-elect-renew-deadline: 1.5s is not longer than --leader-elect-retry-period, which is 2s",
        ),
    ],
    ids=["a leader that stops when others begin", "a leader that renews too late"],
)
def test_times_of_an_election_that_would_not_be_safe_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(given, {})
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["kubeconfig", "context", "leader-elect-resource-namespace"])
def test_an_empty_name_is_none(name: str) -> None:
    assert read(name, "") is None


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("*", ALL),
        ("node-taint", {NODE_TAINT}),
        ("node-health", {NODE_HEALTH}),
        ("node-taint,taint-eviction,node-health", ALL),
        ("*,-node-taint", {NODE_HEALTH, TAINT_EVICTION}),
        ("-node-taint,*", {NODE_HEALTH, TAINT_EVICTION}),
        ("*,-taint-eviction,taint-eviction", {NODE_TAINT, NODE_HEALTH}),
        ("*,taint-eviction,-taint-eviction", ALL),
        ("node-taint,-taint-eviction", {NODE_TAINT}),
        ("*,-node-health", {NODE_TAINT, TAINT_EVICTION}),
        (" node-taint , taint-eviction ,", {NODE_TAINT, TAINT_EVICTION}),
        ("*,*", ALL),
    ],
)
def test_controllers_are_chosen_as_in_kube_controller_manager(text: str, chosen: set[str]) -> None:
    assert read("controllers", text) == chosen


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(
            ("50s", 50.0),
            ("0s", 0.0),
            ("1m", 60.0),
            ("1m30s", 90.0),
            ("1h", 3600.0),
            ("250ms", 0.25),
            ("1h1m1s", 3661.0),
        ),
        *((".5s", 0.5), ("1.5m", 90.0), ("2.s", 2.0), ("1m1ms", 60.001)),
    ],
)
def test_durations_are_read_as_in_go(text: str, seconds: float) -> None:
    assert read("node-monitor-grace-period", text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", ("", 8080)),
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost:80", ("localhost", 80)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::]:65535", ("::", 65535)),
        ("0", None),
    ],
)
def test_addresses_are_read_as_in_go(text: str, address: tuple[str, int] | None) -> None:
    assert read("metrics-bind-address", text) == address


@pytest.mark.parametrize(
    ("text", "meaning"), [("true", True), ("TRUE", True), ("1", True), ("false", False), ("False", False), ("0", False)]
)
def test_switches_are_read_as_in_go(text: str, meaning: bool) -> None:
    assert read("dry-run", text) is meaning


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("foo", "'foo' is no controller: there are node-taint, node-health, taint-eviction"),
        ("*,-foo", "'*,-foo' names 'foo', which is no controller: there are node-taint, node-health, taint-eviction"),
        (" foo", "' foo' names 'foo', which is no controller: there are node-taint, node-health, taint-eviction"),
    ],
)
def test_a_controller_that_does_not_exist_is_named_once_with_those_that_do(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings({"controllers": text}, {})
    assert str(caught.value) == f"--controllers: {said}"
