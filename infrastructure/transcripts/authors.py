"""Who wrote a message of the role user, where a recording says so; else nobody knows."""

import re
from typing import Any

from refold.domain.messages import Author

from .chats import Chat
from .parsing import as_object, objects_in

_AUTHORS: tuple[Author, ...] = ("person", "program", "tool")
# What agents without tool calls put before the output of what they ran.
_OUTPUT = re.compile(r"\s*(?:EXECUTION RESULT of \[|API output: |<returncode>-?\d+</returncode>)")
_MINI_SWE = re.compile(r"\s*<returncode>-?\d+</returncode>")


def named_author(item: dict[str, Any]) -> Author | None:
    """The author that refold's own export names."""
    return next((author for author in _AUTHORS if author == item.get("author")), None)


class Authors:
    """Tells the authors of one chat's messages of the role user."""

    def __init__(self, chat: Chat) -> None:
        self._observes = _is_agent_loop(chat)
        roles = [(as_object(item) or {}).get("role") for item in chat.messages]
        self._first_answer = roles.index("assistant") if "assistant" in roles else len(roles)

    def author(self, index: int, item: dict[str, Any]) -> Author | None:
        """Who wrote the message with this index.

        In SWE-agent and mini-swe-agent only the program speaks to the model: the first message may hold a
        person's words, the later ones are observations.
        """
        if item.get("role") != "user":
            return None
        if named := named_author(item):
            return named
        if item.get("is_demo") is True:
            return "program"
        if _OUTPUT.match(_text(item)) or (self._observes and index > self._first_answer):
            return "tool"
        return None


def _is_agent_loop(chat: Chat) -> bool:
    written_by = chat.envelope.get("trajectory_format")
    if isinstance(written_by, str) and written_by.startswith("mini-swe-agent"):
        return True
    items = objects_in(list(chat.messages))
    if any(item.get("role") == "user" and _MINI_SWE.match(_text(item)) for item in items):
        return True
    return all("agent" in item for item in items) and any("action" in item for item in items)


def _text(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return next(
        (part["text"] for part in objects_in(content) if isinstance(part.get("text"), str)), ""
    )
