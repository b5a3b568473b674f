"""When a toleration tolerates a taint.

The rule is that of ``ToleratesTaint`` in kubernetes/kubernetes ``staging/src/k8s.io/api/core/v1/toleration.go``
("Toleration v1 core" in the API reference), with the numeric operators of KEP-5471.
"""

import re
from collections.abc import Iterable

from taintkeeper.core.objects import Taint, Toleration

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_INT64 = range(-(2**63), 2**63)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Say whether the toleration matches the taint: effect, key and operator must all agree."""
    return (
        toleration.effect in ("", taint.effect)
        and _key_matches(toleration, taint)
        and _operator_matches(toleration, taint.value)
    )


def first_match(tolerations: Iterable[Toleration], taint: Taint) -> Toleration | None:
    """Return the toleration that counts for this taint, the first in list order that matches, or None.

    Its ``seconds`` are the ones used, even when a later toleration would be more generous
    (``GetMatchingTolerations`` in kubernetes/kubernetes ``pkg/apis/core/v1/helper/helpers.go``).
    """
    return next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)


def _key_matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.key == "":
        return toleration.operator == "Exists"
    return toleration.key == taint.key


def _operator_matches(toleration: Toleration, value: str) -> bool:
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == value
        case "Gt" | "Lt" as operator:
            return _compare(operator, value, toleration.value)
        case _:
            return False


def _compare(operator: str, taint_value: str, toleration_value: str) -> bool:
    left, right = _canonical_int64(taint_value), _canonical_int64(toleration_value)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _canonical_int64(text: str) -> int | None:
    if _CANONICAL_INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number in _INT64 else None
