"""Parsing, appending, loading and reading messages of a conversation."""
