"""What counts as a fault when everybody runs beside everybody else."""

from collections import Counter
from dataclasses import replace

import pytest

from rivals.__main__ import MOST_CHANGES, RIVALS, faults, report
from rivals.contest import PATCHES, Findings

RIGHT = Findings(
    changes=Counter({"node-1": MOST_CHANGES}),
    told={f"kube-controller-manager's {name} is running too" for name in RIVALS},
    metrics="".join(f'taintkeeper_rival_seen{{controller="{name}"}} 1.0\n' for name in RIVALS),
    log=[f"WARNING taintkeeper.rivals: kube-controller-manager's {name} is running too" for name in RIVALS],
)


def test_both_noticed_and_few_changes_are_right() -> None:
    assert faults(RIGHT) == []
    assert "changes of taints: node-1 12; when nothing happened any more: 0" in report(RIGHT)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (replace(RIGHT, told=set()), f"{RIVALS[0]} was not noticed"),
        (replace(RIGHT, log=[]), f"{RIVALS[1]} was not noticed"),
        (replace(RIGHT, metrics=RIGHT.metrics.replace("1.0", "0.0")), f"{RIVALS[0]} was not noticed"),
        (replace(RIGHT, changes=Counter({"node-1": 99})), "the taints of node-1 changed 99 times"),
        (replace(RIGHT, late=Counter({"node-1": 1})), "the taints of node-1 changed 1 times without a reason"),
    ],
    ids=["no event", "no log line", "no metric", "circles", "no rest"],
)
def test_what_goes_wrong_is_named(wrong: Findings, fault: str) -> None:
    assert fault in faults(wrong)


def test_only_writes_of_nodes_are_counted() -> None:
    lines = [
        f'apiserver_request_total{{code="200",resource="{resource}",scope="resource",verb="{verb}"}} 5'
        for resource, verb in (("nodes", "PATCH"), ("nodes", "PUT"), ("nodes", "GET"), ("pods", "PATCH"))
    ]
    assert PATCHES.findall("\n".join(lines)) == ["5", "5"]
