"""Which claims have their data on a node."""

from taintkeeper.core.local_claims import LocalClaims
from taintkeeper.core.traits import NO_TRAITS, Trait

DATA = ("ns", "data")
MORE = ("ns", "more")


def has_local_storage(claims: LocalClaims, *names: str, namespace: str = "ns") -> bool:
    return Trait.LOCAL_STORAGE in claims.with_local_storage(NO_TRAITS, namespace, names)


def test_a_pod_has_local_storage_when_one_of_its_claims_is_bound_to_a_local_volume() -> None:
    claims = LocalClaims()
    assert claims.put("pv", DATA) == {DATA}
    assert has_local_storage(claims, "other", "data")
    assert not has_local_storage(claims, "other")
    assert not has_local_storage(claims, "data", namespace="another")


def test_other_traits_stay() -> None:
    claims = LocalClaims()
    claims.put("pv", DATA)
    unmanaged = frozenset({Trait.UNMANAGED})
    assert claims.with_local_storage(unmanaged, "ns", ["data"]) == {Trait.UNMANAGED, Trait.LOCAL_STORAGE}
    assert claims.with_local_storage(unmanaged, "ns", []) is unmanaged


def test_only_news_is_told() -> None:
    claims = LocalClaims()
    assert claims.put("pv", None) == set()
    assert claims.put("pv", DATA) == {DATA}
    assert claims.put("pv", DATA) == set()
    assert claims.put("pv", MORE) == {DATA, MORE}
    assert not has_local_storage(claims, "data")
    assert claims.drop("pv") == {MORE}
    assert claims.drop("pv") == set()
    assert not has_local_storage(claims, "more")


def test_a_claim_that_two_volumes_name_is_local_until_both_are_gone() -> None:
    claims = LocalClaims()
    claims.put("a", DATA)
    assert claims.put("b", DATA) == set()
    assert claims.drop("a") == set()
    assert has_local_storage(claims, "data")
    assert claims.drop("b") == {DATA}
