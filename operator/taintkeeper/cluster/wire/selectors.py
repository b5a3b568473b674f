"""Label selectors on the wire."""

from taintkeeper.cluster.wire.common import Wire
from taintkeeper.core.selectors import Requirement, Selector


class RequirementWire(Wire, frozen=True):
    """One of ``matchExpressions``."""

    key: str
    operator: str
    values: list[str] | None = None


class SelectorWire(Wire, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[RequirementWire] | None = None


def to_selector(wire: SelectorWire) -> Selector:
    """Return the selector that stands on the wire."""
    return Selector(
        tuple(sorted((wire.match_labels or {}).items())),
        tuple(
            Requirement(each.key, each.operator, frozenset(each.values or ())) for each in wire.match_expressions or ()
        ),
    )
