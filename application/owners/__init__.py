"""Whose conversations and messages are, and who may see them."""
