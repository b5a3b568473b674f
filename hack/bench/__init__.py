"""Measurements against a real control plane. They report figures; they are no tests."""
