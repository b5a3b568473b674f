"""Label selectors, as ``LabelSelectorAsSelector`` in k8s.io/apimachinery ``pkg/apis/meta/v1`` reads them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of ``matchExpressions``. An unknown operator matches nothing."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels fulfil this requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. An empty one matches everything; where none is given at all, the caller must decide."""

    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether all labels and all requirements hold."""
        return all(labels.get(key) == value for key, value in self.labels) and all(
            requirement.matches(labels) for requirement in self.requirements
        )
