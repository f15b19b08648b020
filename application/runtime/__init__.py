"""What all use cases share while they run: the core, observers, and code of the user."""
