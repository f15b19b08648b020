"""Blocks with their texts shortened, as a preview says."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from refold.application.conversation.entries import Preview
from refold.domain.messages import Block, text_of
from refold.domain.text_cuts import ends
from refold.domain.value import is_list, is_object

from . import request_blocks as texts


def shorten_block(block: Block, preview: Preview, address: str) -> Block:
    """Return a block with its texts shortened as ``preview`` says.

    An image or a document becomes a marker; content that was left out becomes an empty text.
    """
    if preview.method == "left-out":
        return {"type": "text", "text": ""}
    match block.get("type"):
        case "tool_use":
            return {**block, "input": _preview_value(block.get("input"), preview, address)}
        case "text":
            return {
                **block,
                "text": _ends(
                    str(block.get("text") or ""),
                    (preview.head, preview.tail),
                    address,
                    texts.text_marker,
                ),
            }
        case "image" | "document" as kind:
            return {"type": "text", "text": texts.shown_marker(kind, address)}
        case _:
            return {**block, "content": _result(block, preview, address)}


def _result(block: Block, preview: Preview, address: str) -> str:
    text, others = text_of(block), _other_parts(block)
    if preview.method == "hard-clear":
        characters = f"{len(text):,} characters" if text else ""
        return texts.cleared_marker(", ".join(filter(None, (characters, others))), address)
    if preview.method == "soft-trim":
        parts = (
            _ends(
                text,
                (preview.head, preview.tail),
                address,
                lambda _, total, at: texts.trimmed_marker(preview.head, preview.tail, total, at),
            ),
            texts.cleared_marker(others, address),
        )
        return "\n".join(part for part, had in zip(parts, (text, others), strict=True) if had)
    if not text:
        return texts.NOT_TEXT.format(address=address)
    cut = _ends(text, (preview.head, preview.tail), address, texts.preview_marker)
    return cut + texts.OTHER_PARTS.format(what=others, address=address) if others else cut


def _other_parts(block: Block) -> str:
    """Return the parts of a result that are not text, such as ``2 images``, or an empty string."""
    content = block.get("content")
    parts = content if is_list(content) else []
    kinds = Counter(
        kind if (kind := part.get("type")) in ("image", "document") else "part"
        for part in parts
        if is_object(part) and part.get("type") != "text" and not text_of(part)
    )
    return ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in kinds.items())


def _preview_value(value: Any, preview: Preview, address: str) -> Any:
    if isinstance(value, str):
        return _ends(value, (preview.head, preview.tail), address, texts.preview_marker)
    if is_object(value):
        return {k: _preview_value(v, preview, address) for k, v in value.items()}
    if is_list(value):
        return [_preview_value(v, preview, address) for v in value]
    return value


def _ends(
    text: str, lengths: tuple[int, int], address: str, marker_of: Callable[[int, int, str], str]
) -> str:
    """Return both ends of a text around a marker, or all of it if that is not longer."""
    shown = sum(lengths)
    marker = marker_of(shown, len(text), address)
    return text if len(text) <= shown + len(marker) else ends(text, *lengths, marker)
