"""Who is asking and what they may do: bearer tokens, and denials that a test sets.

Without a denial everything is allowed.
"""

import secrets
import threading
from dataclasses import dataclass

from testbed.embedded.failures import Failure, generic
from testbed.embedded.resources import Kind, Object

ADMINISTRATOR = "kubernetes-admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """What is not allowed, and to whom; an empty user means everybody but the administrator."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    user: str = ""

    def covers(self, call: "Call", user: str) -> bool:
        """Return whether this denial forbids a call."""
        same = (self.verb, self.resource, self.group, self.subresource) == (
            call.verb,
            call.resource,
            call.group,
            call.subresource,
        )
        return same and (user == self.user if self.user else user != ADMINISTRATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a request wants to do, in the words of RBAC."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Access:
    """Tokens and denials. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[str, str] = {}
        self._denials: set[Denial] = set()

    def issue_token(self, user: str) -> str:
        """Return a new token that stands for a user."""
        token = secrets.token_urlsafe(16)
        with self._lock:
            self._users[token] = user
        return token

    def revoke_token(self, token: str) -> str:
        """Have a token answered with 401 from now on and return whose it was.

        Raises:
            KeyError: there is no such token.
        """
        with self._lock:
            return self._users.pop(token)

    def user_of(self, authorization: str) -> str:
        """Return the user behind an ``Authorization`` header.

        No header at all is the administrator: kubectl withholds its token from a server without TLS.

        Raises:
            Failure: 401, the token is unknown.
        """
        if not authorization:
            return ADMINISTRATOR
        with self._lock:
            user = self._users.get(authorization.removeprefix("Bearer "))
        if user is None:
            failure = generic(401)
            failure.details = None
            raise failure
        return user

    def deny(self, denial: Denial) -> None:
        """Forbid something."""
        with self._lock:
            self._denials.add(denial)

    def allow(self, denial: Denial) -> None:
        """Take a denial back."""
        with self._lock:
            self._denials.discard(denial)

    def is_allowed(self, call: Call, user: str) -> bool:
        """Return whether a user may make a call."""
        with self._lock:
            return not any(denial.covers(call, user) for denial in self._denials)

    def check(self, call: Call, user: str, kind: Kind) -> None:
        """Check that a user may make a call.

        Raises:
            Failure: 403, a denial covers it.
        """
        if self.is_allowed(call, user):
            return
        resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        scope = f'in the namespace "{call.namespace}"' if call.namespace else "at the cluster scope"
        subject = f'{kind.qualified} "{call.name}"' if call.name else kind.qualified
        text = (
            f'{subject} is forbidden: User "{user}" cannot {call.verb} resource "{resource}" '
            f'in API group "{call.group}" {scope}'
        )
        details: Object = {"name": call.name} if call.name else {}
        details |= {"group": kind.group} if kind.group else {}
        raise Failure(403, "Forbidden", text, {**details, "kind": kind.plural})

    def review(self, body: Object, user: str) -> Object:
        """Return the answer to a SelfSubjectAccessReview."""
        spec = body.get("spec") or {}
        asked = spec.get("resourceAttributes") or {}
        call = Call(
            verb=asked.get("verb", ""),
            group=asked.get("group", ""),
            resource=asked.get("resource", ""),
            subresource=asked.get("subresource", ""),
            namespace=asked.get("namespace", ""),
            name=asked.get("name", ""),
        )
        allowed = self.is_allowed(call, user)
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": allowed},
        }
