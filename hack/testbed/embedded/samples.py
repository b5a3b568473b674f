"""Objects to fill a cluster with: nodes spread over zones, and pods on them."""

from collections.abc import Iterator

from testbed.embedded.admission import with_default_tolerations
from testbed.embedded.resources import Object
from testbed.embedded.timestamps import now
from testbed.real.nodes import fake_node


def sample_nodes(count: int, zones: int = 1, *, prefix: str = "node") -> Iterator[Object]:
    """Yield nodes with a kubelet, ``node-1`` and so on, in turn in zones ``zone-1`` and so on."""
    for index in range(count):
        yield {**fake_node(f"{prefix}-{index + 1}", f"zone-{index % zones + 1}"), "spec": {}, "status": {}}


def sample_pods(count: int, nodes: int, *, namespace: str = "default", prefix: str = "node") -> Iterator[Object]:
    """Yield running pods, ``pod-1`` and so on, bound in turn to the nodes of :func:`sample_nodes`."""
    tolerations = with_default_tolerations([])
    moment = now()
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": moment}
    conditions = [scheduled, {**scheduled, "type": "Ready"}]
    for index in range(count):
        name = f"pod-{index + 1}"
        spec = {
            "nodeName": f"{prefix}-{index % nodes + 1}",
            "containers": [{"name": "main", "image": "example.com/app:1"}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "priority": 0,
            "tolerations": tolerations,
        }
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": "sample"}},
            "spec": spec,
            "status": {"phase": "Running", "startTime": moment, "conditions": conditions},
        }
