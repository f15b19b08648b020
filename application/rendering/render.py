"""Render the window of a conversation: pure, and the same bytes for the same log at any time."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from refold.application.conversation.addresses import address_of
from refold.application.projections.entries import Entry
from refold.application.projections.window import Window
from refold.domain.frames import SummaryPlace
from refold.domain.json_data import byte_size
from refold.domain.messages import Block, said

from . import texts
from .context_blocks import ledger_overhead, ledger_text, memories_text, topics_line
from .request_blocks import copied, signed_summary, text_block
from .turn_builder import FRAME_TOKENS, TurnBuilder

_TURN_BYTES = 40
"""Of a turn besides its content: role, names and brackets."""

System = str | Sequence[Block] | None
"""A system prompt as the Messages API takes it."""


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
    bytes: int = 0
    """As ``tokens``, of the body of a request; at most a little too many."""


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
    memory = _memory(window, count, signed=signed)
    own = [*(copied(said(e.message)) for e in preamble), *memory.guidance]
    builder = TurnBuilder(window, lambda position: address_of(thread_id, position), count)
    if place == "user" or memory.signed:
        builder.open(memory.blocks)
    else:
        own.extend(memory.texts)
    if (quoted := window.memories) is not None:
        own.append(memories_text(thread_id, quoted.memories))
    builder.add(entries)
    messages = builder.finished()
    said_here = sum(
        e.tokens - (e.thinking if e.position < window.thinking_from else 0) for e in entries
    )
    tokens = sum(e.tokens for e in preamble) + memory.tokens + said_here
    tokens -= sum(p.tokens_freed for p in window.previews.values())
    tokens += quoted.tokens if quoted is not None else 0
    return Rendered(
        _joined(system, [t for t in own if t.strip()]),
        messages,
        tokens + builder.extra_tokens,
        memory.texts,
        builder.opening,
        _bytes(entries, [*own, *memory.texts]) + builder.extra_bytes,
    )


def _bytes(entries: Sequence[Entry], beside: Sequence[str]) -> int:
    return sum(e.bytes + _TURN_BYTES for e in entries) + sum(map(byte_size, beside))


class _Memory(NamedTuple):
    """What stands for older messages: the summary, then the ledger."""

    texts: tuple[str, ...]
    guidance: tuple[str, ...]
    """What the system text says of them."""
    signed: Block | None
    """The provider's own block, in place of the summary's text."""
    topics: str
    """The line that names them, as it ends the summary's text."""
    tokens: int

    @property
    def blocks(self) -> list[Block]:
        shown = [text_block(text) for text in self.texts]
        if self.signed is None:
            return shown
        return [self.signed, *([text_block(self.topics)] if self.topics else []), *shown[1:]]


def _memory(window: Window, count: Callable[[str], int], *, signed: bool) -> _Memory:
    summary = window.summary
    block = signed_summary(summary.block) if signed and summary else None
    shown: list[str] = []
    guidance: list[str] = []
    topics = ""
    if summary is not None:
        topics = topics_line(summary.topics[: summary.topics_shown], ask=summary.topics_ask)
        topics = copied(topics)
        text = texts.summary_text(copied(summary.text))
        shown.append(f"{text}\n\n{topics}" if topics else text)
        said = texts.SIGNED_GUIDANCE if block else texts.SUMMARY_GUIDANCE
        guidance.append(f"{said} {texts.TOPICS_GUIDANCE}" if topics else said)
    lines = summary.ledger[: summary.ledger_shown] if summary else ()
    tokens = summary.tokens if summary else 0
    if ledger := ledger_text(lines, window.pins):
        shown.append(copied(ledger))
        guidance.append(texts.LEDGER_GUIDANCE)
        tokens += sum(pin.tokens for pin in window.pins) + (0 if lines else ledger_overhead(count))
    return _Memory(tuple(shown), tuple(guidance), block, topics, tokens)


def summary_overhead(count: Callable[[str], int]) -> int:
    """What a summary costs besides its text: its heading, and the guidance in the system text."""
    return count(texts.SUMMARY_HEADING) + count(texts.SUMMARY_GUIDANCE) + 2 * FRAME_TOKENS


def _split_preamble(window: Window) -> tuple[Sequence[Entry], Sequence[Entry]]:
    count = 0
    for entry in window.entries:
        if entry.position != count or entry.message.role != "system":
            break
        count += 1
    return window.entries[:count], window.entries[count:]


def _joined(system: System, own: list[str]) -> str | list[Block]:
    if system is None or isinstance(system, str):
        given = system.strip() if system else ""
        return "\n\n".join([*([copied(system)] if system and given else []), *own])
    kept = [copied(b) for b in system if str(b.get("text", "")).strip()]
    return [*kept, *({"type": "text", "text": text} for text in own)]
