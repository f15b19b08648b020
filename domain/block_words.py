"""Everything that a block of a message says to a reader, documents and results of server tools as well."""

from collections.abc import Iterator, Mapping
from typing import Any

from .json_data import is_list, is_object
from .messages import Message

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
"""Fields with words, in the order in which they are read; what is encoded or encrypted is in others."""


def block_words(block: Mapping[str, Any]) -> str:
    """The words of a block, its parts joined with new lines; empty where it has none, as an image."""
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
    """Return every string in a message's blocks, also inside inputs and results."""
    return strings_in(message.content, deepest=_DEEP)


def strings_in(value: object, *, deepest: int) -> Iterator[str]:
    """Yield every string in JSON data, down to so many levels below the value."""
    if isinstance(value, str):
        yield value
    elif deepest and is_object(value):
        for inner in value.values():
            yield from strings_in(inner, deepest=deepest - 1)
    elif deepest and is_list(value):
        for inner in value:
            yield from strings_in(inner, deepest=deepest - 1)
