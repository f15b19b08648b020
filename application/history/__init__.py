"""Explain, compare, fork, export and query a conversation."""
