"""The log on SQLite, by the recorders of the eventsourcing library."""
