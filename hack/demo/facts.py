"""What can be seen to happen. Times are in seconds since the story began; objects are as the API showed them then."""

from dataclasses import dataclass

from testbed.client import Object


@dataclass(frozen=True, slots=True)
class TaintsChanged:
    """A node's taints became others, in one write; each is spelled as ``kubectl`` does."""

    at: float
    node: Object
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """A pod became ready."""

    at: float
    pod: Object


@dataclass(frozen=True, slots=True)
class Left:
    """A pod was told to end; ``how`` is the reason of its DisruptionTarget condition, empty if it has none."""

    at: float
    pod: Object
    how: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A pod has ended and is no longer there."""

    at: float
    pod: Object


@dataclass(frozen=True, slots=True)
class BudgetMoved:
    """A budget allows more or fewer evictions than before."""

    at: float
    budget: Object


@dataclass(frozen=True, slots=True)
class Told:
    """The operator sent an event about an object with this name."""

    at: float
    about: str
    reason: str
    message: str


Fact = TaintsChanged | Runs | Left | Gone | BudgetMoved | Told
