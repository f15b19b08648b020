"""Making a request fit: compaction attempts, the ladder of smaller steps, pins."""
