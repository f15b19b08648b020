"""Looking back: explain, compare, fork, export and query a conversation."""
