"""When a toleration tolerates a taint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintkeeper.core.objects import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from taintkeeper.core.tolerations import first_match, tolerates
from tests.unit.core.builders import lasting, reported

GREATEST, LEAST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        pytest.param(Toleration("foo", "Exists", effect=NO_EXECUTE), True, id="Exists ignores the value"),
        pytest.param(Toleration("foo", "Exists", "other", NO_EXECUTE), True, id="Exists ignores its own value too"),
        pytest.param(Toleration("foo", "Exists"), True, id="an empty effect matches every effect"),
        pytest.param(Toleration("", "Exists"), True, id="an empty key with Exists matches everything"),
        pytest.param(Toleration("", "Exists", effect=NO_EXECUTE), True, id="an empty key with Exists and the effect"),
        pytest.param(Toleration("", "Exists", effect=NO_SCHEDULE), False, id="an empty key keeps to its effect"),
        pytest.param(Toleration("foo", "Equal", "bar", NO_EXECUTE), True, id="Equal with the same value"),
        pytest.param(Toleration("foo", "", "bar", NO_EXECUTE), True, id="no operator means Equal"),
        pytest.param(Toleration("foo", "Equal", "Bar", NO_EXECUTE), False, id="Equal compares byte for byte"),
        pytest.param(Toleration("foo", "Equal", "", NO_EXECUTE), False, id="Equal with no value is not Exists"),
        pytest.param(Toleration("foo", "", "", NO_EXECUTE), False, id="no operator and no value"),
        pytest.param(Toleration("foo", "", "other", NO_EXECUTE), False, id="no operator and another value"),
        pytest.param(Toleration("", "Equal", "bar", NO_EXECUTE), False, id="an empty key with Equal"),
        pytest.param(Toleration("", "", "bar", NO_EXECUTE), False, id="an empty key with no operator"),
        pytest.param(Toleration("", "Gt", "1"), False, id="an empty key with Gt"),
        pytest.param(Toleration("fo", "Exists"), False, id="part of the key"),
        pytest.param(Toleration("FOO", "Exists"), False, id="the key in capitals"),
        pytest.param(Toleration("foo", "Exists", effect=NO_SCHEDULE), False, id="another effect"),
        pytest.param(Toleration("foo", "Equal", "bar", NO_SCHEDULE), False, id="another effect with Equal"),
        pytest.param(Toleration("foo", "exists", effect=NO_EXECUTE), False, id="an unknown operator"),
        pytest.param(Toleration("foo", "NotIn", "other", NO_EXECUTE), False, id="an operator of another API"),
    ],
)
def test_effect_key_and_operator_must_all_agree(toleration: Toleration, *, matches: bool) -> None:
    assert tolerates(toleration, Taint("foo", NO_EXECUTE, "bar")) is matches


def test_equal_values_may_both_be_empty() -> None:
    assert tolerates(Toleration("foo", "Equal"), Taint("foo", NO_EXECUTE))


@pytest.mark.parametrize(
    ("value", "operator", "limit", "matches"),
    [
        reported("KEP-5471", "95 is above 90", "95", "Gt", "90", True),
        ("90", "Gt", "90", False),
        ("89", "Gt", "90", False),
        ("89", "Lt", "90", True),
        ("90", "Lt", "90", False),
        ("91", "Lt", "90", False),
        pytest.param("100", "Gt", "99", True, id="numbers, not strings, are compared"),
        ("9", "Lt", "10", True),
        ("0", "Gt", "-1", True),
        ("-2", "Lt", "-1", True),
        ("-10", "Gt", "-9", False),
        (str(GREATEST), "Gt", str(GREATEST - 1), True),
        (str(GREATEST), "Gt", str(LEAST), True),
        (str(LEAST), "Lt", str(LEAST + 1), True),
        pytest.param(str(GREATEST + 1), "Gt", "0", False, id="one above int64 is no number"),
        pytest.param(str(LEAST - 1), "Lt", "0", False, id="one below int64 is no number"),
        ("0", "Lt", str(GREATEST + 1), False),
        ("0", "Gt", str(LEAST - 1), False),
        ("9" * 40, "Gt", "0", False),
    ],
)
def test_numbers_are_compared_as_int64(value: str, operator: str, limit: str, *, matches: bool) -> None:
    assert tolerates(Toleration("sla", operator, limit), Taint("sla", NO_EXECUTE, value)) is matches


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize(
    "text",
    [
        reported("KEP-5471", "a leading zero", "095"),
        reported("KEP-5471", "no number at all", "abc"),
        *(
            "",
            "+5",
            "007",
            "00",
            "-0",
            "-05",
            "- 5",
            " 5",
            "5 ",
            "5\n",
            "1e3",
            "5.0",
            "0x5",
            "1_000",
            "1\u0665",
            "\uff15",
            "--5",
        ),
    ],
)
def test_what_is_no_canonical_number_matches_on_neither_side(operator: str, text: str) -> None:
    for limit in (str(GREATEST), str(LEAST), "6", "4", "0"):
        assert not tolerates(Toleration("sla", operator, limit), Taint("sla", NO_EXECUTE, text))
        assert not tolerates(Toleration("sla", operator, text), Taint("sla", NO_EXECUTE, limit))


@settings(max_examples=100, derandomize=True, deadline=None)
@given(left=st.integers(LEAST, GREATEST), right=st.integers(LEAST, GREATEST))
def test_gt_and_lt_agree_with_arithmetic(left: int, right: int) -> None:
    taint = Taint("sla", NO_EXECUTE, str(left))
    assert tolerates(Toleration("sla", "Gt", str(right)), taint) is (left > right)
    assert tolerates(Toleration("sla", "Lt", str(right)), taint) is (left < right)


@pytest.mark.reported("kubernetes-sigs/aws-fsx-csi-driver#305")
def test_the_first_toleration_in_list_order_that_matches_counts() -> None:
    general, special, taint = Toleration(operator="Exists", seconds=300), lasting("foo"), Taint("foo", NO_EXECUTE)
    assert first_match([lasting("bar", 1), general, special], taint) is general
    assert first_match([lasting("bar", 1), special, general], taint) is special
    assert first_match([lasting("bar", 1)], taint) is None
    assert first_match([], taint) is None


@pytest.mark.parametrize(
    ("taint", "text"),
    [(Taint("foo", NO_EXECUTE, "bar"), "foo=bar:NoExecute"), (Taint("foo", NO_SCHEDULE), "foo:NoSchedule")],
)
def test_a_taint_is_spelled_as_kubectl_spells_it(taint: Taint, text: str) -> None:
    assert str(taint) == text
