"""Specs of EvictionPolicies, good and bad: what the API server refuses, the operator refuses too."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark import ParameterSet

README = Path(__file__).parents[1] / "README.md"
TOO_LONG = "a" * 64
LONG_PREFIX = ".".join(["a" * 49] * 6) + "/x"
TOO_LATE = 31_536_001

DEFAULTS = {
    "precedence": 0,
    "mode": "Evict",
    "unmanagedPods": "Evict",
    "daemonSetPods": "Evict",
    "podsWithLocalStorage": "Evict",
    "dryRun": False,
}
"""What the API server fills in, apart from the parts of taints."""


def readme_policies() -> dict[str, dict[str, Any]]:
    """Return the policies that the README shows, by name."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    shown = [each for block in blocks for each in yaml.safe_load_all(block)]
    return {each["metadata"]["name"]: each for each in shown if each["kind"] == "EvictionPolicy"}


def taint(**fields: Any) -> dict[str, Any]:
    """Return the spec of a policy for one pattern of taints."""
    return {"taints": [fields]}


def labels(selector: str, **fields: str) -> dict[str, Any]:
    """Return the spec of a policy with these ``matchLabels``."""
    return {selector: {"matchLabels": fields}}


def expression(selector: str, key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return the spec of a policy with one of ``matchExpressions``."""
    found = {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
    return {selector: {"matchExpressions": [found]}}


GOOD: dict[str, dict[str, Any]] = {
    "the least": {},
    "everything": {
        "precedence": 100,
        "taints": [
            {"key": "example.com/maintenance", "operator": "Equal", "value": "now", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            {"key": "", "effect": "NoExecute"},
        ],
        "namespaceSelector": {
            "matchLabels": {"example.com/tier": "prod", "empty": ""},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["b", ""]},
                {"key": "c", "operator": "DoesNotExist"},
            ],
        },
        "podSelector": {"matchExpressions": [{"key": "d", "operator": "NotIn", "values": ["e"]}]},
        "mode": "EvictThenDelete",
        "blockedSeconds": 600,
        "defaultTolerationSeconds": 0,
        "gracePeriodSeconds": 1,
        "maxConcurrentPerNode": 1,
        "unmanagedPods": "Ignore",
        "daemonSetPods": "Ignore",
        "podsWithLocalStorage": "Ignore",
        "dryRun": True,
    },
    "a negative precedence": {"precedence": -5},
    "empty selectors": {"namespaceSelector": {}, "podSelector": {}},
    "an empty value without an operator": {"taints": [{"key": "a", "value": "", "effect": "NoExecute"}]},
    "an empty value to compare with": {
        "taints": [{"key": "a", "operator": "Equal", "value": "", "effect": "NoExecute"}]
    },
    "any key by its operator": {"taints": [{"key": "", "operator": "Exists", "effect": "NoExecute"}]},
    "no time to be blocked": {"mode": "EvictThenDelete", "blockedSeconds": 0},
    "deletion": {"mode": "Delete", "gracePeriodSeconds": 30},
    "nothing happens": {"mode": "Ignore"},
}


def bad(name: str, field: str, made: Any) -> ParameterSet:
    """Return a row: a spec and the field that it is refused for."""
    return pytest.param(made, field, id=name)


def bad_selectors() -> list[ParameterSet]:
    """Return the rows that are the same for both selectors."""
    rows = []
    for name in ("namespaceSelector", "podSelector"):
        field, line = f"spec.{name}", f"spec.{name}.matchExpressions[0]"
        rows += [
            bad(f"{name}: a key with a space", f"{field}.matchLabels", labels(name, **{"a b": "c"})),
            bad(f"{name}: a value with a space", f"{field}.matchLabels", labels(name, a="b c")),
            bad(f"{name}: a list", field, {name: []}),
            bad(f"{name}: an unknown operator", f"{line}.operator", expression(name, "a", "Gt", "1")),
            bad(f"{name}: In without values", f"{line}.values", expression(name, "a", "In")),
            bad(f"{name}: NotIn without values", f"{line}.values", expression(name, "a", "NotIn")),
            bad(f"{name}: Exists with values", f"{line}.values", expression(name, "a", "Exists", "b")),
            bad(f"{name}: DoesNotExist with values", f"{line}.values", expression(name, "a", "DoesNotExist", "b")),
            bad(f"{name}: an expression with a bad key", f"{line}.key", expression(name, "a b", "Exists")),
            bad(f"{name}: an expression with a bad value", f"{line}.values", expression(name, "a", "In", "b c")),
        ]
    return rows


BAD = [
    bad("a precedence that is text", "spec.precedence", {"precedence": "high"}),
    bad("a precedence above all bounds", "spec.precedence", {"precedence": 1_000_000_001}),
    bad("a precedence below all bounds", "spec.precedence", {"precedence": -1_000_000_001}),
    bad("no pattern at all", "spec.taints", {"taints": []}),
    bad("too many patterns", "spec.taints", {"taints": [{"key": f"a{index}"} for index in range(33)]}),
    bad("a pattern that is text", "spec.taints[0]", {"taints": ["a"]}),
    bad("a key with two slashes", "spec.taints[0].key", taint(key="a/b/c")),
    bad("a key that ends in a dash", "spec.taints[0].key", taint(key="example.com/a-")),
    bad("a key with a prefix in upper case", "spec.taints[0].key", taint(key="Example.com/a")),
    bad("a key whose name is too long", "spec.taints[0].key", taint(key=f"example.com/{TOO_LONG}")),
    bad("a key whose prefix is too long", "spec.taints[0].key", taint(key=LONG_PREFIX)),
    bad("a bad key in the second place", "spec.taints[1].key", {"taints": [{"key": "a"}, {"key": "a b"}]}),
    bad("an unknown operator", "spec.taints[0].operator", taint(key="a", operator="Gt", value="1")),
    bad("a value with a space", "spec.taints[0].value", taint(key="a", value="a b")),
    bad("a value that is too long", "spec.taints[0].value", taint(key="a", value=TOO_LONG)),
    bad("a value that is a number", "spec.taints[0].value", taint(key="a", value=1)),
    bad("a value for Exists", "spec.taints[0].value", taint(key="a", operator="Exists", value="b")),
    bad("a value without a key", "spec.taints[0].key", taint(value="b")),
    bad("a comparison without a key", "spec.taints[0].key", taint(operator="Equal")),
    bad("an effect that evicts nobody", "spec.taints[0].effect", taint(key="a", effect="PreferNoSchedule")),
    bad("every taint for the scheduler", "spec.taints[0].key", taint(effect="NoSchedule")),
    *bad_selectors(),
    bad("an unknown mode", "spec.mode", {"mode": "Force"}),
    bad("a mode in lower case", "spec.mode", {"mode": "evict"}),
    bad("a time to be blocked for Evict", "spec.blockedSeconds", {"blockedSeconds": 60}),
    bad("a time to be blocked for Delete", "spec.blockedSeconds", {"mode": "Delete", "blockedSeconds": 60}),
    bad("a negative time to be blocked", "spec.blockedSeconds", {"mode": "EvictThenDelete", "blockedSeconds": -1}),
    bad("a year to be blocked", "spec.blockedSeconds", {"mode": "EvictThenDelete", "blockedSeconds": TOO_LATE}),
    bad("a negative toleration", "spec.defaultTolerationSeconds", {"defaultTolerationSeconds": -1}),
    bad("a toleration of more than a year", "spec.defaultTolerationSeconds", {"defaultTolerationSeconds": TOO_LATE}),
    bad("half a second", "spec.defaultTolerationSeconds", {"defaultTolerationSeconds": 0.5}),
    bad("no grace at all", "spec.gracePeriodSeconds", {"gracePeriodSeconds": 0}),
    bad("a grace of more than a year", "spec.gracePeriodSeconds", {"gracePeriodSeconds": TOO_LATE}),
    bad("nobody at once", "spec.maxConcurrentPerNode", {"maxConcurrentPerNode": 0}),
    bad("unmanaged pods deleted", "spec.unmanagedPods", {"unmanagedPods": "Delete"}),
    bad("unmanaged pods by a boolean", "spec.unmanagedPods", {"unmanagedPods": True}),
    bad("pods of DaemonSets skipped", "spec.daemonSetPods", {"daemonSetPods": "Skip"}),
    bad("local storage in lower case", "spec.podsWithLocalStorage", {"podsWithLocalStorage": "ignore"}),
    bad("a dry run that is a number", "spec.dryRun", {"dryRun": 1}),
]
