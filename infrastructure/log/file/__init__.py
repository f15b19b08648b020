"""The SQLite file: connections, locks, and what can go wrong below."""
