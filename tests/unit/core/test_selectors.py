"""Label selectors."""

import pytest

from taintkeeper.core.selectors import Requirement, Selector

LABELS = {"app": "web", "tier": ""}
VALUES = frozenset({"web", "api"})


@pytest.mark.parametrize(
    ("requirement", "matches"),
    [
        (Requirement("app", "In", VALUES), True),
        (Requirement("app", "In", frozenset({"api"})), False),
        (Requirement("app", "In"), False),
        (Requirement("other", "In", VALUES), False),
        (Requirement("tier", "In", frozenset({""})), True),
        (Requirement("app", "NotIn", VALUES), False),
        (Requirement("app", "NotIn", frozenset({"api"})), True),
        (Requirement("other", "NotIn", VALUES), True),
        (Requirement("app", "Exists"), True),
        (Requirement("tier", "Exists"), True),
        (Requirement("other", "Exists"), False),
        (Requirement("app", "DoesNotExist"), False),
        (Requirement("tier", "DoesNotExist"), False),
        (Requirement("other", "DoesNotExist"), True),
        (Requirement("app", "Gt", VALUES), False),
        (Requirement("app", "in", VALUES), False),
    ],
)
def test_a_requirement_looks_at_one_label(requirement: Requirement, *, matches: bool) -> None:
    assert requirement.matches(LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param(Selector(), True, id="an empty selector matches everything"),
        pytest.param(Selector((("app", "web"),)), True, id="a label"),
        pytest.param(Selector((("app", "api"),)), False, id="another value"),
        pytest.param(Selector((("other", ""),)), False, id="a missing label is not an empty one"),
        pytest.param(Selector((("app", "web"), ("tier", ""))), True, id="all labels hold"),
        pytest.param(Selector((("app", "web"), ("tier", "x"))), False, id="one label does not hold"),
        pytest.param(
            Selector((), (Requirement("app", "Exists"), Requirement("other", "Exists"))), False, id="one requirement"
        ),
        pytest.param(Selector((("app", "web"),), (Requirement("app", "NotIn", VALUES),)), False, id="the other part"),
        pytest.param(Selector((("app", "api"),), (Requirement("app", "Exists"),)), False, id="the first part"),
    ],
)
def test_a_selector_matches_when_all_of_it_holds(selector: Selector, *, matches: bool) -> None:
    assert selector.matches(LABELS) is matches
