"""The recall index and the vectors on SQLite. They catch up on queries and are rebuilt when damaged."""
