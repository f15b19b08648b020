"""The names of the tools, as models call them and as rendered texts point to them."""

RECALL_MEMORY = "recall_memory"
"""Finds by words or meaning; a rendered summary's list of topics names it."""
QUERY_HISTORY = "query_history"
EXPAND_SUMMARY = "expand_summary"
READ_OFFLOADED = "read_offloaded"
LIST_CONVERSATIONS = "list_conversations"
_ALL = frozenset({RECALL_MEMORY, QUERY_HISTORY, EXPAND_SUMMARY, READ_OFFLOADED, LIST_CONVERSATIONS})


def asks_memory(tool: str) -> bool:
    """Whether a tool is one of these; clients of MCP put their server's name and ``__`` before it.

    What it was asked and what it answered is no new matter: found again, it would stand before the
    messages that it quotes.
    """
    return tool.rpartition("__")[2] in _ALL
