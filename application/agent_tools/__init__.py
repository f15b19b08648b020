"""Tools that models call: recall, read, query and expand."""
