"""Messages in the shape of the Anthropic Messages API, kept exactly as they were received."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .value import Value, is_list, is_object

Role = Literal["user", "assistant", "system"]
Author = Literal["person", "program", "tool"]
"""Writer of a message with the role ``user``.

A person, the program around the agent (a loaded skill, a reminder, a summary), or a tool.
"""

# A content block as received: plain JSON data. Never changed in place; code that hands one out
# copies it.
Block = dict[str, Any]

THINKING = frozenset({"thinking", "redacted_thinking"})
SHOWN = frozenset({"image", "document"})
"""Types of blocks that a user shows instead of writing text."""


class Message(Value, frozen=True):
    """A message: a role and its content, which is a string or content blocks.

    Unknown block types and unknown fields are kept as they were received.
    """

    role: Role
    content: str | tuple[Block, ...]
    author: Author | None = None
    """Writer of the message, or None if unknown. Not sent to providers."""
    extra: Block | None = None
    """Other fields that the message had (a name, metadata, usage), as JSON data. Not sent to providers."""
    unknown: tuple[str, ...] = ()
    """Types of blocks that the provider did not accept when the message was appended; they are shown as text.
    """

    def blocks(self) -> tuple[Block, ...]:
        """Return the content as blocks; a string becomes one text block."""
        if isinstance(self.content, str):
            return ({"type": "text", "text": self.content},)
        return self.content


def has_thinking(message: Message) -> bool:
    """Return whether a message contains thinking, readable or redacted."""
    blocks = () if isinstance(message.content, str) else message.content
    return any(block.get("type") in THINKING for block in blocks)


class Gist(NamedTuple):
    """Tool calls, tool results and speech of a message, without its texts."""

    calls: tuple[str, ...]
    """Ids of the tool calls in the message."""
    results: tuple[str, ...]
    """Ids of the tool calls that the message answers."""
    speaks: bool
    """Whether the message contains words, or an image or document shown by a user."""


def gist(message: Message) -> Gist:
    """Return the tool calls, tool results and speech of a message.

    Makes one pass over the blocks, because it runs for every message of every load.
    """
    content = message.content
    if isinstance(content, str):
        return Gist((), (), bool(content) and not content.isspace())
    calls: list[str] = []
    results: list[str] = []
    speaks = False
    for block in content:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            speaks = speaks or (isinstance(text, str) and bool(text) and not text.isspace())
        elif kind in SHOWN and message.role == "user":
            speaks = True
        elif kind == "tool_use" and message.role == "assistant":
            calls.append(str(block.get("id")))
        elif kind == "tool_result" and message.role == "user":
            results.append(str(block.get("tool_use_id")))
    return Gist(tuple(calls), tuple(results), speaks)


def text_of(block: Mapping[str, Any]) -> str:
    """Return the plain text of a block: its own text, or the texts inside a tool result."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    content = block.get("content")
    if isinstance(content, str):
        return content
    if is_list(content):
        parts = [text_of(b) for b in content if is_object(b)]
        return "\n".join(p for p in parts if p)
    return ""


def said(message: Message) -> str:
    """Return the words of a message: its text blocks, without tool traffic and thinking."""
    if isinstance(message.content, str):
        return message.content
    texts = [str(b.get("text", "")) for b in message.content if b.get("type") == "text"]
    return "\n".join(t for t in texts if t.strip())
