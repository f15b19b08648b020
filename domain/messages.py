"""Messages in the shape of the Anthropic Messages API, kept exactly as they came."""

from collections.abc import Mapping
from typing import Any, Literal

from .json_data import is_list, is_object
from .value import Value

Role = Literal["user", "assistant", "system"]

# A content block as it came: plain JSON data. Never changed in place; whoever hands one out copies it.
Block = dict[str, Any]

THINKING = frozenset({"thinking", "redacted_thinking"})


class Message(Value, frozen=True):
    """One message: a role and its content, a string or content blocks.

    Unknown block types and unknown fields of a block are kept as they came.
    """

    role: Role
    content: str | tuple[Block, ...]

    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks; a string is one text block."""
        if isinstance(self.content, str):
            return ({"type": "text", "text": self.content},)
        return self.content


def tool_calls(message: Message) -> tuple[str, ...]:
    """The ids of the tool calls that an assistant message makes, in order."""
    if message.role != "assistant" or isinstance(message.content, str):
        return ()
    return tuple(str(b.get("id")) for b in message.content if b.get("type") == "tool_use")


def tool_results(message: Message) -> tuple[str, ...]:
    """The ids of the calls that a user message answers, in order."""
    if message.role != "user" or isinstance(message.content, str):
        return ()
    return tuple(
        str(b.get("tool_use_id")) for b in message.content if b.get("type") == "tool_result"
    )


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
