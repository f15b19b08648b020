"""Messages in the shape of the Anthropic Messages API, kept exactly as received, and the words in them."""

import json
from collections.abc import Iterator, Mapping, Sequence
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


_DEEP = 6

_READ = (
    "title",
    "url",
    "text",
    "context",
    "source",
    "content",
    "lines",
    "stdout",
    "stderr",
    "error_code",
)
"""Fields with readable words, in reading order. Encoded or encrypted data is in other fields."""


def block_words(block: Mapping[str, Any]) -> str:
    """Return the words of a block, its parts joined with newlines. Empty for a block such as an image."""
    text = block.get("text")
    return text if isinstance(text, str) else "\n".join(part for part in _words_in(block) if part)


def _words_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_list(value):
        for part in value:
            yield from _words_in(part)
    elif is_object(value) and value.get("type") != "image":
        for name in _READ:
            yield from _words_in(value.get(name))
        if value.get("type") == "text":  # The source of a document that is plain text.
            yield from _words_in(value.get("data"))


def strings(message: Message) -> Iterator[str]:
    """Yield all strings in the blocks of a message, including tool inputs and results."""
    return strings_in(message.content, deepest=_DEEP)


def strings_in(value: object, *, deepest: int) -> Iterator[str]:
    """Yield all strings in JSON data, down to ``deepest`` levels below the value."""
    if isinstance(value, str):
        yield value
    elif deepest and is_object(value):
        for inner in value.values():
            yield from strings_in(inner, deepest=deepest - 1)
    elif deepest and is_list(value):
        for inner in value:
            yield from strings_in(inner, deepest=deepest - 1)


CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Types of blocks in which a model calls a tool."""

# Made once, because `json.dumps` with options makes an encoder for every call.
_as_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


def readable(message: Message) -> str:
    """Return a message as readable text.

    Words are given in full, tool calls as ``→ name {input}``, results and documents as text.
    Thinking is left out.
    """
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join([part for _, part in readable_blocks(content)])


def readable_blocks(content: Sequence[Block]) -> list[tuple[Block, str]]:
    """Return the readable blocks of a message, each with its text."""
    parts = [(block, _readable(block)) for block in content if block.get("type") not in THINKING]
    return [part for part in parts if part[1] and not part[1].isspace()]


def _readable(block: Block) -> str:
    kind = block.get("type")
    if kind in CALLS:
        return f"→ {block.get('name')} {_as_json(block.get('input'))}"
    # A blank text block says nothing; a block without text (an image) is at least named.
    return block_words(block) or ("" if kind == "text" else f"[{kind}]")
