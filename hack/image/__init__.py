"""Proves without a container engine that the Dockerfile's steps lead to an image that works."""
