"""Recall: finding what a conversation no longer shows, and telling the truth about where it comes from."""
