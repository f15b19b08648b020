"""The ledger: lines that code copies word for word from messages, rendered with the summary."""
