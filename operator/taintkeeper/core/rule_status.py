"""What a rule's status says; when it is written, :mod:`taintkeeper.core.status_reporter` decides."""

from taintkeeper.core.rule_entry import Entry
from taintkeeper.core.rules import RuleCondition, RuleStatus
from taintkeeper.core.status_reporter import keep_time

ACCEPTED = "Accepted"
ACTIVE = "Active"


def rule_status(entry: Entry, before: RuleStatus | None, now: float) -> RuleStatus:
    """Return the status of a rule. ``before`` is the one it has: a condition that stays as it is keeps its time."""
    conditions = (_accepted(entry, now), _active(entry, now))
    return RuleStatus(
        generation=entry.seen.generation,
        matched=entry.matched,
        waiting=entry.waiting,
        tainted=entry.tainted,
        held_back=entry.held_back,
        conditions=tuple(keep_time(each, before.condition(each.type) if before else None) for each in conditions),
    )


def _accepted(entry: Entry, now: float) -> RuleCondition:
    if not entry.seen.fault:
        return RuleCondition(ACCEPTED, "True", "Valid", "The rule makes sense.", now)
    rest = "the rule has no effect" if entry.rule is None else "the last version that made sense stays in force"
    return RuleCondition(ACCEPTED, "False", "Invalid", f"{entry.seen.fault}; {rest}", now)


def _active(entry: Entry, now: float) -> RuleCondition:
    rule = entry.rule
    if rule is None:
        return RuleCondition(ACTIVE, "False", "Invalid", "No version of the rule made sense so far.", now)
    if rule.dry_run:
        message = "dryRun is true: the numbers tell what would be, no node gets the taint."
        return RuleCondition(ACTIVE, "False", "DryRun", message, now)
    if entry.capped:
        message = (
            f"{entry.unhealthy} of {entry.matched} selected nodes suffer, more than maxUnhealthy ({rule.limit}) allows:"
            " no further node gets the taint."
        )
        return RuleCondition(ACTIVE, "False", "MaxUnhealthy", message, now)
    if entry.overruled:
        first = min(entry.overruled)
        message = (
            f"On {entry.overruled[first]} nodes the taint {rule.key}:{rule.effect} has the value of the rule {first},"
            " which comes first by name."
        )
        return RuleCondition(ACTIVE, "False", "Superseded", message, now)
    return RuleCondition(ACTIVE, "True", "InForce", "Nodes get the taint as the rule says.", now)
