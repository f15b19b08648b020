"""Previews of offloaded tool results: head, tail, and the address of the whole."""

from typing import Any

from refold.domain.messages import Block, text_of

from ..projections.window import Preview
from . import texts


def shortened(block: Block, preview: Preview, address: str) -> Block:
    """The block with its text cut to head and tail; blocks that are no text are left out."""
    text = text_of(block)
    shown = preview.head + preview.tail
    if len(text) <= shown:
        content: Any = text or texts.MISPLACED.format(kind="Non-text result; see " + address)
    else:
        tail = text[-preview.tail :] if preview.tail else ""
        content = text[: preview.head] + texts.preview_marker(shown, len(text), address) + tail
    return {**block, "content": content}
