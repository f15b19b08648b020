"""The log of events: envelope, codec, mapper and recorder on the eventsourcing library."""
