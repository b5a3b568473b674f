"""Nodes, zones and control planes that fail, and what the operator makes of it: ``make outage``."""
