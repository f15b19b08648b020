"""Names of the memory's own tools, and how calls and answers of them are recognised."""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from refold.domain.lazy_pattern import lazy_pattern

RECALL_MEMORY = "recall_memory"
"""Tool that searches by words or meaning; named in the topic list of a rendered summary."""
QUERY_HISTORY = "query_history"
EXPAND_SUMMARY = "expand_summary"
READ_OFFLOADED = "read_offloaded"
LIST_CONVERSATIONS = "list_conversations"
REMEMBER = "remember"
PIN = "pin"
FORGET = "forget"
EDITS = (REMEMBER, PIN, FORGET)
"""Tools that edit the memory. Tools of others have such names too, so their calls and answers are searched."""

_NAME = lazy_pattern(
    rf"(?:^|[^A-Za-z0-9])({RECALL_MEMORY}|{QUERY_HISTORY}|{EXPAND_SUMMARY}|{READ_OFFLOADED}|{LIST_CONVERSATIONS})$"
)
"""Pattern for tool names; MCP clients prefix the server's name with ``__``, ``_``, ``.`` or similar."""
_FIELDS: Mapping[str, frozenset[str]] = {
    QUERY_HISTORY: frozenset(("start", "stop", "text", "ids", "limit", "thread")),
    LIST_CONVERSATIONS: frozenset(("limit",)),
}
"""Fields that identify a call of refold's tools where other tools have the same name."""
_ANSWERS: Mapping[str, re.Pattern[str]] = {
    QUERY_HISTORY: lazy_pattern(
        r"(?:No message|[\d,]+ messages?)(?: of the [\d,]+ in this conversation| of conversation \".*, which has )"
    ),
    LIST_CONVERSATIONS: lazy_pattern(
        r"[\d,]+ conversations?, the latest activity first\.|There are no conversations in this memory yet\."
    ),
}
"""Beginnings of answers that identify results of these tools."""


def asks_memory(tool: str, fields: Collection[str]) -> bool:
    """Return whether a call with these fields is a call of the memory's own tools.

    Such queries and answers are excluded from search: they would be ranked above the messages that they
    quote.
    """
    name = _own_name(tool)
    return name is not None and (name not in _FIELDS or _FIELDS[name].issuperset(fields))


def is_answer_of_memory(tool: str, words: str) -> bool:
    """Return whether the result of a call is an answer of the memory's own tools."""
    name = _own_name(tool)
    return name is not None and (name not in _ANSWERS or _ANSWERS[name].match(words) is not None)


@lru_cache(maxsize=1_000)
def _own_name(tool: str) -> str | None:
    found = _NAME.search(tool)
    return None if found is None else found[1]
