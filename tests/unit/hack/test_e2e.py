"""Judging a run of Kubernetes' own end-to-end tests."""

from typing import Any

import pytest

from e2e.__main__ import SPECS, faults


def spec(name: str, state: str = "passed", group: str = "NoExecuteTaintManager Single Pod") -> dict[str, Any]:
    hierarchy = ["[sig-node]", group]
    names = {"ContainerHierarchyTexts": hierarchy, "LeafNodeType": "It", "LeafNodeText": name}
    return names | {"State": state, "RunTime": 1_000_000_000}


def report(*specs: dict[str, Any], succeeded: bool = True) -> list[dict[str, Any]]:
    return [{"SuiteSucceeded": succeeded, "SpecReports": list(specs)}]


ALL = [spec(f"test {number}") for number in range(SPECS)]
OTHER = spec("evicts nothing", "skipped", group="Something else")
SETUP = {"ContainerHierarchyTexts": None, "LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": ""}


def test_a_run_in_which_all_of_them_passed_is_right() -> None:
    assert faults(report(*ALL, OTHER, SETUP)) == []


@pytest.mark.parametrize("state", ["failed", "skipped", "panicked", "timedout"])
def test_one_that_did_not_pass_is_named(state: str) -> None:
    assert faults(report(*ALL[1:], spec("evicts", state))) == [
        f"[sig-node] NoExecuteTaintManager Single Pod evicts: {state}"
    ]


def test_one_that_is_missing_is_noticed() -> None:
    assert faults(report(*ALL[1:], OTHER)) == ["6 tests have NoExecuteTaintManager in their names, not 7"]


def test_a_suite_that_failed_around_its_tests_is_noticed() -> None:
    assert faults(report(*ALL, succeeded=False)) == ["the suite did not succeed"]
