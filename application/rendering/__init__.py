"""Render the window of a conversation as a request that the provider accepts."""
