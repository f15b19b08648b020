"""Tool content that is shown shorter: previews, results cut to their beginning, and bare markers."""

from collections import Counter
from typing import Any

from refold.application.projections.window import Preview
from refold.domain.json_data import is_list, is_object
from refold.domain.messages import Block, text_of

from . import texts


def shortened(block: Block, preview: Preview, address: str) -> Block:
    """A ``tool_use`` or ``tool_result`` block with its texts cut as ``preview`` says; a text of a user
    cut likewise, and a marker for an image or a document. Of what is left out nothing is in it.
    """
    if preview.method == "left-out":
        return {"type": "text", "text": ""}
    match block.get("type"):
        case "tool_use":
            return {**block, "input": _cut_all(block.get("input"), preview, address)}
        case "text":
            return {**block, "text": _cut_text(str(block.get("text") or ""), preview, address)}
        case "image" | "document" as kind:
            return {"type": "text", "text": texts.shown_marker(kind, address)}
        case _:
            return {**block, "content": _result(block, preview, address)}


def _result(block: Block, preview: Preview, address: str) -> str:
    text, beside = text_of(block), _no_text(block)
    if preview.method == "hard-clear":
        characters = f"{len(text):,} characters" if text else ""
        return texts.cleared_marker(", ".join(filter(None, (characters, beside))), address)
    if preview.method == "soft-trim":
        parts = (_trimmed(text, preview.head, address), texts.cleared_marker(beside, address))
        return "\n".join(part for part, had in zip(parts, (text, beside), strict=True) if had)
    if not text:
        return texts.NOT_TEXT.format(address=address)
    cut = _cut(text, preview, address)
    return cut + texts.BESIDE_TEXT.format(what=beside, address=address) if beside else cut


def _no_text(block: Block) -> str:
    """How much of a result is no text: ``2 images``; empty where all of it is text."""
    content = block.get("content")
    parts = content if is_list(content) else []
    kinds = Counter(
        kind if (kind := part.get("type")) in ("image", "document") else "part"
        for part in parts
        if is_object(part) and part.get("type") != "text" and not text_of(part)
    )
    return ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in kinds.items())


def _trimmed(text: str, characters: int, address: str) -> str:
    marker = texts.trimmed_marker(characters, len(text), address)
    return text if len(text) <= characters + len(marker) else text[:characters] + marker


def _cut_all(value: Any, preview: Preview, address: str) -> Any:
    if isinstance(value, str):
        return _cut(value, preview, address)
    if is_object(value):
        return {k: _cut_all(v, preview, address) for k, v in value.items()}
    if is_list(value):
        return [_cut_all(v, preview, address) for v in value]
    return value


def _cut_text(text: str, preview: Preview, address: str) -> str:
    shown = preview.head + preview.tail
    marker = texts.text_marker(shown, len(text), address)
    if len(text) <= shown + len(marker):
        return text
    return text[: preview.head] + marker + (text[-preview.tail :] if preview.tail else "")


def _cut(text: str, preview: Preview, address: str) -> str:
    shown = preview.head + preview.tail
    marker = texts.preview_marker(shown, len(text), address)
    if len(text) <= shown + len(marker):
        return text
    tail = text[-preview.tail :] if preview.tail else ""
    return text[: preview.head] + marker + tail
