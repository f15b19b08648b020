"""The text form of a context, for agents that take one string (requirement E4)."""

from collections.abc import Mapping, Sequence
from typing import Any

from refold.application.projections.messages import readable
from refold.domain.messages import Message

SUMMARY = "## PREVIOUS CONTEXT SUMMARY"
RECENT = "## RECENT MESSAGES"


def text_form(messages: Sequence[Mapping[str, Any]], opening: int, memory: Sequence[str]) -> str:
    """``memory`` under a heading of its own, then every message behind the name of its role.

    ``opening``: with how many blocks of ``memory`` the first message opens.
    """
    parts = [SUMMARY, *memory] if memory else []
    parts.append(RECENT)
    for index, message in enumerate(messages):
        content = message["content"]
        if index == 0 and opening:
            content = content[opening:]
        text = readable(_message(message["role"], content))
        if text.strip():
            parts.append(f"{message['role'].capitalize()}: {text}")
    return "\n\n".join(parts)


def _message(role: Any, content: Any) -> Message:
    shown = content if isinstance(content, str) else tuple(content)
    fields = {"role": role, "content": shown, "author": None, "extra": None, "unknown": ()}
    return Message.trusted(fields)
