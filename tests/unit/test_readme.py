"""The README names everything that people can set and see."""

import re
from pathlib import Path

import pytest

import taintkeeper
from taintkeeper.flags import FLAGS

README = (Path(__file__).parents[2] / "README.md").read_text()
SOURCES = [path.read_text() for path in sorted(Path(taintkeeper.__file__).parent.rglob("*.py"))]
METRIC = re.compile(r'"(taintkeeper_[a-z_]+|node_collector_[a-z_]+|taint_eviction_controller_[a-z_]+)"')
REASON = re.compile(r'^[A-Z_]+ = "([A-Z][a-z]+(?:[A-Z][a-z]+)+)"$', re.MULTILINE)
NO_EVENTS = {"NoExecute", "NoSchedule", "DisruptionBudget", "NamespaceTerminating", "NotFound", "DeletionByTaintkeeper"}


def named(pattern: re.Pattern[str]) -> list[str]:
    return sorted({name for source in SOURCES for name in pattern.findall(source)})


@pytest.mark.parametrize("flag", [flag.name for flag in FLAGS])
def test_every_flag_is_named(flag: str) -> None:
    assert f"`--{flag}`" in README or f", `--{flag}`" in README


@pytest.mark.parametrize("metric", named(METRIC))
def test_every_metric_is_named(metric: str) -> None:
    assert f"`{metric}" in README


@pytest.mark.parametrize("reason", [name for name in named(REASON) if name not in NO_EVENTS])
def test_every_event_is_named(reason: str) -> None:
    assert f"`{reason}`" in README
