"""Messages in the shape of the Anthropic Messages API, kept exactly as they came."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .value import Value, is_list, is_object

Role = Literal["user", "assistant", "system"]
Author = Literal["person", "program", "tool"]
"""Who wrote a message of the role user: a person; the program around the agent (a loaded skill, a
reminder, a summary); a tool."""

# A content block as it came: plain JSON data. Never changed in place; whoever hands one out copies it.
Block = dict[str, Any]

THINKING = frozenset({"thinking", "redacted_thinking"})
SHOWN = frozenset({"image", "document"})
"""What a user shows instead of saying it."""


class Message(Value, frozen=True):
    """One message: a role and its content, a string or content blocks.

    Unknown block types, unknown fields of a block and of the message are kept as they came.
    """

    role: Role
    content: str | tuple[Block, ...]
    author: Author | None = None
    """Who wrote it, where that was said when it was appended. No provider is sent this."""
    extra: Block | None = None
    """What else the message came with (a name, metadata, the usage of a reply), as JSON data. No
    provider is sent this."""
    unknown: tuple[str, ...] = ()
    """The types of its blocks that the provider does not take there, as far as was known when it was
    appended: these blocks are shown as text."""

    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks; a string is one text block."""
        if isinstance(self.content, str):
            return ({"type": "text", "text": self.content},)
        return self.content


def thinks(message: Message) -> bool:
    """Whether it has thinking, readable or not."""
    blocks = () if isinstance(message.content, str) else message.content
    return any(block.get("type") in THINKING for block in blocks)


class Gist(NamedTuple):
    """What a message does, without its texts."""

    calls: tuple[str, ...]
    """The ids of the tool calls that it makes."""
    results: tuple[str, ...]
    """The ids of the tool calls that it answers."""
    speaks: bool
    """Whether it says something in words; of a user, also whether something is shown."""


def gist(message: Message) -> Gist:
    """What a message does, found in one pass: this runs for every message of every load."""
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
    """The plain text that a block carries: its text, or the texts inside a tool result."""
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
    """What the speaker said in words: the text blocks only, no tool traffic, no thinking."""
    if isinstance(message.content, str):
        return message.content
    texts = [str(b.get("text", "")) for b in message.content if b.get("type") == "text"]
    return "\n".join(t for t in texts if t.strip())
