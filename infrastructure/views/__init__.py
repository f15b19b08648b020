"""The read models on SQLite: tables that are caught up when read, and rebuilt when damaged."""
