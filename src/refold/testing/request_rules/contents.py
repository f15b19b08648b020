"""Rules about the content of messages and the system prompt."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from refold.testing.request_rules.request import (
    Json,
    all_blocks,
    message_blocks,
    messages_of,
    role_of,
)


def shapes(request: Json) -> Iterator[str]:
    """Report values that are not messages or blocks."""
    messages: object = request.get("messages")
    if not isinstance(messages, list | tuple):
        yield "shape: messages: not a list"
        return
    for m, message in enumerate(cast("Sequence[object]", messages)):
        if not isinstance(message, Mapping):
            yield f"shape: messages[{m}]: not an object"
            continue
        content: object = cast(Json, message).get("content")
        if not isinstance(content, str | list | tuple):
            yield f"shape: messages[{m}].content: neither text nor blocks"
        elif not isinstance(content, str):
            yield from _block_shapes(f"messages[{m}].content", cast("Sequence[object]", content))


def _block_shapes(where: str, blocks: Sequence[object]) -> Iterator[str]:
    for b, block in enumerate(blocks):
        if not isinstance(block, Mapping) or not isinstance(cast(Json, block).get("type"), str):
            yield f"shape: {where}[{b}]: not a block with a type"


def blank_texts(request: Json) -> Iterator[str]:
    """Report empty or blank text blocks in messages, results or the system prompt.

    An empty message text is left to ``empty_contents``, so that one error is reported once.
    """
    optional = _empty_strings(request)
    for placed in all_blocks(request):
        if placed.block.get("type") != "text" or placed.where in optional:
            continue
        text: object = placed.block.get("text")
        if not isinstance(text, str) or not text.strip():
            yield f"blank-text: {placed.where}: a text must not be blank"


def _empty_strings(request: Json) -> set[str]:
    contents = [message.get("content") for message in messages_of(request)]
    return {f"messages[{m}].content[0]" for m, content in enumerate(contents) if content == ""}


def errors_without_content(request: Json) -> Iterator[str]:
    """Report error results without content."""
    for placed in message_blocks(request):
        block = placed.block
        if (
            block.get("type") == "tool_result"
            and block.get("is_error")
            and not block.get("content")
        ):
            yield f"error-without-content: {placed.where}: an error must say what went wrong"


def empty_contents(request: Json) -> Iterator[str]:
    """Report messages without content. Only a final assistant message may be empty."""
    messages = messages_of(request)
    for m, message in enumerate(messages):
        final = m == len(messages) - 1 and role_of(message) == "assistant"
        if not message.get("content") and not final:
            yield f"empty-content: messages[{m}]: a message must have content"


def no_messages(request: Json) -> Iterator[str]:
    """Report a request without messages."""
    if not messages_of(request):
        yield "no-messages: messages: at least one message is required"


def empty_system(request: Json) -> Iterator[str]:
    """Report a system prompt that is an empty list."""
    system: object = request.get("system")
    if isinstance(system, list | tuple) and not system:
        yield "empty-system: system: leave it out instead of sending an empty list"
