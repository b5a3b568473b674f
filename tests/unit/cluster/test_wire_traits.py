"""What a pod on the wire has about it that may exempt it from eviction."""

from typing import Any

import msgspec
import pytest

from taintkeeper.cluster.wire.traits import OwnerWire, VolumeWire, decode_local_volume, pod_claims, pod_traits
from taintkeeper.core.traits import Trait
from tests.unit.cluster import wires

REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
DAEMON_SET = {**REPLICA_SET, "kind": "DaemonSet"}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}


def volumes(*made: dict[str, Any]) -> list[VolumeWire]:
    return msgspec.convert([{"name": f"v{index}", **each} for index, each in enumerate(made)], list[VolumeWire])


def owners(*made: dict[str, Any]) -> list[OwnerWire]:
    return msgspec.convert(list(made), list[OwnerWire])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (None, {Trait.UNMANAGED}),
        ([], {Trait.UNMANAGED}),
        ([NODE], {Trait.UNMANAGED}),
        ([{**REPLICA_SET, "controller": False}], {Trait.UNMANAGED}),
        ([REPLICA_SET], set()),
        ([NODE, DAEMON_SET], {Trait.DAEMON_SET}),
        ([{**DAEMON_SET, "controller": False}, REPLICA_SET], set()),
    ],
)
def test_a_pod_is_managed_by_its_controller(made: list[dict[str, Any]] | None, expected: set[Trait]) -> None:
    assert pod_traits(None, None if made is None else owners(*made), None) == expected


@pytest.mark.parametrize(
    ("volume", "local"),
    [
        ({"emptyDir": {}}, True),
        ({"emptyDir": {"sizeLimit": "1Gi", "medium": ""}}, True),
        ({"emptyDir": {"medium": "Memory"}}, False),
        ({"hostPath": {"path": "/data", "type": ""}}, True),
        ({"configMap": {"name": "c"}}, False),
        ({"persistentVolumeClaim": {"claimName": "c"}}, False),
    ],
)
def test_data_is_on_the_node_in_what_the_autoscaler_calls_local(volume: dict[str, Any], *, local: bool) -> None:
    found = pod_traits(None, owners(REPLICA_SET), volumes({"secret": {}}, volume))
    assert found == ({Trait.LOCAL_STORAGE} if local else set())


@pytest.mark.parametrize(
    ("annotations", "exempt"),
    [
        ({"taintkeeper.io/evict": "false"}, True),
        ({"taintkeeper.io/evict": "true"}, False),
        ({"taintkeeper.io/evict": ""}, False),
        ({"example.com/evict": "false"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_the_annotation_exempts_a_pod_by_the_word_false(annotations: dict[str, str] | None, *, exempt: bool) -> None:
    found = pod_traits(annotations, owners(REPLICA_SET), None)
    assert found == ({Trait.ANNOTATED} if exempt else set())


def test_pods_with_the_same_traits_share_them() -> None:
    first, second = (pod_traits(None, owners(DAEMON_SET), volumes({"emptyDir": {}})) for _ in range(2))
    assert first is second


def test_the_claims_of_a_pod_are_those_that_it_names_and_those_that_are_made_for_it() -> None:
    made = volumes(
        {"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}, {"ephemeral": {"volumeClaimTemplate": {}}}
    )
    assert pod_claims("p1", made) == ("data", "p1-v2")
    assert pod_claims("p1", None) == ()


@pytest.mark.parametrize(
    ("spec", "claim"),
    [
        ({"claimRef": {"namespace": "ns", "name": "c"}, "local": {"path": "/mnt"}}, ("ns", "c")),
        ({"claimRef": {"namespace": "ns", "name": "c"}, "hostPath": {"path": "/mnt"}}, ("ns", "c")),
        ({"claimRef": {"namespace": "ns", "name": "c"}, "csi": {"driver": "d"}}, None),
        ({"local": {"path": "/mnt"}}, None),
    ],
)
def test_a_volume_has_data_of_the_claim_that_is_bound_to_it_if_it_is_local(spec: Any, claim: Any) -> None:
    body = {"kind": "PersistentVolume", "metadata": wires.metadata("pv"), "spec": spec}
    assert decode_local_volume(msgspec.json.encode(body)) == ("pv", claim)
