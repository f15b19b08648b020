"""SQLite connections, failures and retries, shared by all database files."""
