"""Which pods have their data on a node by a claim: one that is bound to a local PersistentVolume.

A pod names its claims only; which volume a claim is bound to stands in the volume (``spec.claimRef``).
"""

from dataclasses import replace

from taintkeeper.core.objects import Pod
from taintkeeper.core.traits import Trait

Claim = tuple[str, str]


class LocalClaims:
    """All local PersistentVolumes with the claims, by namespace and name, that are bound to them; and their users."""

    def __init__(self) -> None:
        self._claim_of: dict[str, Claim] = {}
        self._volumes_of: dict[Claim, set[str]] = {}
        self._users: dict[Claim, set[str]] = {}

    def put(self, volume: str, claim: Claim | None) -> list[str]:
        """Note whose data a volume has on a node, None for nobody's; return the UIDs of the pods that are concerned."""
        before = self._claim_of.get(volume)
        held = {each for each in (before, claim) if each is not None}
        known = {each: each in self._volumes_of for each in held}
        if before is not None:
            del self._claim_of[volume]
            _take_out(self._volumes_of, before, volume)
        if claim is not None:
            self._claim_of[volume] = claim
            self._volumes_of.setdefault(claim, set()).add(volume)
        news = (each for each in held if known[each] is not (each in self._volumes_of))
        return sorted({uid for each in news for uid in self._users.get(each, ())})

    def drop(self, volume: str) -> list[str]:
        """Forget a volume that is gone; return the UIDs of the pods that are concerned."""
        return self.put(volume, None)

    def use(self, pod: Pod) -> None:
        """Note which claims a pod uses; they never change."""
        for claim in pod.claims:
            self._users.setdefault((pod.ref.namespace, claim), set()).add(pod.ref.uid)

    def forget(self, pod: Pod) -> None:
        """Forget a pod that is gone."""
        for claim in pod.claims:
            _take_out(self._users, (pod.ref.namespace, claim), pod.ref.uid)

    def complete(self, pod: Pod) -> Pod:
        """Return the pod with local storage among its traits if any of its claims has its data on a node."""
        if any((pod.ref.namespace, claim) in self._volumes_of for claim in pod.claims):
            return replace(pod, traits=pod.traits | {Trait.LOCAL_STORAGE})
        return pod


def _take_out(groups: dict[Claim, set[str]], claim: Claim, member: str) -> None:
    members = groups.get(claim, set())
    members.discard(member)
    if not members:
        groups.pop(claim, None)
