"""Data for pictures of a conversation, drawn from read models without rendering a request."""
