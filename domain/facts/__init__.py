"""Facts of messages: what was asked, decided, run and named, read once from each message."""
