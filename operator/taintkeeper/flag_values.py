"""How the values of flags are read: text in, value out, or ValueError with what is wrong, to be put after the text."""

import math
import re
from ipaddress import ip_address

from taintkeeper.core.disruption import Marking
from taintkeeper.core.label_checks import is_subdomain
from taintkeeper.core.rules import Limit


def read_text(text: str) -> str | None:
    """Read a name; an empty one is none."""
    return text or None


def read_name(text: str) -> str:
    """Read the name of an object (``IsDNS1123Subdomain`` in k8s.io/apimachinery ``pkg/util/validation``)."""
    if not is_subdomain(text):
        raise ValueError("is no name that an object can have: lowercase letters, digits, '-' and '.'")
    return text


def read_namespace(text: str) -> str | None:
    """Read the name of a namespace (``IsDNS1123Label`` in the same place); an empty one is none."""
    if text and (not is_subdomain(text) or "." in text or len(text) > 63):
        raise ValueError("is no name that a namespace can have: lowercase letters, digits and '-'")
    return text or None


def read_boolean(text: str) -> bool:
    """Read a switch as Go does."""
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("is neither true nor false")
    return text.lower() in ("true", "1")


def read_number(text: str) -> float:
    """Read a number of zero or more."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError("is not a number of zero or more")
    return number


def read_fraction(text: str) -> float:
    """Read a number from 0 to 1."""
    number = read_number(text)
    if number > 1:
        raise ValueError("is not between 0 and 1")
    return number


def read_count(text: str, *, least: int = 0) -> int:
    """Read a whole number of at least ``least``."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError("is not a whole number") from None
    if number < least:
        raise ValueError(f"is less than {least}")
    return number


def read_limit(text: str) -> Limit:
    """Read a count or a percentage of all."""
    digits = text.removesuffix("%")
    percent = digits != text
    if not (digits.isascii() and digits.isdecimal()) or (percent and int(digits) > 100):
        raise ValueError("is neither a whole number nor a percentage such as 20%")
    return Limit(int(digits), percent)


def read_at_least_one(text: str) -> int:
    """Read a whole number that is not zero."""
    return read_count(text, least=1)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s)", re.ASCII)


def read_duration(text: str) -> float:
    """Read a duration as Go does, in seconds."""
    if _DURATION.fullmatch(text) is None:
        raise ValueError("is not a duration such as 50s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def read_period(text: str) -> float:
    """Read a duration that is not zero, in seconds."""
    seconds = read_duration(text)
    if seconds <= 0.0:
        raise ValueError("is no time at all")
    return seconds


def read_whole_seconds(text: str) -> int:
    """Read a duration that is a whole number of seconds and not zero."""
    seconds = read_period(text)
    if seconds != int(seconds):
        raise ValueError("is not a whole number of seconds")
    return int(seconds)


def read_address(text: str) -> tuple[str, int] | None:
    """Read where to serve: IP address, or none for all, and port; None for nowhere.

    No name but localhost: to look one up could take long, and come to nothing.
    """
    if text == "0":
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not _is_host(host) or not port.isdecimal() or int(port) > 65535:
        raise ValueError("is not an address such as :8080, 127.0.0.1:8080 or [::1]:8080, or 0 for none")
    return host.strip("[]"), int(port)


def _is_host(text: str) -> bool:
    if text in ("", "localhost"):
        return True
    bare = text.removeprefix("[").removesuffix("]")
    try:
        address = ip_address(bare)
    except ValueError:
        return False
    return text == (bare if address.version == 4 else f"[{bare}]")


def read_marking(text: str) -> Marking:
    """Read when pods are marked as not ready."""
    try:
        return Marking(text)
    except ValueError:
        raise ValueError(f"is none of {', '.join(Marking)}") from None


def read_log_format(text: str) -> str:
    """Read how log lines are written."""
    if text not in ("text", "json"):
        raise ValueError("is neither text nor json")
    return text
