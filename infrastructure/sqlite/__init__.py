"""What every SQLite file of refold shares: connections, failures, retries."""
