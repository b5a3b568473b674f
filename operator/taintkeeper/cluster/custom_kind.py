"""What the kinds of objects that we define ourselves have in common: where they are, how they are read and answered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

GROUP, VERSION = "taintkeeper.io", "v1alpha1"


class Named(Protocol):
    """An object that was seen, whatever it says."""

    @property
    def name(self) -> str:
        """Its name; such objects are in no namespace."""
        ...

    @property
    def uid(self) -> str:
        """What tells it from another that has got its name later."""
        ...


Seen = TypeVar("Seen", bound=Named)
Status = TypeVar("Status")


@dataclass(frozen=True, slots=True)
class CustomKind(Generic[Seen, Status]):
    """A kind of ours.

    ``decode`` reads an object and raises msgspec.DecodeError only for what has no metadata; ``encode_status`` writes a
    status as the API spells it, for a merge patch.
    """

    resource: str
    decode: Callable[[bytes | msgspec.Raw], Seen]
    encode_status: Callable[[Status], dict[str, Any]]

    @property
    def path(self) -> str:
        """Where all objects of the kind are."""
        return f"/apis/{GROUP}/{VERSION}/{self.resource}"
