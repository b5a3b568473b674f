"""All policies, and which of them decides about a pod and a taint.

The answer is kept for pods and namespaces with the same labels: these are shared objects, of which there are few. Any
change of the policies throws all answers away.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from taintkeeper.core.objects import NO_EXECUTE, Pod, Taint
from taintkeeper.core.policies import (
    DEFAULTS,
    EVERYTHING,
    MODE_IGNORE,
    NAMESPACE_UNKNOWN,
    Decision,
    Mode,
    Policy,
    TaintPattern,
)
from taintkeeper.core.policy_messages import PolicySeen
from taintkeeper.core.traits import NO_TRAITS, Trait, Traits

Labels = Mapping[str, str]
MOST_ANSWERS = 50_000
"""How many answers are kept at most, some 10 MB; then all are found anew."""


@dataclass(slots=True)
class PolicyEntry:
    """A policy in the book. ``policy`` is the version in force: the last that made sense, None where none ever did."""

    seen: PolicySeen
    policy: Policy | None


class PolicyBook:
    """All policies, and the labels of all namespaces."""

    def __init__(self) -> None:
        self._entries: dict[str, PolicyEntry] = {}
        self._ordered: tuple[Policy, ...] = DEFAULTS
        self._namespaces: dict[str, Labels] = {}
        self._candidates: dict[tuple[str, str, str], tuple[Policy, ...]] = {}
        self._answers: dict[tuple[int, int, str, str, str], tuple[Decision, Labels | None, Labels]] = {}

    def put(self, seen: PolicySeen) -> tuple[TaintPattern, ...]:
        """Take in a policy as it is now; return the taints by which pods have to be judged anew.

        One that makes no sense leaves the version before it in force. After a restart there is none before it: then it
        has no effect, and the other policies decide.
        """
        known = self._entries.get(seen.name)
        if known is not None and seen.older_than(known.seen):
            return ()
        before = None
        if known is not None and known.seen.uid == seen.uid:
            before = known.policy
        after = before if seen.policy is None else seen.policy
        replaced = None if known is None else known.policy
        self._entries[seen.name] = PolicyEntry(seen, after)
        return self._changed(replaced, after)

    def drop(self, name: str) -> tuple[TaintPattern, ...]:
        """Forget a policy that is gone; return the taints by which pods have to be judged anew."""
        known = self._entries.pop(name, None)
        return () if known is None else self._changed(known.policy, None)

    def entry(self, name: str) -> PolicyEntry | None:
        """Return the policy of this name, or None."""
        return self._entries.get(name)

    @property
    def ordered(self) -> tuple[Policy, ...]:
        """All policies in force, the first that is for a pod and a taint decides; what holds without any comes last."""
        return self._ordered

    def see_namespace(self, name: str, labels: Labels) -> bool:
        """Take in a namespace as it is now; return whether its pods have to be judged anew."""
        before, self._namespaces[name] = self._namespaces.get(name), labels
        return before != labels and self._selects_namespaces()

    def forget_namespace(self, name: str) -> bool:
        """Forget a namespace that is gone; return whether pods that are still there have to be judged anew."""
        return self._namespaces.pop(name, None) is not None and self._selects_namespaces()

    def acts(self, taint: Taint) -> bool:
        """Say whether the taint may have any pod leave: NoExecute, or one that a policy makes act."""
        return taint.effect == NO_EXECUTE or any(policy.mode is not Mode.IGNORE for policy in self._for_taint(taint))

    def decide(self, pod: Pod, taint: Taint, traits: Traits = NO_TRAITS) -> Decision:
        """Return which policy decides about a pod and a taint, and whether the pod is exempt."""
        found = self._in_force(pod, taint)
        if Trait.ANNOTATED in traits:
            return Decision(found.policy, Trait.ANNOTATED)
        if found.exempt or not found.policy.ignored:
            return found
        return next((Decision(found.policy, trait) for trait in Trait if trait in found.policy.ignored & traits), found)

    def explain(self, pod: Pod, taint: Taint, traits: Traits = NO_TRAITS) -> list[str]:
        """Tell for each policy, in their order, why it does not decide, up to the one that does."""
        decision = self.decide(pod, taint, traits)
        deciding = self._ordered.index(decision.policy)
        return [*(self._passed_over(policy, pod, taint) for policy in self._ordered[:deciding]), str(decision)]

    def superseded_by(self, policy: Policy) -> list[str]:
        """Return by name the policies that leave this one no pod and no taint to decide about; none if it has any."""
        before = [other for other in self._ordered if other.order < policy.order and other not in DEFAULTS]
        found: set[str] = set()
        for pattern in policy.taints:
            covering = next((each.name for each in before if _supersedes(each, policy, pattern)), None)
            if covering is None:
                return []
            found.add(covering)
        return sorted(found)

    def _changed(self, before: Policy | None, after: Policy | None) -> tuple[TaintPattern, ...]:
        if before == after:
            return ()
        policies = (entry.policy for entry in self._entries.values())
        in_force = sorted((policy for policy in policies if policy is not None), key=lambda policy: policy.order)
        self._ordered = (*in_force, *DEFAULTS)
        self._candidates.clear()
        self._answers.clear()
        return tuple(dict.fromkeys(pattern for each in (before, after) if each is not None for pattern in each.taints))

    def _selects_namespaces(self) -> bool:
        return any(policy.namespaces != EVERYTHING for policy in self._ordered)

    def _for_taint(self, taint: Taint) -> tuple[Policy, ...]:
        key = taint.key, taint.effect, taint.value
        found = self._candidates.get(key)
        if found is None:
            if len(self._candidates) >= MOST_ANSWERS:
                self._candidates.clear()
            found = self._candidates[key] = tuple(policy for policy in self._ordered if policy.covers(taint))
        return found

    def _in_force(self, pod: Pod, taint: Taint) -> Decision:
        namespace = self._namespaces.get(pod.ref.namespace)
        # What is kept holds the labels, or another object might get their identity.
        key = id(namespace), id(pod.labels), taint.key, taint.effect, taint.value
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = self._find(pod.labels, namespace, taint), namespace, pod.labels
        return found[0]

    def _find(self, labels: Labels, namespace: Labels | None, taint: Taint) -> Decision:
        for policy in self._for_taint(taint):
            if not policy.pods.matches(labels):
                continue
            if policy.namespaces != EVERYTHING and namespace is None:
                return Decision(policy, NAMESPACE_UNKNOWN)
            if policy.namespaces == EVERYTHING or policy.namespaces.matches(namespace or {}):
                return Decision(policy, MODE_IGNORE if policy.mode is Mode.IGNORE else "")
        return Decision(DEFAULTS[-1], MODE_IGNORE)

    def _passed_over(self, policy: Policy, pod: Pod, taint: Taint) -> str:
        if not policy.covers(taint):
            return f"policy {policy.name} is not for the taint {taint}"
        if not policy.pods.matches(pod.labels):
            return f"policy {policy.name} selects other pods"
        return f"policy {policy.name} selects other namespaces"


def _supersedes(earlier: Policy, later: Policy, pattern: TaintPattern) -> bool:
    return earlier.leaves_nothing_to(later) and any(each.covers(pattern) for each in earlier.taints)
