"""Kopf's entry point for NodeTaintRules. Kopf never writes to them.

Where the resource is not defined when Kopf starts, it says so in one warning and watches the rest. It does not look
again, since that would need permission to watch all definitions; the lists of
:class:`taintkeeper.cluster.rule_feed.RuleFeed` notice rules all the same, if not at once. When the definition is
deleted while Kopf watches, Kopf ends with HTTP 404, and ``taintkeeper run`` starts it again without.
"""

from typing import Any

import kopf

from taintkeeper.cluster.rule_feed import GROUP, RULES, VERSION


async def rule(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """Pass a rule on. Nothing is returned, since Kopf would write that into the rule's status."""
    memo.runtime.rule_event(event)


def register(registry: kopf.OperatorRegistry) -> None:
    """Have Kopf watch rules."""
    kopf.on.event(GROUP, VERSION, RULES, registry=registry)(rule)
