"""The node-health controller: declares silent nodes Unknown, and takes the pods of failed nodes out of service."""

from taintkeeper.controllers.node_health.controller import NodeHealth

__all__ = ["NodeHealth"]
