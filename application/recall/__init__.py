"""Recall: search for messages that the context no longer shows, with their true sources."""
