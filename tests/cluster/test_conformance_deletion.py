"""The deletion of pods, preconditions and grace periods: the embedded server answers what a real one does."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from testbed.client import Kube
from tests.cluster.conformance import POD, Row, World, check, failure, is_gone, is_untouched, pod, terminating_pod


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    """A namespace and a node in the cluster under test."""
    async with World(kube) as made:
        yield made


deleted = partial(Row, method="DELETE", path=POD, status=200)

DELETIONS = [
    deleted(
        name="a pod on a node starts to leave",
        given=pod(),
        body={"preconditions": {"uid": "$p_uid"}},
        answer={"kind": "Pod", "metadata": {"name": "p", "deletionGracePeriodSeconds": 30, "generation": 2}},
    ),
    deleted(
        name="a dry run leaves the pod as it is",
        given=pod(),
        body={"dryRun": ["All"], "preconditions": {"uid": "$p_uid"}},
        answer={"kind": "Pod", "metadata": {"name": "p"}},
        then=is_untouched,
    ),
    deleted(
        name="a dry run for a pod of another UID is a conflict",
        given=pod(),
        body={"dryRun": ["All"], "preconditions": {"uid": "another"}},
        status=409,
        answer=failure("Conflict"),
        then=is_untouched,
    ),
    deleted(
        name="a pod of another UID is a conflict",
        given=pod(),
        body={"preconditions": {"uid": "another"}},
        status=409,
        answer=failure(
            "Conflict",
            'Operation cannot be fulfilled on Pod "p": the UID in the precondition (another) does not match the UID in '
            "record ($p_uid). The object might have been deleted and then recreated",
            name="p",
            kind="Pod",
        ),
        then=is_untouched,
    ),
    deleted(
        name="a pod that does not exist is not found",
        body={"preconditions": {"uid": "another"}},
        status=404,
        answer=failure("NotFound", 'pods "p" not found', name="p", kind="pods"),
    ),
    deleted(
        name="a grace period of its own is obeyed",
        given=pod(),
        body={"gracePeriodSeconds": 7},
        answer={"kind": "Pod", "metadata": {"deletionGracePeriodSeconds": 7}},
    ),
    deleted(
        name="a negative grace period counts as one second",
        given=pod(),
        body={"gracePeriodSeconds": -5},
        answer={"kind": "Pod", "metadata": {"deletionGracePeriodSeconds": 1}},
    ),
    deleted(
        name="a leaving pod's grace period can be shortened",
        given=terminating_pod,
        body={"gracePeriodSeconds": 5},
        answer={"kind": "Pod", "metadata": {"deletionGracePeriodSeconds": 5, "generation": 2}},
    ),
    deleted(
        name="a leaving pod's grace period cannot be lengthened",
        given=terminating_pod,
        body={"gracePeriodSeconds": 60},
        answer={"kind": "Pod", "metadata": {"deletionGracePeriodSeconds": 30}},
    ),
    deleted(
        name="no grace period means gone at once",
        given=pod(),
        body={"gracePeriodSeconds": 0},
        answer={"kind": "Pod", "metadata": {"name": "p"}},
        then=is_gone,
    ),
    deleted(
        name="a finished pod is gone at once",
        given=pod(phase="Failed", ready=False),
        answer={"kind": "Pod"},
        then=is_gone,
    ),
]


@pytest.mark.parametrize("row", DELETIONS, ids=lambda row: row.name)
async def test_a_deletion_of_a_pod_is_answered_as_the_api_does(world: World, row: Row) -> None:
    await check(world, row)
