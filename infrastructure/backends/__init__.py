"""Search programs of the user's own: each keeps an index of its own, and is asked as a process."""
