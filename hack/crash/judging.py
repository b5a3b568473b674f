"""The rules that hold however often Taintkeeper is killed, each a pure function from facts to faults.

Where the log leaves room, a rule is strict about what Taintkeeper knows and lenient about what it cannot know: how long
a request was under way, or when a process that was just started had read its lists.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from crash.facts import Act, Claim, Facts, Pod, Taint

STEADY_SECONDS = 15.0
"""Who has led for so long without a break has read all lists, and has asked everybody to leave who was to leave.

It takes a second or two, and far longer on a busy machine.
"""
STARTED_SECONDS = 5.0
"""How long after a pod is made its kubelet may say that it has started, which is when a countdown begins."""
UNHEARD = (499, 504)
"""How the API server logs a request whose sender is gone."""
REMOVED_SECONDS = 1.0
"""How long an eviction and the news that its taint is gone may be under way and miss each other."""


@dataclass(slots=True)
class Term:
    """A time in which a process led: from ``begins`` to ``ends``, and at ``renewed`` it was certainly alive."""

    holder: str
    begins: float
    renewed: float
    ends: float


def terms(claims: list[Claim]) -> list[Term]:
    """Return who led when. A term is over when the Lease is, or when another claims it, whichever is first."""
    found: list[Term] = []
    holder = ""
    for claim in sorted(claims, key=lambda each: each.granted):
        if holder and claim.holder != holder:
            found[-1].ends = min(found[-1].ends, claim.sent)
        if claim.holder and claim.holder != holder:
            found.append(Term(claim.holder, claim.granted, claim.sent, claim.sent + claim.lasts))
        elif claim.holder:
            found[-1].renewed, found[-1].ends = claim.sent, claim.sent + claim.lasts
        holder = claim.holder
    return found


def early(facts: Facts) -> list[str]:
    """No pod is asked to leave before a taint's countdown, from the taint's time or the pod's, is over."""
    wrong = []
    for act in _accepted(facts):
        pod = facts.pods[act.uid]
        due = min(_dues(pod, act.at, facts), default=math.inf)
        if due > act.at:
            when = "has no reason to leave" if due == math.inf else f"was due {due - act.at:.3f} s later"
            wrong.append(f"{act.by}: {act.what}, which {when}")
    return wrong


def twice(facts: Facts) -> list[str]:
    """No pod is asked to leave again once it has been told to; a later pod of the same name is another."""
    counts = Counter(act.uid for act in _accepted(facts))
    return [f"{facts.pods[uid].name} was evicted {count} times" for uid, count in counts.items() if count > 1]


def forgotten(facts: Facts) -> list[str]:
    """Every pod whose time is over has been asked to leave when somebody has led for a while since."""
    asked = {act.uid: act.at for act in _accepted(facts)}
    led = terms(facts.claims)
    wrong = []
    for pod in facts.pods.values():
        by = min(_musts(pod, facts, led), default=math.inf)
        if by < asked.get(pod.uid, facts.end):
            late = asked[pod.uid] - by if pod.uid in asked else None
            wrong.append(
                f"{pod.name} was never evicted" if late is None else f"{pod.name} was evicted {late:.1f} s late"
            )
    return wrong


def usurped(facts: Facts) -> list[str]:
    """Nobody evicts, or writes a node, who does not lead at that moment."""
    led = terms(facts.claims)
    return [
        f"{act.by}: {act.what}, and did not lead"
        for act in facts.acts
        if not any(term.holder == act.by and term.begins <= act.at <= term.ends for term in led)
    ]


def strangers(facts: Facts) -> list[str]:
    """Every eviction names the pod that it means by its UID, and that is one that there was."""
    return [
        f"{act.by}: {act.what} without a UID that is known" for act in _departures(facts) if act.uid not in facts.pods
    ]


def unjudged(facts: Facts) -> list[str]:
    """Every pod that was due can be judged: else the story ended too early, or nobody led."""
    asked = {act.uid for act in _accepted(facts)}
    led = terms(facts.claims)
    wrong = []
    for pod in facts.pods.values():
        due = min(_dues(pod, facts.end, facts), default=math.inf)
        if due <= facts.end and pod.uid not in asked and not list(_musts(pod, facts, led)):
            wrong.append(f"{pod.name} was due, and nobody led for long enough to tell")
    return wrong if any(_accepted(facts)) else [*wrong, "nobody was evicted"]


RULES = {
    "evicted before its time": early,
    "evicted twice": twice,
    "forgotten": forgotten,
    "by a process that did not lead": usurped,
    "without saying which pod": strangers,
    "cannot be judged": unjudged,
}
"""What each rule finds, in the words of the verdict."""


def _departures(facts: Facts) -> Iterator[Act]:
    return (act for act in facts.acts if act.what.startswith(("evict", "delete")))


def _accepted(facts: Facts) -> Iterator[Act]:
    """Yield the requests by which pods were told to leave, the earliest first.

    The API server may carry out a request whose sender was killed before the answer, and calls it failed. So where a
    pod ended and nobody's request for it was granted, the last one that failed so was.
    """
    asked: dict[str, Act] = {}
    granted: list[Act] = []
    for act in sorted(_departures(facts), key=lambda each: each.at):
        if act.uid in facts.pods and 200 <= act.status < 300:
            granted.append(act)
        elif act.uid in facts.ended and act.status in UNHEARD:
            asked[act.uid] = act
    known = {act.uid for act in granted}
    unheard = [act for act in asked.values() if act.uid not in known]
    return iter(sorted([*granted, *unheard], key=lambda each: each.at))


def _dues(pod: Pod, at: float, facts: Facts) -> Iterator[float]:
    """Yield when the pod is due at the earliest, for each taint that stands at this time."""
    for taint in facts.taints:
        if taint.node == pod.node and taint.since <= at <= taint.until + REMOVED_SECONDS:
            added = taint.since if taint.added is None else taint.added
            # A pod's own times have whole seconds.
            yield max(added, math.floor(pod.created)) + pod.seconds.get(taint.key, 0.0)


def _musts(pod: Pod, facts: Facts, led: list[Term]) -> Iterator[float]:
    """Yield by when the pod must have been told to leave, for each taint that stands to the end."""
    for taint in facts.taints:
        if taint.node == pod.node and taint.until == math.inf:
            begun = max(_known(taint, led), pod.created + STARTED_SECONDS)
            due = begun + pod.seconds.get(taint.key, 0.0)
            by = _steady(max(due, facts.freed.get(pod.app, due)), led)
            if by < math.inf:
                yield by


def _known(taint: Taint, led: list[Term]) -> float:
    """Return since when a countdown runs at the latest: without a time of its own, since somebody saw the taint."""
    return taint.added if taint.added is not None else _steady(taint.since, led)


def _steady(after: float, led: list[Term]) -> float:
    """Return when somebody had led for a while after a moment; never is inf."""
    for term in led:
        start = max(after, term.begins)
        if term.renewed - start >= STEADY_SECONDS:
            return start + STEADY_SECONDS
    return math.inf
