"""Shared parts of all use cases: the core, observers, and calls of user code."""
