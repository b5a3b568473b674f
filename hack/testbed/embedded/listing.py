"""Lists: the options a request may have, pages that stay consistent, and continue tokens that expire."""

import base64
import binascii
import bisect
import collections
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from testbed.embedded.failures import Cause, Failure, bad_request, expired, listed
from testbed.embedded.resources import Kind, Object
from testbed.embedded.selectors import Match, everything, parse_fields, parse_labels
from testbed.embedded.store import Record, Store
from testbed.embedded.validation import denied, unsupported

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)
SNAPSHOTS = 64
"""How many lists may be half read at the same time."""

INCONSISTENT = -1
"""The version in a token that continues from whatever is there now."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a list or a watch asks for, apart from kind and namespace."""

    version: str
    version_match: str
    labels: Match
    fields: Match
    limit: int
    token: str

    @property
    def selective(self) -> bool:
        """Whether any selector is given."""
        return self.labels is not everything or self.fields is not everything

    def matches(self, value: Object) -> bool:
        """Return whether an object is wanted."""
        return self.labels(value) and self.fields(value)


def parse_query(kind: Kind, parameters: Mapping[str, str]) -> Query:
    """Return the query of a request.

    Raises:
        Failure: 400 or 422, a parameter makes no sense.
    """
    version = parameters.get("resourceVersion", "")
    if version and not version.isdigit():
        why = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise bad_request(f"invalid resource version: {why}")
    limit = parameters.get("limit", "") or "0"
    if not limit.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{limit}": invalid syntax')
    return Query(
        version=version,
        version_match=parameters.get("resourceVersionMatch", ""),
        labels=parse_labels(parameters.get("labelSelector", "")),
        fields=parse_fields(kind, parameters.get("fieldSelector", "")),
        limit=int(limit),
        token=parameters.get("continue", ""),
    )


def invalid_options(causes: list[Cause]) -> Failure:
    """Return the 422 for parameters that do not go together."""
    details: Object = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [each.as_object() for each in causes]}
    return Failure(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {listed(causes)}', details)


def too_large_version(wanted: int, current: int) -> Failure:
    """Return the 504 for a version that the server has not reached yet."""
    cause = Cause("ResourceVersionTooLarge", "Too large resource version").as_object()
    details: Object = {"causes": [cause], "retryAfterSeconds": 1}
    return Failure(504, "Timeout", f"Timeout: Too large resource version: {wanted}, current: {current}", details)


def _check_list_options(query: Query, parameters: Mapping[str, str]) -> None:
    match, causes = query.version_match, []
    if match and not query.version:
        causes.append(
            denied("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
        )
    if match and query.token:
        causes.append(denied("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
    if match not in {"", "Exact", "NotOlderThan"}:
        causes.append(unsupported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and query.version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(denied("resourceVersionMatch", text))
    if "sendInitialEvents" in parameters:
        causes.append(denied("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if causes:
        raise invalid_options(causes)


class Lister:
    """Answers list requests; remembers the rest of each list that is read in pages."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._snapshots: collections.OrderedDict[tuple[int, Kind, str, str], list[tuple[str, Record]]] = (
            collections.OrderedDict()
        )

    def expire_tokens(self) -> None:
        """Make every continue token handed out so far answer 410."""
        self._snapshots.clear()

    def answer(self, kind: Kind, namespace: str, parameters: Mapping[str, str]) -> bytes:
        """Return the JSON of a list or of one page of it.

        Raises:
            Failure: 400 or 422 for a bad request, 410 for an expired token, 504 for a version not reached yet.
        """
        query = parse_query(kind, parameters)
        _check_list_options(query, parameters)
        selectors = parameters.get("labelSelector", "") + "&" + parameters.get("fieldSelector", "")
        if query.token:
            version, records = self._continued(kind, namespace, selectors, query)
        else:
            version, records = self._fresh(query), self.store.sorted_records(kind, namespace)
            if query.selective:
                records = [(key, record) for key, record in records if query.matches(record.value)]
        unlimited = query.limit == 0 or (query.version == "0" and not query.version_match)
        page = records if unlimited else records[: query.limit]
        token = self._remember(kind, namespace, selectors, version, records, page)
        remaining = len(records) - len(page) if token and not query.selective else 0
        return _list_body(kind, version, page, token, remaining)

    def _fresh(self, query: Query) -> int:
        wanted = int(query.version or "0")
        if wanted > self.store.version:
            raise too_large_version(wanted, self.store.version)
        if query.version_match == "Exact" and wanted != self.store.version:
            raise expired("The resourceVersion for the provided list is too old.")
        return self.store.version

    def _continued(
        self, kind: Kind, namespace: str, selectors: str, query: Query
    ) -> tuple[int, list[tuple[str, Record]]]:
        if query.version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        version, start = _decoded(query.token)
        if version == INCONSISTENT:
            version = self.store.version
            now = self.store.sorted_records(kind, namespace)
            records = [(key, record) for key, record in now if query.matches(record.value)]
        else:
            snapshot = self._snapshots.get((version, kind, namespace, selectors))
            if snapshot is None:
                raise _expired_token(start)
            records = snapshot
        return version, records[bisect.bisect_right(records, start, key=lambda each: each[0]) :]

    def _remember(
        self,
        kind: Kind,
        namespace: str,
        selectors: str,
        version: int,
        records: list[tuple[str, Record]],
        page: list[tuple[str, Record]],
    ) -> str:
        identity = (version, kind, namespace, selectors)
        if len(page) == len(records):
            return ""
        self._snapshots.setdefault(identity, records)
        self._snapshots.move_to_end(identity)
        if len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return _encoded(version, page[-1][0])


def _encoded(version: int, last_key: str) -> str:
    token = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": last_key + "\0"})
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def _decoded(token: str) -> tuple[int, str]:
    try:
        raw = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return raw["rv"], raw["start"].rstrip("\0")
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None


def _expired_token(start: str) -> Failure:
    failure = expired(TOO_OLD)
    failure.list_metadata = {"continue": _encoded(INCONSISTENT, start)}
    return failure


def _list_body(kind: Kind, version: int, page: list[tuple[str, Record]], token: str, remaining: int) -> bytes:
    metadata: Object = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
    if remaining:
        metadata["remainingItemCount"] = remaining
    return b'{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[%s]}' % (
        kind.kind.encode(),
        kind.api_version.encode(),
        msgspec.json.encode(metadata),
        b",".join(record.item for _, record in page),
    )
