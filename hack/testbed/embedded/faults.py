"""Misbehaviour on demand: slow, failing and lost answers, and a count of every request for tests to assert on.

Rules are looked at before anything else of a request, so a fault hits authentication and unknown paths alike, as a
broken server or proxy does.
"""

import collections
import dataclasses
import re
import threading
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from testbed.embedded.resources import Object

EVICTIONS_KEPT = 100_000


class Loss(Enum):
    """When a connection is dropped."""

    NEVER = "never"
    BEFORE = "before the request is carried out"
    AFTER = "after it is carried out, so that only the answer is lost"


@dataclasses.dataclass(kw_only=True)
class Fault:
    """A rule: which requests it hits and what happens to them.

    Without a status and a loss the request is carried out after the delay, late but right.
    """

    method: str = ".*"
    """A regular expression for the whole method."""
    path: str = ".*"
    """A regular expression found anywhere in path and query."""
    delay_seconds: float = 0.0
    status: int | None = None
    body: Object | None = None
    """The body to answer; by default the API's own for this status."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    loss: Loss = Loss.NEVER
    times: int | None = None
    """How many requests it hits; None: all until it is removed."""
    hits: int = 0
    """How many requests it has hit."""

    def applies(self, method: str, path: str) -> bool:
        """Return whether the rule is for this request and not used up."""
        if self.times is not None and self.hits >= self.times:
            return False
        return bool(re.fullmatch(self.method, method) and re.search(self.path, path))


class RequestKind(NamedTuple):
    """What requests are counted by. A watch has the method ``WATCH``, a lost connection the code 0."""

    method: str
    resource: str
    subresource: str
    code: int


class EvictionCall(NamedTuple):
    """One POST to an eviction subresource."""

    time: float
    """When it was answered, on the monotonic clock, in seconds."""
    namespace: str
    name: str
    uid: str
    """The UID in the precondition, empty if there was none."""
    code: int


class Faults:
    """The rules in force. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Put a rule in force and return it; of several that apply the one added first is used."""
        re.compile(fault.method), re.compile(fault.path)
        with self._lock:
            self._rules.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Take a rule out of force, if it still is."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule is not fault]

    def clear(self) -> None:
        """Take every rule out of force."""
        with self._lock:
            self._rules.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Return the rule that hits a request, counting the hit."""
        with self._lock:
            for rule in self._rules:
                if rule.applies(method, path):
                    rule.hits += 1
                    return rule
        return None


class Journal:
    """What was asked. Readers in other threads get copies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: collections.Counter[RequestKind] = collections.Counter()
        self._evictions: collections.deque[EvictionCall] = collections.deque(maxlen=EVICTIONS_KEPT)

    def count(self, request: RequestKind) -> None:
        """Count a request."""
        with self._lock:
            self._requests[request] += 1

    def record_eviction(self, call: EvictionCall) -> None:
        """Remember a POST to an eviction subresource."""
        with self._lock:
            self._evictions.append(call)

    @property
    def requests(self) -> collections.Counter[RequestKind]:
        """How many requests there were of each kind."""
        with self._lock:
            return self._requests.copy()

    @property
    def evictions(self) -> list[EvictionCall]:
        """The POSTs to eviction subresources, oldest first."""
        with self._lock:
            return list(self._evictions)

    def clear(self) -> None:
        """Forget all of it."""
        with self._lock:
            self._requests.clear()
            self._evictions.clear()
