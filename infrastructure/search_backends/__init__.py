"""The user's search programs, used instead of the built-in index."""
