"""Kubernetes' own end-to-end tests of taint based eviction, with Taintkeeper in the place of its controllers."""
