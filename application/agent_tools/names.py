"""The names of the tools, as models call them and as rendered texts point to them."""

import re
from collections.abc import Collection, Mapping

RECALL_MEMORY = "recall_memory"
"""Finds by words or meaning; a rendered summary's list of topics names it."""
QUERY_HISTORY = "query_history"
EXPAND_SUMMARY = "expand_summary"
READ_OFFLOADED = "read_offloaded"
LIST_CONVERSATIONS = "list_conversations"

_NAME = re.compile(
    rf"(?:^|[^A-Za-z0-9])({RECALL_MEMORY}|{QUERY_HISTORY}|{EXPAND_SUMMARY}|{READ_OFFLOADED}|{LIST_CONVERSATIONS})$"
)
"""Clients of MCP put the server's name before it, with ``__``, ``_``, ``.`` or the like between."""
_FIELDS: Mapping[str, frozenset[str]] = {
    QUERY_HISTORY: frozenset(("start", "stop", "text", "ids", "limit", "thread")),
    LIST_CONVERSATIONS: frozenset(("limit",)),
}
"""Names that others have as well: with these fields it is ours."""
_ANSWERS: Mapping[str, re.Pattern[str]] = {
    QUERY_HISTORY: re.compile(
        r"(?:No message|[\d,]+ messages?)(?: of the [\d,]+ in this conversation| of conversation \".*, which has )"
    ),
    LIST_CONVERSATIONS: re.compile(
        r"[\d,]+ conversations?, the latest activity first\.|There are no conversations in this memory yet\."
    ),
}
"""And with an answer that begins so."""


def asks_memory(tool: str, fields: Collection[str]) -> bool:
    """Whether a call with these fields asks the memory itself.

    What it was asked and what it answered is no new matter: found again, it would stand before the
    messages that it quotes.
    """
    name = _own_name(tool)
    return name is not None and (name not in _FIELDS or _FIELDS[name].issuperset(fields))


def is_answer_of_memory(tool: str, words: str) -> bool:
    """Whether the result of a call is an answer of the memory itself."""
    name = _own_name(tool)
    return name is not None and (name not in _ANSWERS or _ANSWERS[name].match(words) is not None)


def _own_name(tool: str) -> str | None:
    found = _NAME.search(tool)
    return None if found is None else found[1]
