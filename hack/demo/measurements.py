"""What the operator's own metrics say of the story."""

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

REQUESTS = "taintkeeper_eviction_requests_total"
BUCKETS = "taintkeeper_eviction_lateness_seconds_bucket"


def summary(text: str) -> list[str]:
    """Return a few lines about what the operator served at ``/metrics``."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    accepted, refused = _requests(samples, "accepted"), _requests(samples, "budget")
    lines = [
        f'{REQUESTS}{{outcome="accepted"}}  {accepted:g}',
        f'{REQUESTS}{{outcome="budget"}}    {refused:g}',
    ]
    added, removed = (
        _total(samples, "taintkeeper_taints_added_total"),
        _total(samples, "taintkeeper_taints_removed_total"),
    )
    lines += [f"taintkeeper_taints_added_total {added:g}, taintkeeper_taints_removed_total {removed:g}"]
    buckets = [(float(s.labels["le"]), s.value) for s in samples if s.name == BUCKETS]
    return [*lines, f"taintkeeper_eviction_lateness_seconds: {lateness(buckets)}"]


def lateness(buckets: list[tuple[float, float]]) -> str:
    """Tell median and maximum as far as a histogram knows them: bounds with how many are at most that."""
    count = max((seen for _, seen in buckets), default=0.0)
    if not count:
        return "no evictions"
    median, most = _bound(buckets, count / 2), _bound(buckets, count)
    return f"half at most {median:g} s, all at most {most:g} s, waiting for budgets included"


def evictions_accepted(text: str) -> float:
    """Return how many evictions the API accepted."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return _requests(samples, "accepted")


def _bound(buckets: list[tuple[float, float]], count: float) -> float:
    return next(bound for bound, seen in sorted(buckets) if seen >= count)


def _requests(samples: Iterable[Sample], outcome: str) -> float:
    return sum(s.value for s in samples if s.name == REQUESTS and s.labels["outcome"] == outcome)


def _total(samples: Iterable[Sample], name: str) -> float:
    return sum(sample.value for sample in samples if sample.name == name)
