"""The kinds this server knows, as a table: everything else answers 404 as an unknown path does.

A row says where a kind lives and which of the API's general rules hold for it. What is special to one kind (the
defaults of a pod, what makes a node invalid) stands in the module about that rule.
"""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON. What the store holds is never changed in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row: where a kind is served and which general rules hold for it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    """It has a status subresource: status changes there and only there."""
    scale: bool = False
    """It has a scale subresource."""
    counts_generation: bool = False
    """``metadata.generation`` grows with every change of ``spec``."""
    custom: bool = False
    """Defined by a CustomResourceDefinition: list items carry their kind, and there is no strategic merge patch."""
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """What objects of this kind have as ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name messages use: ``pods``, ``leases.coordination.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The name messages about invalid objects use: ``Pod``, ``Lease.coordination.k8s.io``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def key(self, namespace: str, name: str) -> str:
        """Return the key that an object of this kind is stored under."""
        return f"{namespace}/{name}" if self.namespaced else name


NODES = Kind(group="", version="v1", plural="nodes", kind="Node", namespaced=False, status=True, short_names=("no",))
PODS = Kind(group="", version="v1", plural="pods", kind="Pod", status=True, counts_generation=True, short_names=("po",))
EVENTS = Kind(group="", version="v1", plural="events", kind="Event", short_names=("ev",))
NAMESPACES = Kind(
    group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False, status=True, short_names=("ns",)
)
PERSISTENT_VOLUMES = Kind(
    group="",
    version="v1",
    plural="persistentvolumes",
    kind="PersistentVolume",
    namespaced=False,
    status=True,
    short_names=("pv",),
)
SERVICE_ACCOUNTS = Kind(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount", short_names=("sa",))
LEASES = Kind(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
BUDGETS = Kind(
    group="policy",
    version="v1",
    plural="poddisruptionbudgets",
    kind="PodDisruptionBudget",
    status=True,
    counts_generation=True,
    short_names=("pdb",),
)
DEPLOYMENTS = Kind(
    group="apps",
    version="v1",
    plural="deployments",
    kind="Deployment",
    status=True,
    scale=True,
    counts_generation=True,
    short_names=("deploy",),
)
REPLICA_SETS = Kind(
    group="apps",
    version="v1",
    plural="replicasets",
    kind="ReplicaSet",
    status=True,
    scale=True,
    counts_generation=True,
    short_names=("rs",),
)
DAEMON_SETS = Kind(
    group="apps",
    version="v1",
    plural="daemonsets",
    kind="DaemonSet",
    status=True,
    counts_generation=True,
    short_names=("ds",),
)
DEFINITIONS = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    status=True,
    counts_generation=True,
    short_names=("crd",),
)
PRIORITY_CLASSES = Kind(
    group="scheduling.k8s.io",
    version="v1",
    plural="priorityclasses",
    kind="PriorityClass",
    namespaced=False,
    short_names=("pc",),
)
RULES = Kind(
    group="taintkeeper.io",
    version="v1alpha1",
    plural="nodetaintrules",
    kind="NodeTaintRule",
    namespaced=False,
    status=True,
    counts_generation=True,
    custom=True,
    short_names=("ntr",),
)
POLICIES = Kind(
    group="taintkeeper.io",
    version="v1alpha1",
    plural="evictionpolicies",
    kind="EvictionPolicy",
    namespaced=False,
    status=True,
    counts_generation=True,
    custom=True,
    short_names=("evp",),
)
ACCESS_REVIEWS = Kind(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
"""Asked, never stored."""

STORED = (
    NODES,
    PODS,
    EVENTS,
    NAMESPACES,
    PERSISTENT_VOLUMES,
    SERVICE_ACCOUNTS,
    LEASES,
    BUDGETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    DAEMON_SETS,
    DEFINITIONS,
    PRIORITY_CLASSES,
    RULES,
    POLICIES,
)
SERVED = (*STORED, ACCESS_REVIEWS)

BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in SERVED}
BY_PLURAL = {kind.plural: kind for kind in SERVED}
BY_OBJECT = {(kind.api_version, kind.kind): kind for kind in SERVED}

STRICT_UPDATES = {LEASES, RULES, POLICIES, DEFINITIONS}
"""Kinds that refuse a PUT without ``metadata.resourceVersion``."""
