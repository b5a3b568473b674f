"""How the pod that we run in leaves: last of all, and only after another may lead.

Whoever evicts itself while it leads is killed with the Lease in its hands, and others wait for nothing meanwhile.
"""

from collections.abc import Awaitable, Callable

from taintkeeper.cluster.client import ApiClient
from taintkeeper.cluster.writer import ApiWriter, Writer
from taintkeeper.core.answers import Answer
from taintkeeper.core.objects import PodRef

Departure = Callable[[Writer], Awaitable[Answer]]
"""What is left to be written once the Lease has been given back, and nobody else can be told to do it."""


class DepartingWriter(ApiWriter):
    """Writes as :class:`ApiWriter` does, but for ``own``, our own pod, as (namespace, name).

    That one is only rehearsed (``dryRun``). Where the API server would let it go, ``depart`` is told what is to be
    written after we have ended; where not, it waits like any other pod, and we go on.
    """

    def __init__(self, client: ApiClient, own: tuple[str, str], depart: Callable[[Departure], None]) -> None:
        super().__init__(client)
        self._own = own
        self._depart = depart

    async def evict(self, pod: PodRef, grace: int | None = None) -> Answer:
        """See :class:`~taintkeeper.cluster.writer.Writer`."""
        if not self._is_own(pod):
            return await super().evict(pod, grace)
        return self._end_if(await self.rehearse_eviction(pod, grace), lambda last: last.evict(pod, grace))

    async def delete(self, pod: PodRef, grace: int | None, why: str, at: float) -> Answer:
        """See :class:`~taintkeeper.cluster.writer.Writer`."""
        if not self._is_own(pod):
            return await super().delete(pod, grace, why, at)
        return self._end_if(await self.rehearse_deletion(pod, grace), lambda last: last.delete(pod, grace, why, at))

    def _is_own(self, pod: PodRef) -> bool:
        return (pod.namespace, pod.name) == self._own

    def _end_if(self, answer: Answer, departure: Departure) -> Answer:
        if answer.accepted:
            self._depart(departure)
        return answer
