"""Previews of offloaded tool content: head, tail, and the address of the whole."""

from typing import Any

from refold.application.projections.window import Preview
from refold.domain.json_data import is_list, is_object
from refold.domain.messages import Block, text_of

from . import texts


def shortened(block: Block, preview: Preview, address: str) -> Block:
    """A ``tool_use`` or ``tool_result`` block with its texts cut to head and tail."""
    if block.get("type") == "tool_use":
        return {**block, "input": _cut_all(block.get("input"), preview, address)}
    text = text_of(block)
    if not text:
        return {**block, "content": texts.NOT_TEXT.format(address=address)}
    return {**block, "content": _cut(text, preview, address)}


def _cut_all(value: Any, preview: Preview, address: str) -> Any:
    if isinstance(value, str):
        return _cut(value, preview, address)
    if is_object(value):
        return {k: _cut_all(v, preview, address) for k, v in value.items()}
    if is_list(value):
        return [_cut_all(v, preview, address) for v in value]
    return value


def _cut(text: str, preview: Preview, address: str) -> str:
    shown = preview.head + preview.tail
    marker = texts.preview_marker(shown, len(text), address)
    if len(text) <= shown + len(marker):
        return text
    tail = text[-preview.tail :] if preview.tail else ""
    return text[: preview.head] + marker + tail
