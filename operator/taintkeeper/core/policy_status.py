"""What a policy's status says."""

from random import Random

from taintkeeper.core.policies import Mode, Policy
from taintkeeper.core.policy_book import PolicyBook, PolicyEntry
from taintkeeper.core.policy_messages import PolicySeen, PolicyStatus, PolicyWritten, WritePolicyStatus
from taintkeeper.core.policy_tally import PolicyTally
from taintkeeper.core.rule_status import ACCEPTED, ACTIVE
from taintkeeper.core.rules import RuleCondition
from taintkeeper.core.status_reporter import StatusReporter, keep_time


class PolicyReporter:
    """Decides which statuses of policies to write when."""

    def __init__(self, book: PolicyBook, tally: PolicyTally, random: Random) -> None:
        self._book = book
        self._tally = tally
        self._reporter: StatusReporter[PolicyStatus] = StatusReporter(self._compose, random)
        self._before: dict[str, tuple[str, int]] = {}

    def put(self, seen: PolicySeen) -> None:
        """Take in a policy as it is now, with the status that it has, after the book has taken it in."""
        entry = self._book.entry(seen.name)
        if entry is None or entry.seen is not seen:
            return
        uid, before = self._before.get(seen.name, (seen.uid, 0))
        if uid != seen.uid:
            before = 0
            self._tally.drop(seen.name)
        # What others have evicted stands in the status alone: those that led before us, or lead while we wait.
        told = 0 if seen.status is None else seen.status.evicted
        self._before[seen.name] = seen.uid, max(before, told - self._tally.numbers(seen.name).evicted)
        self._reporter.put(seen.name, seen.uid, seen.status)
        self._touch_all()

    def drop(self, name: str) -> None:
        """Forget a policy that is gone, after the book has."""
        self._before.pop(name, None)
        self._tally.drop(name)
        self._reporter.drop(name)
        self._touch_all()

    def written(self, answer: PolicyWritten, now: float) -> None:
        """Take in how a write ended."""
        self._reporter.written(answer.name, now, done=answer.done)

    def due(self, now: float) -> list[WritePolicyStatus]:
        """Return the statuses to write now. Call it only while what is known of nodes and pods can be relied on."""
        for name in self._tally.take_touched():
            self._reporter.touch(name)
        return [WritePolicyStatus(name, status) for name, _, status in self._reporter.due(now)]

    def wake_at(self) -> float | None:
        """Return when to call :meth:`due` again, in seconds since the epoch."""
        return self._reporter.wake_at()

    def _touch_all(self) -> None:
        """Look at every status again: one policy may supersede another."""
        for policy in self._book.ordered:
            self._reporter.touch(policy.name)

    def _compose(self, name: str, before: PolicyStatus | None, now: float) -> PolicyStatus:
        entry = self._book.entry(name)
        if entry is None:
            raise LookupError(f"policy {name} is reported, but not in the book")
        numbers = self._tally.numbers(name)
        conditions = (_accepted(entry, now), _active(entry, self._book, now))
        return PolicyStatus(
            generation=entry.seen.generation,
            pending=numbers.pending,
            blocked=numbers.blocked,
            evicted=self._before[name][1] + numbers.evicted,
            exempt=numbers.exempt,
            conditions=tuple(keep_time(each, before.condition(each.type) if before else None) for each in conditions),
        )


def _accepted(entry: PolicyEntry, now: float) -> RuleCondition:
    if not entry.seen.fault:
        return RuleCondition(ACCEPTED, "True", "Valid", "The policy makes sense.", now)
    rest = "the policy has no effect" if entry.policy is None else "the last version that made sense stays in force"
    return RuleCondition(ACCEPTED, "False", "Invalid", f"{entry.seen.fault}; {rest}", now)


def _active(entry: PolicyEntry, book: PolicyBook, now: float) -> RuleCondition:
    policy = entry.policy
    if policy is None:
        return RuleCondition(ACTIVE, "False", "Invalid", "No version of the policy made sense so far.", now)
    if superseding := book.superseded_by(policy):
        message = f"Decides about nothing: {', '.join(superseding)} with more precedence, or first by name, decides."
        return RuleCondition(ACTIVE, "False", "Superseded", message, now)
    if policy.dry_run:
        message = "dryRun is true: the numbers tell what would be, no pod leaves."
        return RuleCondition(ACTIVE, "False", "DryRun", message, now)
    return RuleCondition(ACTIVE, "True", "InForce", _in_force(policy), now)


def _in_force(policy: Policy) -> str:
    match policy.mode:
        case Mode.IGNORE:
            return "Pods stay where they are."
        case Mode.DELETE:
            return "Pods are deleted, whatever their disruption budgets say."
        case Mode.EVICT_THEN_DELETE:
            return f"Pods are evicted, and deleted after being blocked for {policy.patience:.0f} s."
        case Mode.EVICT:
            return "Pods are evicted as soon as their disruption budgets allow it."
