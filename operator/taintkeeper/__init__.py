"""Taints nodes by their conditions and evicts the pods that do not tolerate those taints, budgets first."""

__version__ = "0.1.0"
