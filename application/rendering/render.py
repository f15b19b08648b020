"""Render the window of a conversation: pure, and the same bytes for the same log at any time."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from refold.application.addresses import address_of
from refold.application.projections.window import Window
from refold.domain.messages import Block, said

from . import texts
from .blocks import copied, signed_summary, text_block
from .ledger import ledger_overhead, ledger_text
from .turns import FRAME_TOKENS, TurnBuilder

System = str | Sequence[Block] | None
"""A system prompt as the Messages API takes it."""
SummaryPlace = Literal["user", "system"]
"""Where summary and ledger stand: open the first user turn, or close the system text (requirement A7)."""


class Rendered(NamedTuple):
    """A request as it would be sent, and its size."""

    system: str | list[Block]
    """Empty where there is none."""
    messages: list[dict[str, Any]]
    tokens: int
    """Of the messages and of the system text that the memory adds; not of the caller's."""
    memory: tuple[str, ...] = ()
    """Summary and ledger as texts, wherever they stand."""
    opening: int = 0
    """With how many blocks of the memory the first turn opens."""


def render(
    thread_id: str,
    window: Window,
    system: System,
    count: Callable[[str], int],
    *,
    signed: bool = False,
    place: SummaryPlace = "user",
) -> Rendered:
    """Render ``window``; ``count`` measures the texts that rendering adds.

    ``signed``: whether the model takes its provider's own compaction block; else the text of one is
    shown like any summary's, at its ``place``.
    """
    preamble, entries = _split_preamble(window)
    own = [copied(said(e.message)) for e in preamble]
    tokens = sum(e.tokens for e in preamble)
    block = signed_summary(window.summary.block) if signed and window.summary else None
    if window.summary is not None:
        own.append(texts.SIGNED_GUIDANCE if block else texts.SUMMARY_GUIDANCE)
    builder = TurnBuilder(window, lambda position: address_of(thread_id, position), count)
    memory: list[str] = []
    if window.summary is not None:
        memory.append(texts.summary_text(copied(window.summary.text)))
        tokens += window.summary.tokens
    lines = window.summary.ledger[: window.summary.ledger_shown] if window.summary else ()
    if ledger := ledger_text(lines, window.pins):
        own.append(texts.LEDGER_GUIDANCE)
        memory.append(copied(ledger))
        tokens += sum(pin.tokens for pin in window.pins)
        builder.extra_tokens += 0 if lines else ledger_overhead(count)
    if place == "user" or block:
        builder.open(
            [block or text_block(memory[0]), *map(text_block, memory[1:])] if memory else []
        )
    else:
        own.extend(memory)
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
        tuple(memory),
        builder.opening,
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
