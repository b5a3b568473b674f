"""Writes the status of NodeTaintRules, and nothing else of them."""

from collections.abc import Callable
from typing import Protocol

from taintkeeper.cluster.client import MERGE_PATCH, ApiClient, Call, UnreachableError, status_message
from taintkeeper.cluster.rule_feed import RULES_PATH
from taintkeeper.cluster.rule_wire import encode_rule_status
from taintkeeper.core.rules import RuleWritten, WriteRuleStatus


class RuleWriter(Protocol):
    """Writes statuses. Nothing here raises: what went wrong is part of the answer."""

    async def write_status(self, effect: WriteRuleStatus) -> RuleWritten:
        """Write a status to the rule, replacing the one that it has."""
        ...


class ApiRuleWriter:
    """Writes through the API; ``failed`` is told of the name and the reason when that does not work."""

    def __init__(self, client: ApiClient, failed: Callable[[str, str], None]) -> None:
        self._client = client
        self._failed = failed

    async def write_status(self, effect: WriteRuleStatus) -> RuleWritten:
        """See :class:`RuleWriter`. A rule that is gone needs no status.

        For another rule that has got the name meanwhile it is wrong until that one is seen: the API server looks at
        no UID here (``statusStrategy`` in k8s.io/apiextensions-apiserver ``pkg/registry/customresource``).
        """
        body = {"status": encode_rule_status(effect.status)}
        path = f"{RULES_PATH}/{effect.name}/status"
        call = Call("PATCH", path, "patch", "nodetaintrules/status", body=body, content_type=MERGE_PATCH)
        try:
            reply = await self._client.send(call)
        except UnreachableError as error:
            self._failed(effect.name, str(error))
            return RuleWritten(effect.name, done=False)
        done = reply.status < 300 or reply.status == 404
        if not done:
            self._failed(effect.name, f"{reply.status}: {status_message(reply.body)}")
        return RuleWritten(effect.name, done)


class DryRuleWriter:
    """Writes nothing, and answers as if it had."""

    async def write_status(self, effect: WriteRuleStatus) -> RuleWritten:
        """See :class:`RuleWriter`."""
        return RuleWritten(effect.name, done=True)
