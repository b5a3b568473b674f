"""Times as the API reads and writes them: whole seconds, but six decimals in leases and ``eventTime``."""

import datetime as dt
import re
from typing import Any

_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_SECOND_LAYOUT = "2006-01-02T15:04:05Z07:00"


def now(offset_seconds: float = 0) -> str:
    """Return the time now, or that many seconds later, in whole seconds."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=offset_seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro() -> str:
    """Return the time now with six decimals."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> dt.datetime:
    """Return the moment a text of either form stands for.

    Raises:
        ValueError: there is no such moment.
    """
    return dt.datetime.fromisoformat(text)


def whole_seconds(text: Any) -> str:
    """Return a time in UTC with whatever is finer than seconds cut off.

    Go knows a year 0, Python does not: it passes as it is.

    Raises:
        ValueError: the text is no time.
    """
    if not isinstance(text, str) or not _SECOND.fullmatch(text):
        raise _unreadable(text, _SECOND_LAYOUT)
    if text.startswith("0000-") and text.endswith("Z"):
        return text
    return parse(text).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def checked_micro(text: Any) -> str:
    """Return a time in UTC with six decimals.

    Raises:
        ValueError: the text is no time, or does not have six decimals.
    """
    if not isinstance(text, str) or not _MICRO.fullmatch(text):
        raise _unreadable(text, _MICRO_LAYOUT)
    return parse(text).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _unreadable(text: Any, layout: str) -> ValueError:
    return ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{text}"')
