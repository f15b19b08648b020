"""The recall index and the vectors on SQLite: caught up when asked, rebuilt when damaged."""
