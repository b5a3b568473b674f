"""What the API answers when it refuses: ``Status`` objects in its own words.

Clients classify by code, reason and causes, people read the message; all of them are as kube-apiserver writes them.
"""

from dataclasses import dataclass

from testbed.embedded.resources import Kind, Object

GENERIC = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", "The resourceVersion for the provided watch is too old."),
    415: ("UnsupportedMediaType", "415: Unsupported Media Type"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted, but may still be processing it"),
}
"""Reason and message by code, where no better ones are known."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong with a field, as ``details.causes`` tells it."""

    reason: str
    message: str
    field: str = ""

    def as_object(self) -> Object:
        """Return the cause as JSON."""
        cause: Object = {"reason": self.reason, "message": self.message}
        return {**cause, "field": self.field} if self.field else cause


class Failure(Exception):  # noqa: N818 - it is an answer of the API, not an error in this program
    """An answer other than success, raised where it is decided and sent as it is."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.list_metadata: Object = {}
        """The ``metadata`` of the answer: only an expired continue token has anything to say there."""

    def body(self) -> Object:
        """Return the ``Status`` object to send."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return {**body, "code": self.code}


def success(details: Object | None = None, code: int | None = None) -> Object:
    """Return the ``Status`` object that says that all went well."""
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        body["details"] = details
    return body if code is None else {**body, "code": code}


def generic(code: int, message: str = "", retry_after_seconds: int = 0) -> Failure:
    """Return the failure a server answers with this code when it has nothing more precise to say."""
    reason, text = GENERIC.get(code, ("", f"the server responded with the status code {code}"))
    details = {"retryAfterSeconds": retry_after_seconds} if retry_after_seconds else {}
    return Failure(code, reason, message or text, details)


def _details(kind: Kind, name: str) -> Object:
    details: Object = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    return {**details, "kind": kind.plural}


def bad_request(message: str) -> Failure:
    """Return the 400 for a request that cannot be understood."""
    return Failure(400, "BadRequest", message)


def not_found(kind: Kind, name: str) -> Failure:
    """Return the 404 for an object that does not exist."""
    return Failure(404, "NotFound", f'{kind.qualified} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str) -> Failure:
    """Return the 409 for creating what exists."""
    return Failure(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', _details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Failure:
    """Return the 409 for a write based on an old state of the object."""
    text = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return Failure(409, "Conflict", text, _details(kind, name))


def modified(kind: Kind, name: str) -> Failure:
    """Return the 409 of the optimistic lock on ``metadata.resourceVersion``."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def precondition(kind: Kind, name: str, why: str) -> Failure:
    """Return the 409 of a precondition of a deletion; the API names the kind there, not the resource."""
    text = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    details: Object = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.kind}
    return Failure(409, "Conflict", text, details)


def forbidden(kind: Kind, name: str, why: str, causes: tuple[Cause, ...] = ()) -> Failure:
    """Return the 403 with its reason."""
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    details = _details(kind, name)
    if causes:
        details["causes"] = [cause.as_object() for cause in causes]
    return Failure(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def invalid(kind: Kind, name: str, causes: list[Cause]) -> Failure:
    """Return the 422 that lists every field that is wrong."""
    details: Object = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.kind, "causes": [cause.as_object() for cause in causes]}
    return Failure(422, "Invalid", f'{kind.qualified_kind} "{name}" is invalid: {listed(causes)}', details)


def other_name(stated: str, name: str) -> Failure:
    """Return the 400 for an object under the path of another."""
    return bad_request(f"the name of the object ({stated}) does not match the name on the URL ({name})")


def other_uid(kind: Kind, key: str, stated: str, uid: str) -> Failure:
    """Return the 409 for a PUT of an object that has been replaced by another of its name."""
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{kind.plural}/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {stated}, UID in object meta: {uid}"
    )
    return conflict(kind, key.rpartition("/")[2], why)


def unconditional_update(kind: Kind, name: str) -> Failure:
    """Return the 422 for a PUT without version, where one is needed; the API names the resource there, not the kind."""
    cause = Cause("FieldValueInvalid", "Invalid value: 0: must be specified for an update", "metadata.resourceVersion")
    details = {**_details(kind, name), "causes": [cause.as_object()]}
    return Failure(422, "Invalid", f'{kind.qualified} "{name}" is invalid: {listed([cause])}', details)


def listed(causes: list[Cause]) -> str:
    """Return the causes as one text, in which each is told once."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def unreadable_patch(why: str) -> Failure:
    """Return the 422 for a patch after which the object cannot be read any more; the API names no object there."""
    cause = Cause("FieldValueInvalid", f"Invalid value: {why}", "patch")
    return Failure(422, "Invalid", f' "" is invalid: {listed([cause])}', {"causes": [cause.as_object()]})


def expired(message: str) -> Failure:
    """Return the 410 for a resourceVersion or a continue token that the server no longer remembers."""
    return Failure(410, "Expired", message)
