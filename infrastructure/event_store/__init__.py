"""The log on SQLite, built on the recorders of the eventsourcing library."""
