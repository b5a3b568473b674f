"""Which pods have their data on a node by a claim."""

from typing import Any

from taintkeeper.core.local_claims import LocalClaims
from taintkeeper.core.objects import Pod
from taintkeeper.core.traits import Trait
from tests.unit.core.builders import pod

DATA = ("default", "data")
MORE = ("default", "more")


def user(name: str, *claims: str, **facts: Any) -> Pod:
    return pod(name, uid=name, claims=claims, **facts)


def has_local_storage(claims: LocalClaims, found: Pod) -> bool:
    return Trait.LOCAL_STORAGE in claims.complete(found).traits


def test_a_pod_has_local_storage_when_one_of_its_claims_is_bound_to_a_local_volume() -> None:
    claims = LocalClaims()
    claims.put("pv", DATA)
    assert has_local_storage(claims, user("p1", "other", "data"))
    assert not has_local_storage(claims, user("p1", "other"))
    assert not has_local_storage(claims, user("p1"))
    claims.put("pv", ("elsewhere", "data"))
    assert not has_local_storage(claims, user("p1", "data"))


def test_other_traits_stay() -> None:
    claims = LocalClaims()
    claims.put("pv", DATA)
    unmanaged = frozenset({Trait.UNMANAGED})
    assert claims.complete(user("p1", "data", traits=unmanaged)).traits == {Trait.UNMANAGED, Trait.LOCAL_STORAGE}
    assert claims.complete(user("p1", traits=unmanaged)).traits == unmanaged


def test_only_pods_that_this_is_news_for_are_told_of() -> None:
    claims = LocalClaims()
    for each in (user("p1", "data"), user("p2", "data", "more"), user("p3", "more"), user("p4", "other")):
        claims.use(each)
    assert claims.put("pv", None) == []
    assert claims.put("pv", DATA) == ["p1", "p2"]
    assert claims.put("pv", DATA) == []
    assert claims.put("pv", MORE) == ["p1", "p2", "p3"]
    assert not has_local_storage(claims, user("p1", "data"))
    assert claims.drop("pv") == ["p2", "p3"]
    assert claims.drop("pv") == []
    assert not has_local_storage(claims, user("p3", "more"))


def test_a_pod_that_is_gone_is_told_of_no_more() -> None:
    claims = LocalClaims()
    claims.use(user("p1", "data"))
    claims.use(user("p2", "data"))
    claims.forget(user("p1", "data"))
    assert claims.put("pv", DATA) == ["p2"]
    claims.forget(user("p2", "data"))
    claims.forget(user("p2", "data"))
    assert claims.drop("pv") == []


def test_a_claim_that_two_volumes_name_is_local_until_both_are_gone() -> None:
    claims = LocalClaims()
    claims.use(user("p1", "data"))
    claims.put("a", DATA)
    assert claims.put("b", DATA) == []
    assert claims.drop("a") == []
    assert has_local_storage(claims, user("p1", "data"))
    assert claims.drop("b") == ["p1"]
