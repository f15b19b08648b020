"""Read a damaged write-ahead log without SQLite."""
