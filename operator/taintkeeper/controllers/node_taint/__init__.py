"""The node-taint controller: taints nodes by their conditions, NoExecute at the pace of the zone."""

from taintkeeper.controllers.node_taint.controller import NodeTaint

__all__ = ["NodeTaint"]
