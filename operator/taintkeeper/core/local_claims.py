"""Which claims have their data on a node: those that are bound to a local PersistentVolume.

A pod names its claims only; which volume a claim is bound to stands in the volume (``spec.claimRef``).
"""

from collections.abc import Iterable

from taintkeeper.core.traits import Trait, Traits

Claim = tuple[str, str]


class LocalClaims:
    """All local PersistentVolumes with the claims, by namespace and name, that are bound to them."""

    def __init__(self) -> None:
        self._claim_of: dict[str, Claim] = {}
        self._volumes_of: dict[Claim, set[str]] = {}

    def put(self, volume: str, claim: Claim | None) -> set[Claim]:
        """Note whose data a volume has on a node, None for nobody's; return the claims that this is news for."""
        before = self._claim_of.get(volume)
        held = {each for each in (before, claim) if each is not None}
        known = {each: each in self._volumes_of for each in held}
        if before is not None:
            self._forget(volume, before)
        if claim is not None:
            self._claim_of[volume] = claim
            self._volumes_of.setdefault(claim, set()).add(volume)
        return {each for each in held if known[each] is not (each in self._volumes_of)}

    def drop(self, volume: str) -> set[Claim]:
        """Forget a volume that is gone; return the claims that this is news for."""
        return self.put(volume, None)

    def with_local_storage(self, traits: Traits, namespace: str, claims: Iterable[str]) -> Traits:
        """Return the traits of a pod, with local storage among them if any of its claims has its data on a node."""
        if any((namespace, claim) in self._volumes_of for claim in claims):
            return traits | {Trait.LOCAL_STORAGE}
        return traits

    def _forget(self, volume: str, claim: Claim) -> None:
        del self._claim_of[volume]
        volumes = self._volumes_of[claim]
        volumes.discard(volume)
        if not volumes:
            del self._volumes_of[claim]
