"""Pieces that every format needs: content in Anthropic shape, and what a reader hands back."""

import json
from collections.abc import Collection, Iterable
from typing import Any

from refold.application.recordings.transcripts import RecordedConversation, Skipped
from refold.domain.messages import Block
from refold.domain.value import Value

from .parsing import BrokenJsonError, as_list, as_object, parse_json

Content = str | tuple[Block, ...]


class Reading(Value, frozen=True):
    """What a format made of a source."""

    conversations: tuple[RecordedConversation, ...]
    skipped: tuple[Skipped, ...]


def as_content(value: Any) -> Content | None:
    """Content as it came: a string, or blocks (a bare string among them is a text block).

    None where it is neither.
    """
    if isinstance(value, str):
        return value
    items = as_list(value)
    if items is None:
        return None
    blocks = tuple(block for item in items if (block := _as_block(item)) is not None)
    return blocks if len(blocks) == len(items) else None


def as_blocks(content: Content) -> list[Block]:
    """Content as blocks; an empty string is none."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return list(content)


def text_block(text: str) -> Block:
    """A text block."""
    return {"type": "text", "text": text}


def image_block(media_type: Any, data: Any) -> Block:
    """An image block with base64 data."""
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": str(media_type), "data": str(data)},
    }


def tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def arguments_of(raw: Any) -> dict[str, Any]:
    """The arguments of a call as an object; what is none is kept as ``{"_arguments": text}``."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}  # how a call without arguments is often streamed
    parsed = raw
    if isinstance(raw, str):
        try:
            parsed = parse_json(raw)
        except BrokenJsonError:
            return {"_arguments": raw}
    found = as_object(parsed)
    if found is not None:
        return found
    return {"_arguments": raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)}


def text_or_none(value: Any) -> str | None:
    """A string that says something, or None."""
    return value if isinstance(value, str) and value.strip() else None


def why_no_role(item: dict[str, Any], known: Iterable[str]) -> str:
    """What is wrong with the role of a message."""
    if "role" not in item:
        return "no role"
    return f"role {ascii(item['role'])[:40]}, which is none of {', '.join(sorted(known))}"


def extra_of(item: dict[str, Any], taken: Collection[str]) -> dict[str, Any] | None:
    """What a message says besides the fields that are ``taken``; what an export kept so is among it."""
    kept = as_object(item.get("extra")) or {}
    others = {k: v for k, v in item.items() if k not in taken and v is not None}
    if kept:
        others.pop("extra", None)
    return {**kept, **others} or None


def not_a_message(line: int | None, problem: str) -> Skipped:
    """A message that is too broken to keep: the only kind of skipping that loses content."""
    return Skipped(line=line, reason="message that cannot be read", detail=problem, damage=True)


def _as_block(item: Any) -> Block | None:
    return text_block(item) if isinstance(item, str) else as_object(item)
