"""Candidates around one Lease: each with a clock and a pace of its own, and answers that come late or never."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from taintkeeper.core.election import Claim, Election, Look, Record, Terms

TERMS = Terms("us_1", lease_seconds=15, renew_seconds=10.0, retry_seconds=2.0)


def held(by: str, version: str = "1", *, seconds: float | None = 15, transitions: int = 3) -> Record:
    """Return the Lease as somebody has written it."""
    return Record("uid", version, by, seconds, transitions)


@dataclass
class Store:
    """The API server's side: one Lease, and a version that grows with every write."""

    record: Record | None = None
    version: int = 0

    def carry_out(self, request: Look | Claim, terms: Terms) -> Record | None:
        """Carry a request out; raises KeyError for a claim at another version."""
        if isinstance(request, Look):
            return self.record
        if request.version != (None if self.record is None else self.record.version):
            raise KeyError
        return self.write(Record("uid", "", terms.identity, terms.lease_seconds, request.transitions))

    def write(self, record: Record) -> Record:
        """Write the Lease, whoever wants it so."""
        self.version += 1
        self.record = replace(record, version=str(self.version))
        return self.record


@dataclass
class Candidate:
    """One candidate. Its clock goes ``rate`` times as fast as the true one, from a beginning of its own."""

    terms: Terms
    store: Store
    offset: float = 0.0
    rate: float = 1.0
    election: Election = field(init=False)
    asked: Look | Claim | None = None
    answer: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        self.election = Election(self.terms)

    def clock(self, true: float) -> float:
        """Return what its clock shows."""
        return self.offset + self.rate * true

    def leads(self, true: float) -> bool:
        """Return whether it believes that it may act."""
        return self.election.leads(self.clock(true))

    def send(self, true: float) -> None:
        """Send the next request, if none is under way and one is due."""
        if self.asked is None and self.answer is None and self.election.due <= self.clock(true):
            self.asked = self.election.request(self.clock(true))

    def arrive(self) -> None:
        """Have the request carried out; its answer is then on its way."""
        if self.asked is None:
            return
        request, self.asked = self.asked, None
        try:
            record = self.store.carry_out(request, self.terms)
        except KeyError:
            self.answer = self.election.failed
            return
        if isinstance(request, Look):
            self.answer = lambda now: self.election.found(record, now)
        elif record is not None:
            self.answer = lambda now: self.election.claimed(record, now)

    def hear(self, true: float) -> None:
        """Let the answer come."""
        if self.answer is not None:
            self.answer(self.clock(true))
            self.answer = None

    def give_up(self, true: float) -> None:
        """Wait no longer for the answer: it is lost, or the request is."""
        if self.asked is not None or self.answer is not None:
            self.asked = self.answer = None
            self.election.failed(self.clock(true))

    def crash(self) -> None:
        """End, and begin anew as somebody else."""
        name, _, run = self.terms.identity.partition("_")
        self.terms = replace(self.terms, identity=f"{name}_{int(run) + 1}")
        self.election = Election(self.terms)
        self.asked = self.answer = None
