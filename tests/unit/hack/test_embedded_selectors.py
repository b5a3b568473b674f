"""Label and field selectors, as tables."""

from typing import Any

import pytest

from testbed.embedded.failures import Failure
from testbed.embedded.resources import EVENTS, NODES, PODS, Kind
from testbed.embedded.selectors import matches_selector, parse_fields, parse_labels

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("app=db", False),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("other!=x", True),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("other notin (x)", True),
        ("app=web,tier=front", True),
        ("app=web, tier in (back)", False),
    ],
)
def test_a_label_selector_matches(text: str, expected: bool) -> None:
    assert parse_labels(text)({"metadata": {"labels": LABELS}}) is expected


@pytest.mark.parametrize("text", ["=x", "app in", "app in web", ",", "a b"])
def test_a_label_selector_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Failure) as failed:
        parse_labels(text)

    assert failed.value.code == 400


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {}}, True),
        ({"matchLabels": None, "matchExpressions": []}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_selector_object_matches(selector: Any, expected: bool) -> None:
    assert matches_selector(selector, LABELS) is expected


@pytest.mark.parametrize(
    ("kind", "text", "value", "expected"),
    [
        (PODS, "spec.nodeName=n", {"spec": {"nodeName": "n"}}, True),
        (PODS, "spec.nodeName!=n", {"spec": {"nodeName": "n"}}, False),
        (PODS, "spec.nodeName=", {"spec": {}}, True),
        (PODS, "spec.nodeName=n,status.phase!=Failed", {"spec": {"nodeName": "n"}, "status": {}}, True),
        (NODES, "spec.unschedulable=true", {"spec": {"unschedulable": True}}, True),
        (NODES, "spec.unschedulable=false", {"spec": {}}, True),
        (EVENTS, "involvedObject.name=p", {"involvedObject": {"name": "p"}}, True),
        (EVENTS, "involvedObject.uid=u", {"involvedObject": {"name": "p"}}, False),
    ],
)
def test_a_field_selector_matches(kind: Kind, text: str, value: Any, expected: bool) -> None:
    assert parse_fields(kind, text)(value) is expected


@pytest.mark.parametrize("text", ["spec.priority=1", "nothing"])
def test_a_field_that_cannot_be_selected_by_is_refused(text: str) -> None:
    with pytest.raises(Failure) as failed:
        parse_fields(PODS, text)

    assert failed.value.code == 400
