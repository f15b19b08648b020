"""Rendering: from the window of a conversation to a request that the provider accepts."""
