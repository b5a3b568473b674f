"""What objects look like on the wire, reduced to the fields that decisions need.

A pod has 4 KB and more on the wire; what is decoded here is some dozen fields, and what most pods share (tolerations,
labels) is kept once.
"""

from taintkeeper.cluster.wire.budgets import decode_budget
from taintkeeper.cluster.wire.common import Shared
from taintkeeper.cluster.wire.memory import FIRST_SEEN_ANNOTATION, decode_first_seen, encode_first_seen
from taintkeeper.cluster.wire.nodes import decode_node, encode_taint
from taintkeeper.cluster.wire.pods import decode_pod
from taintkeeper.cluster.wire.rule_taints import RULE_TAINTS_ANNOTATION, encode_rule_taints
from taintkeeper.cluster.wire.times import moment, timestamp
from taintkeeper.cluster.wire.traits import decode_local_volume

__all__ = [
    "FIRST_SEEN_ANNOTATION",
    "RULE_TAINTS_ANNOTATION",
    "Shared",
    "decode_budget",
    "decode_first_seen",
    "decode_local_volume",
    "decode_node",
    "decode_pod",
    "encode_first_seen",
    "encode_rule_taints",
    "encode_taint",
    "moment",
    "timestamp",
]
