"""How often requests that follow each other do not begin with the same messages."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import refold

CHANGES = {
    "compaction_performed",
    "compaction_reverted",
    "messages_condensed",
    "tool_content_offloaded",
    "user_content_shortened",
}
"""Stored decisions that change what was sent before."""


def prefix_breaks(bodies: Sequence[dict[str, Any]], field: str = "messages") -> int:
    """Return how many requests do not begin with all messages of the request before."""
    lists = [body[field] for body in bodies]
    return sum(later[: len(before)] != before for before, later in pairwise(lists))


def recorded_changes(conversation: refold.ConversationMemory) -> int:
    """Return how many stored decisions change what was sent before."""
    return sum(event["name"] in CHANGES for event in conversation.export("events"))
