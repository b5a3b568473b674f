"""What a pod may have about it that exempts it from eviction, by itself or where a policy says so."""

from enum import StrEnum

EVICT_ANNOTATION = "taintkeeper.io/evict"
"""With the value "false" on a pod, that pod is never evicted."""


class Trait(StrEnum):
    """What a pod may have about it that exempts it from eviction; the values are metric labels."""

    ANNOTATED = "annotation"
    UNMANAGED = "unmanaged"
    DAEMON_SET = "daemon-set"
    LOCAL_STORAGE = "local-storage"


Traits = frozenset[Trait]
NO_TRAITS: Traits = frozenset()
