"""Whether what was seen is what should have been seen."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from demo.forecast import Forecast
from demo.reading import (
    EVICTED,
    FIRST_SEEN,
    OWN_PREFIX,
    app_of,
    is_leaving,
    is_ready,
    listed,
    name_of,
    node_of,
    taints_of,
    uid_of,
)
from demo.record import BLOCKED, CANCELLED, Record
from testbed.client import Object

SLACK_SECONDS = 1.5
"""How late an eviction may be seen: the machine has other things to do as well."""


@dataclass(frozen=True, slots=True)
class Check:
    """One claim, with what was expected and what was seen."""

    claim: str
    ok: bool
    expected: str
    seen: str


def outcome(record: Record, forecast: Forecast) -> Check:
    """Check that a forecast has come true."""
    if not forecast.leaves:
        return _stayed(record, forecast)
    return _left_once_free(record, forecast) if forecast.held else _left_on_time(record, forecast)


def _left_on_time(record: Record, forecast: Forecast) -> Check:
    name, node, after = name_of(forecast.pod), node_of(forecast.pod), forecast.after
    when = f"{after:g} s after the taint" if after else "as soon as it was tainted"
    expected = f"evicted between {after:g} and {after + SLACK_SECONDS:g} s after the taint"
    claim = f"{name} left {node} {when}"
    left = record.left(forecast.pod)
    sentence = record.sentence(left) if left else None
    if left is None or sentence is None:
        return Check(claim, False, expected, "still there" if left is None else "left without a taint")
    took = left.at - sentence[0].start
    how = "evicted" if left.how == EVICTED else f"deleted ({left.how or 'no reason given'})"
    ok = left.how == EVICTED and after <= took <= after + SLACK_SECONDS
    return Check(claim, ok, expected, f"{how} after {took:.2f} s")


def _left_once_free(record: Record, forecast: Forecast) -> Check:
    name, budget = name_of(forecast.pod), forecast.held
    claim = f"{name} was held by its budget {budget} and left once that opened"
    expected = f"an event that names the budget, then evicted at most {SLACK_SECONDS:g} s after the budget opened"
    left, blocked = record.left(forecast.pod), record.told(name, BLOCKED, f"/{budget}")
    if left is None or blocked is None:
        return Check(claim, False, expected, "still there" if left is None else "no such event")
    opened = record.opened(budget, blocked.at)
    if opened is None or left.how != EVICTED:
        seen = "the budget never opened" if opened is None else f"deleted ({left.how or 'no reason given'})"
        return Check(claim, False, expected, seen)
    # Budgets and pods are told by different watches, so that the opening may be seen a moment after its effect.
    ok = blocked.at <= left.at <= opened + SLACK_SECONDS
    return Check(
        claim,
        ok,
        expected,
        f"held for {left.at - blocked.at:.2f} s, then left within {max(0.0, left.at - opened):.2f} s",
    )


def _stayed(record: Record, forecast: Forecast) -> Check:
    name = name_of(forecast.pod)
    pod = record.pods.get(uid_of(forecast.pod))
    there = pod is not None and not is_leaving(pod)
    if not forecast.spared:
        why = forecast.why.removeprefix("should stay: ")
        claim = f"{name} stayed on {node_of(forecast.pod)}: {why}"
        return Check(claim, there, "still there, never told to end", "still there" if there else "gone or ending")
    told = record.told(name, "TaintManagerEviction", CANCELLED) is not None
    seen = f"{'still there' if there else 'gone or ending'}, {'an event' if told else 'no event'}"
    claim = f"{name} stayed: the node was back before its {forecast.after:g} s were over"
    return Check(claim, there and told, "still there, and an event that its countdown is cancelled", seen)


def tainted_at_once(record: Record, node: str, since: float, wanted: Iterable[str]) -> Check:
    """Check that a node got all of these taints in one write, soon after this moment."""
    names = frozenset(wanted)
    claim = f"{node} got {listed(names)} in one write"
    expected = f"both within {SLACK_SECONDS:g} s"
    at = record.tainted_at(node, names)
    if at is None:
        return Check(claim, False, expected, f"never; its taints are now: {listed(taints_of(record.nodes[node]))}")
    return Check(claim, at - since <= SLACK_SECONDS, expected, f"{at - since:.2f} s after its condition changed")


def no_taint_of_ours(record: Record, when: str) -> Check:
    """Check that no node has a taint for a condition."""
    tainted = {name: [t for t in taints_of(node) if t.startswith(OWN_PREFIX)] for name, node in record.nodes.items()}
    left = [f"{name}: {listed(taints)}" for name, taints in tainted.items() if taints]
    return Check(f"no node was tainted any more {when}", not left, f"no {OWN_PREFIX} taint", "; ".join(left) or "none")


def left_as_found(record: Record, nodes: Iterable[str]) -> Check:
    """Check that these nodes have neither a taint nor the operator's memory of one."""
    touched = [name for name in nodes if not is_untouched(record.nodes[name])]
    seen = f"left on {', '.join(touched)}" if touched else "nothing"
    return Check("nothing was left on any node", not touched, "no taint, no annotation of the operator's", seen)


def is_untouched(node: Object) -> bool:
    """Say whether a node has neither a taint nor the operator's memory of one."""
    return not taints_of(node) and FIRST_SEEN not in (node["metadata"].get("annotations") or {})


def replaced_elsewhere(record: Record, app: str, replicas: int, node: str) -> Check:
    """Check that a workload is complete without this node."""
    running = [p for p in record.pods.values() if app_of(p) == app and is_ready(p) and not is_leaving(p)]
    here = sum(node_of(pod) == node for pod in running)
    seen = f"{len(running)} pods run, {here} of them on {node}"
    ok = len(running) == replicas and here == 0
    return Check(f"{app} is complete without {node}", ok, f"{replicas} pods run, 0 of them on {node}", seen)


def only_these_left(record: Record, forecasts: Iterable[Forecast]) -> Check:
    """Check that nobody left who was not to leave, and that every pod left through the Eviction API."""
    expected = {uid_of(forecast.pod) for forecast in forecasts if forecast.leaves}
    strangers = [name_of(left.pod) for left in record.lefts() if uid_of(left.pod) not in expected]
    seen = f"{len(record.lefts())} pods left" + (f", also {', '.join(strangers)}" if strangers else "")
    return Check("nobody else was evicted", not strangers, f"only the {len(expected)} pods that had to", seen)


def budget_kept(record: Record, budget: str, least: int) -> Check:
    """Check that a budget was never broken."""
    fewest = record.fewest.get(budget, 0)
    claim = f"budget {budget} was kept: never fewer than {least} pods available"
    return Check(claim, fewest >= least, f"at least {least} at any moment", f"the fewest were {fewest}")


def ended_well(exit_code: int | None) -> Check:
    """Check that the operator ended as it was told to."""
    return Check("the operator ended cleanly", exit_code == 0, "exit code 0", f"exit code {exit_code}")


def report(checks: Iterable[Check], passed: Callable[[str], None], failed: Callable[[str], None]) -> bool:
    """Tell each check, and return whether all came out right."""
    fine = True
    for check in checks:
        if check.ok:
            passed(f"  ok    {check.claim} ({check.seen})")
            continue
        fine = False
        failed(f"  FAIL  {check.claim}")
        failed(f"          expected: {check.expected}")
        failed(f"          seen:     {check.seen}")
    return fine
