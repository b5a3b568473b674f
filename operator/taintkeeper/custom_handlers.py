"""Kopf's entry point for objects of our own kinds. Kopf never writes to them.

Where a resource is not defined when Kopf starts, it says so in one warning and watches the rest. It does not look
again, since that would need permission to watch all definitions; the lists of
:class:`taintkeeper.cluster.custom_feed.CustomFeed` notice objects all the same, if not at once. When the definition is
deleted while Kopf watches, Kopf ends with HTTP 404, and ``taintkeeper run`` starts it again without.
"""

from collections.abc import Iterable
from typing import Any

import kopf

from taintkeeper.cluster.custom_kind import GROUP, VERSION


async def custom(event: kopf.RawEvent, resource: kopf.Resource, memo: kopf.Memo, **_: Any) -> None:
    """Pass an object on. Nothing is returned, since Kopf would write that into the object's status."""
    memo.runtime.custom_event(resource.plural, event)


def register(registry: kopf.OperatorRegistry, resources: Iterable[str]) -> None:
    """Have Kopf watch these resources; to be told so again makes no difference."""
    for resource in resources:
        kopf.on.event(GROUP, VERSION, resource, registry=registry)(custom)
