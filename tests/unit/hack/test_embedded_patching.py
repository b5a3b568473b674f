"""The three forms of PATCH, as tables."""

from typing import Any

import pytest

from testbed.embedded.failures import Failure
from testbed.embedded.patching import json_patch, merge, strategic_merge

READY = {"type": "Ready", "status": "True"}
DOWN = {"type": "Ready", "status": "False"}
DISK = {"type": "DiskPressure", "status": "False"}


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": 1}, "text", "text"),
    ],
)
def test_a_merge_patch_follows_rfc_7386(current: Any, patch: Any, expected: Any) -> None:
    assert merge(current, patch) == expected


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        pytest.param(
            [READY, DISK], [{"type": "Ready", "status": "False"}], [{**READY, "status": "False"}, DISK], id="changed"
        ),
        pytest.param([READY], [DISK], [DISK, READY], id="new ones come first"),
        pytest.param([READY, DISK], [{"type": "Ready", "$patch": "delete"}], [DISK], id="deleted"),
        pytest.param([READY], [DISK, {"$patch": "replace"}], [DISK], id="replaced"),
        pytest.param(None, [DISK], [DISK], id="first"),
        pytest.param([READY, DISK], [{**DISK, "reason": "r"}], [READY, {**DISK, "reason": "r"}], id="in place"),
    ],
)
def test_a_strategic_merge_patch_merges_conditions_by_type(current: Any, patch: Any, expected: Any) -> None:
    assert strategic_merge({"conditions": current}, {"conditions": patch}) == {"conditions": expected}


def test_a_strategic_merge_patch_replaces_taints() -> None:
    current = {"taints": [{"key": "a"}]}

    assert strategic_merge(current, {"taints": [{"key": "b"}]}) == {"taints": [{"key": "b"}]}


def test_a_strategic_merge_patch_adds_to_finalizers_and_takes_from_them() -> None:
    current = {"finalizers": ["a", "b"]}

    patch = {"finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]}

    assert strategic_merge(current, patch) == {"finalizers": ["a", "c"]}


def test_a_strategic_merge_patch_can_replace_an_object() -> None:
    assert strategic_merge({"spec": {"a": 1}}, {"spec": {"$patch": "replace", "b": 2}}) == {"spec": {"b": 2}}


def test_a_condition_without_type_cannot_be_merged() -> None:
    with pytest.raises(Failure) as failed:
        strategic_merge({"conditions": [READY]}, {"conditions": [{"status": "True"}]})

    assert failed.value.code == 500


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/c", "value": 3}], {"a": {"b": [1, 2]}, "c": 3}),
        ([{"op": "add", "path": "/a/b/-", "value": 3}], {"a": {"b": [1, 2, 3]}}),
        ([{"op": "add", "path": "/a/b/0", "value": 0}], {"a": {"b": [0, 1, 2]}}),
        ([{"op": "replace", "path": "/a/b/1", "value": 5}], {"a": {"b": [1, 5]}}),
        ([{"op": "remove", "path": "/a/b/0"}], {"a": {"b": [2]}}),
        ([{"op": "remove", "path": "/a/b"}], {"a": {}}),
        ([{"op": "add", "path": "/a/x~1y~0z", "value": 1}], {"a": {"b": [1, 2], "x/y~z": 1}}),
        ([{"op": "copy", "from": "/a/b", "path": "/c"}], {"a": {"b": [1, 2]}, "c": [1, 2]}),
        ([{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": [1, 2]}),
        ([{"op": "test", "path": "/a/b/0", "value": 1}, {"op": "remove", "path": "/a"}], {}),
        ([{"op": "replace", "path": "", "value": {}}], {}),
        pytest.param([{"op": "replace", "path": "/c", "value": 1}], {"a": {"b": [1, 2]}, "c": 1}, id="as the API does"),
        pytest.param([{"op": "test", "path": "/c", "value": None}], {"a": {"b": [1, 2]}}, id="missing is null"),
    ],
)
def test_a_json_patch_is_applied_as_the_api_does(operations: list[dict[str, Any]], expected: Any) -> None:
    document = {"a": {"b": [1, 2]}}

    assert json_patch(document, operations) == expected
    assert document == {"a": {"b": [1, 2]}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/missing", "value": 2},
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/list/0", "value": 1},
        {"op": "add", "path": "/missing/child", "value": 1},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "invent", "path": "/a"},
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(Failure) as failed:
        json_patch({"a": 1, "list": []}, [operation])

    assert failed.value.code == 422
