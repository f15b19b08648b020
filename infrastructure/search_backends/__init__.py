"""Search programs of the user, asked in place of the built-in index."""
