"""Specs of NodeTaintRules, good and bad: what the API server refuses, the operator refuses too."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark import ParameterSet

CONDITION = {"type": "KernelDeadlock", "status": "True"}
TAINT = {"key": "example.com/kernel-deadlock", "effect": "NoSchedule"}
MEMORY = {"type": "MemoryPressure", "status": "True"}
MEMORY_KEY = "node.kubernetes.io/memory-pressure"
TOO_LONG = "a" * 64
LONG_PREFIX = ".".join(["a" * 49] * 6) + "/x"


def spec(**fields: Any) -> dict[str, Any]:
    """Return the spec of a good rule with other fields."""
    return {"condition": CONDITION, "taint": TAINT, **fields}


def taint(**fields: Any) -> dict[str, Any]:
    """Return the spec of a rule with another taint."""
    return spec(taint={**TAINT, **fields})


def labels(**fields: str) -> dict[str, Any]:
    """Return the spec of a rule with these ``matchLabels``."""
    return spec(nodeSelector={"matchLabels": fields})


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return the spec of a rule with one of ``matchExpressions``."""
    found = {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
    return spec(nodeSelector={"matchExpressions": [found]})


def built_in(key: str, effect: str = "NoSchedule", **fields: Any) -> dict[str, Any]:
    """Return the spec of a rule for a built-in key and memory pressure, unless the fields say otherwise."""
    return {"condition": MEMORY, "taint": {"key": key, "effect": effect}, **fields}


def without(field: str, inner: str = "") -> dict[str, Any]:
    """Return a spec that lacks a field."""
    made = spec()
    if not inner:
        return {key: value for key, value in made.items() if key != field}
    return {**made, field: {key: value for key, value in made[field].items() if key != inner}}


def readme_rules() -> dict[str, dict[str, Any]]:
    """Return the rules that the README shows, by name."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    shown = [each for block in blocks for each in yaml.safe_load_all(block)]
    return {each["metadata"]["name"]: each for each in shown if each["kind"] == "NodeTaintRule"}


README = Path(__file__).parents[1] / "README.md"
EXAMPLES = Path(__file__).parents[1] / "manifests" / "examples" / "node-taint-rules.yaml"
GOOD = {
    "the least": spec(),
    "everything": spec(
        taint={**TAINT, "value": "yes", "effect": "NoExecute"},
        nodeSelector={
            "matchLabels": {"example.com/pool": "gpu", "empty": ""},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["b", ""]},
                {"key": "c", "operator": "DoesNotExist"},
            ],
        },
        forSeconds=60,
        clearSeconds=86400,
        maxUnhealthy="30%",
        rateLimited=False,
        dryRun=True,
    ),
    "a number of unhealthy nodes": spec(maxUnhealthy=0),
    "all nodes may be unhealthy": spec(maxUnhealthy="100%"),
    "an empty selector": spec(nodeSelector={}),
    "a rate limit for another effect": spec(rateLimited=True),
    "times for a built-in taint": built_in(MEMORY_KEY, clearSeconds=300),
    "a pressure that evicts": built_in(MEMORY_KEY, "NoExecute", rateLimited=False),
    "an unreachable node": {
        "condition": {"type": "Ready", "status": "Unknown"},
        "taint": {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        "rateLimited": True,
    },
}
GOOD |= {f"the example {each['metadata']['name']}": each["spec"] for each in yaml.safe_load_all(EXAMPLES.read_text())}
GOOD |= {f"the README's {name}": each["spec"] for name, each in readme_rules().items()}


def bad(name: str, field: str, made: Any) -> ParameterSet:
    """Return a row: a spec and the field that it is refused for."""
    return pytest.param(made, field, id=name)


BAD = [
    bad("no condition", "spec.condition", without("condition")),
    bad("no taint", "spec.taint", without("taint")),
    bad("no type", "spec.condition.type", without("condition", "type")),
    bad("no status", "spec.condition.status", without("condition", "status")),
    bad("no key", "spec.taint.key", without("taint", "key")),
    bad("no effect", "spec.taint.effect", without("taint", "effect")),
    bad("an empty type", "spec.condition.type", spec(condition={"type": "", "status": "True"})),
    bad("a type with a space", "spec.condition.type", spec(condition={"type": "Kernel Deadlock", "status": "True"})),
    bad("a status in lower case", "spec.condition.status", spec(condition={**CONDITION, "status": "true"})),
    bad("a status that is no text", "spec.condition.status", spec(condition={**CONDITION, "status": True})),
    bad("an empty key", "spec.taint.key", taint(key="")),
    bad("a key with two slashes", "spec.taint.key", taint(key="a/b/c")),
    bad("a key that ends in a dash", "spec.taint.key", taint(key="example.com/a-")),
    bad("a key with a prefix in upper case", "spec.taint.key", taint(key="Example.com/a")),
    bad("a key whose name is too long", "spec.taint.key", taint(key=f"example.com/{TOO_LONG}")),
    bad("a key whose prefix is too long", "spec.taint.key", taint(key=LONG_PREFIX)),
    bad("a key of cordoning", "spec.taint.key", taint(key="node.kubernetes.io/unschedulable")),
    bad("a key by which pods are deleted by force", "spec.taint.key", taint(key="node.kubernetes.io/out-of-service")),
    bad("a key of cloud providers", "spec.taint.key", taint(key="node.cloudprovider.kubernetes.io/uninitialized")),
    bad("a value with a space", "spec.taint.value", taint(value="a b")),
    bad("a value that is too long", "spec.taint.value", taint(value=TOO_LONG)),
    bad("an unknown effect", "spec.taint.effect", taint(effect="NoSchedul")),
    bad("a label key with a space", "spec.nodeSelector.matchLabels", labels(**{"a b": "c"})),
    bad("a label value with a space", "spec.nodeSelector.matchLabels", labels(a="b c")),
    bad("a selector that is a list", "spec.nodeSelector", spec(nodeSelector=[])),
    bad("an unknown operator", "spec.nodeSelector.matchExpressions[0].operator", expression("a", "Gt", "1")),
    bad("In without values", "spec.nodeSelector.matchExpressions[0].values", expression("a", "In")),
    bad("NotIn without values", "spec.nodeSelector.matchExpressions[0].values", expression("a", "NotIn")),
    bad("Exists with values", "spec.nodeSelector.matchExpressions[0].values", expression("a", "Exists", "b")),
    bad(
        "DoesNotExist with values", "spec.nodeSelector.matchExpressions[0].values", expression("a", "DoesNotExist", "b")
    ),
    bad("an expression with a bad key", "spec.nodeSelector.matchExpressions[0].key", expression("a b", "Exists")),
    bad("an expression with a bad value", "spec.nodeSelector.matchExpressions[0].values", expression("a", "In", "b c")),
    bad("a negative hold", "spec.forSeconds", spec(forSeconds=-1)),
    bad("a hold of more than a day", "spec.forSeconds", spec(forSeconds=86401)),
    bad("a hold that is text", "spec.forSeconds", spec(forSeconds="60")),
    bad("a negative clear time", "spec.clearSeconds", spec(clearSeconds=-1)),
    bad("a clear time of more than a day", "spec.clearSeconds", spec(clearSeconds=86401)),
    bad("a negative number of nodes", "spec.maxUnhealthy", spec(maxUnhealthy=-1)),
    bad("a negative percentage", "spec.maxUnhealthy", spec(maxUnhealthy="-1%")),
    bad("more than all nodes", "spec.maxUnhealthy", spec(maxUnhealthy="101%")),
    bad("a number in quotes", "spec.maxUnhealthy", spec(maxUnhealthy="5")),
    bad("half a percent", "spec.maxUnhealthy", spec(maxUnhealthy="0.5%")),
    bad("a rate limit that is text", "spec.rateLimited", spec(rateLimited="yes")),
    bad("a dry run that is a number", "spec.dryRun", spec(dryRun=1)),
    bad("a built-in key for another condition", "spec.taint.key", spec(taint={**TAINT, "key": MEMORY_KEY})),
    bad(
        "a built-in key for another status",
        "spec.taint.key",
        {**built_in(MEMORY_KEY), "condition": {"type": "MemoryPressure", "status": "Unknown"}},
    ),
    bad(
        "a built-in key with a value",
        "spec.taint.value",
        spec(condition=MEMORY, taint={**TAINT, "key": MEMORY_KEY, "value": "a"}),
    ),
    bad("a rate limit for a built-in NoSchedule", "spec.rateLimited", built_in(MEMORY_KEY, rateLimited=True)),
    bad(
        "no rate limit for a built-in NoExecute",
        "spec.rateLimited",
        {
            "condition": {"type": "Ready", "status": "Unknown"},
            "taint": {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
            "rateLimited": False,
        },
    ),
]
