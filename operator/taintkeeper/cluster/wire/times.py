"""Times on the wire: RFC 3339 text there, seconds since the epoch here."""

from datetime import UTC, datetime
from typing import Any

import msgspec

Time = Any
"""How wire structs declare a time. Any value is let in, since one bad time must not make a whole object unreadable."""


def moment(value: Time) -> float | None:
    """Return a time in seconds since the epoch; None for one that is missing, makes no sense or cannot be told.

    The API server takes the years 0 to 9999 in any time zone and sends them in UTC, so that it may send years that
    are no years here: 0000, -0001 and 10000 (``Time`` in k8s.io/apimachinery ``pkg/apis/meta/v1/time.go``).
    """
    try:
        at = msgspec.convert(value, datetime)
        return None if at.tzinfo is None else at.timestamp()
    except (msgspec.ValidationError, OverflowError):
        return None


def timestamp(seconds: float, *, digits: int = 0) -> str:
    """Write seconds since the epoch as RFC 3339 in UTC, with 0, 3 or 6 digits of a second."""
    precision = {0: "seconds", 3: "milliseconds", 6: "microseconds"}[digits]
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
