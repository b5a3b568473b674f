"""The controllers: each joins an engine of the core with the cluster, and tells of it in events and metrics."""
