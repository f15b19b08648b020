"""The names of the tools, as models call them and as rendered texts point to them."""

RECALL_MEMORY = "recall_memory"
"""Finds by words or meaning; a rendered summary's list of topics names it."""
QUERY_HISTORY = "query_history"
EXPAND_SUMMARY = "expand_summary"
READ_OFFLOADED = "read_offloaded"
LIST_CONVERSATIONS = "list_conversations"
