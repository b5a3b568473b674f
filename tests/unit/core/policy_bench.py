"""Short ways to say what a test of policies is about."""

from typing import Any

from taintkeeper.core.objects import NO_SCHEDULE
from taintkeeper.core.policies import Policy, TaintPattern
from taintkeeper.core.policy_book import PolicyBook
from taintkeeper.core.policy_messages import PolicySeen
from taintkeeper.core.selectors import Selector

MAINTENANCE = "example.com/maintenance"
SCHEDULING = TaintPattern(MAINTENANCE, effect=NO_SCHEDULE)


def policy(name: str = "p", **facts: Any) -> Policy:
    """Return a policy for everything, unless the facts differ."""
    return Policy(name, **facts)


def labels(**found: str) -> Selector:
    """Return the selector of everything with these labels."""
    return Selector(tuple(found.items()))


def seen(
    made: Policy | None, *, name: str = "", fault: str = "", version: int | str = 1, uid: str = "", **more: Any
) -> PolicySeen:
    """Return what is seen of a policy; its generation is its version."""
    name = name or (made.name if made else "p")
    generation = version if isinstance(version, int) else 1
    return PolicySeen(name, uid or f"{name}-uid", str(version), generation, made, fault, **more)


def book(*policies: Policy, **namespaces: dict[str, str]) -> PolicyBook:
    """Return a book of these policies and namespaces."""
    made = PolicyBook()
    for each in policies:
        made.put(seen(each))
    for name, found in namespaces.items():
        made.see_namespace(name, found)
    return made
