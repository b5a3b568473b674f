"""The taint-eviction controller: evicts the pods that do not tolerate the taints of their node."""

from taintkeeper.controllers.taint_eviction.controller import TaintEviction

__all__ = ["TaintEviction"]
