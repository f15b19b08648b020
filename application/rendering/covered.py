"""Covered messages as a request of their own: for a provider that summarises a conversation itself."""

from collections.abc import Sequence

from refold.application.ports import SourceMessage
from refold.application.projections.entries import Entry
from refold.application.projections.window import Window
from refold.domain.messages import Block

from . import texts
from .blocks import copied, signed_summary, text_block
from .turns import Turn, TurnBuilder


def render_covered(
    messages: Sequence[SourceMessage], previous: str | None = None, block: Block | None = None
) -> list[Turn]:
    """Legal turns of just these messages, behind the summary before them; none of them is answered.

    ``block``: the provider's own block for ``previous``. Thinking is left out: what it was signed
    behind is not here.
    """
    entries = tuple(Entry(s.position, "", s.message, 0, 0, None) for s in messages)
    behind = messages[-1].position + 1 if messages else 0
    builder = TurnBuilder(Window(entries, thinking_from=behind), _no_address, _no_count)
    if previous:
        said = text_block(texts.summary_text(copied(previous)))
        builder.open([signed_summary(block) or said])
    builder.add(entries)
    return builder.finished(answered=False)


def _no_address(position: int) -> str:
    # Nothing here is shortened: a summary is made of the whole content (requirement D4).
    return f"message {position}"


def _no_count(text: str) -> int:
    del text
    return 0
