"""Render the window of a conversation: pure, and the same bytes for the same log at any time."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from refold.application.addresses import address_of as address_of
from refold.application.projections.window import Window
from refold.domain.messages import Block, said

from . import texts
from .blocks import copied, signed_summary
from .ledger import ledger_overhead, ledger_text
from .turns import FRAME_TOKENS, TurnBuilder

System = str | Sequence[Block] | None
"""A system prompt as the Messages API takes it."""


class Rendered(NamedTuple):
    """A request as it would be sent, and its size."""

    system: str | list[Block]
    """Empty where there is none."""
    messages: list[dict[str, Any]]
    tokens: int
    """Of the messages and of the system text that the memory adds; not of the caller's."""


def render(
    thread_id: str,
    window: Window,
    system: System,
    count: Callable[[str], int],
    *,
    signed: bool = False,
) -> Rendered:
    """Render ``window``; ``count`` measures the texts that rendering adds.

    ``signed``: whether the model takes its provider's own compaction block; else the text of one is
    shown like any summary's.
    """
    preamble, entries = _split_preamble(window)
    own = [copied(said(e.message)) for e in preamble]
    tokens = sum(e.tokens for e in preamble)
    block = signed_summary(window.summary.block) if signed and window.summary else None
    if window.summary is not None:
        own.append(texts.SIGNED_GUIDANCE if block else texts.SUMMARY_GUIDANCE)
    builder = TurnBuilder(window, lambda position: address_of(thread_id, position), count)
    if window.summary is not None:
        builder.summary(copied(window.summary.text), block)
        tokens += window.summary.tokens
    lines = window.summary.ledger[: window.summary.ledger_shown] if window.summary else ()
    if ledger := ledger_text(lines, window.pins):
        own.append(texts.LEDGER_GUIDANCE)
        builder.ledger(copied(ledger))
        tokens += sum(pin.tokens for pin in window.pins)
        builder.extra_tokens += 0 if lines else ledger_overhead(count)
    builder.add(entries)
    messages = builder.finished()
    freed = sum(p.tokens_freed for p in window.previews.values())
    tokens += sum(
        e.tokens - (e.thinking if e.position < window.thinking_from else 0) for e in entries
    )
    return Rendered(
        _joined(system, [t for t in own if t.strip()]),
        messages,
        tokens - freed + builder.extra_tokens,
    )


def summary_overhead(count: Callable[[str], int]) -> int:
    """What a summary costs besides its text: its heading, and the guidance in the system text."""
    return count(texts.SUMMARY_HEADING) + count(texts.SUMMARY_GUIDANCE) + 2 * FRAME_TOKENS


def _split_preamble(window: Window) -> tuple[Sequence[Any], Sequence[Any]]:
    count = 0
    for entry in window.entries:
        if entry.position != count or entry.message.role != "system":
            break
        count += 1
    return window.entries[:count], window.entries[count:]


def _joined(system: System, own: list[str]) -> str | list[Block]:
    if system is None or isinstance(system, str):
        given = system.strip() if system else ""
        return "\n\n".join([*([system] if system and given else []), *own])
    kept = [copied(b) for b in system if str(b.get("text", "")).strip()]
    return [*kept, *({"type": "text", "text": text} for text in own)]
