"""Render a request: the summary and quoted memories first, then the turns."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from refold.application.agent_tools.tool_names import RECALL_MEMORY
from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import Entry, PinnedText
from refold.application.conversation.loaded import Window
from refold.application.conversation.recalled_texts import RecalledText
from refold.domain.conversation import Topic
from refold.domain.frames import SummaryPlace
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.ledger import IndexEntry, LedgerLine, LineKind, Writer
from refold.domain.messages import Block, said
from refold.domain.notes import ChosenMemory
from refold.domain.originals import Original
from refold.domain.value import byte_size

from . import request_blocks as texts
from .index_text import index_text
from .kept_turns import KeptTurns, Shown
from .request_blocks import (
    LEDGER_GUIDANCE,
    LEDGER_HEADING,
    MEMORIES_GUIDANCE,
    MEMORIES_HEADING,
    OWNER_MEMORIES_GUIDANCE,
    TOPICS_GUIDANCE,
    TOPICS_HEADING,
    copied,
    separate,
    signed_summary,
    text_block,
)
from .turn_builder import FRAME_TOKENS

# Every character that may end a line; after one, a text could imitate our headings.
LINE_BREAK = lazy_pattern(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_TICKS = lazy_pattern("`+")


def fence(text: str) -> str:
    """Return the text between two lines of backticks, longer than any run of them in the text."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


class Heading(NamedTuple):
    """The line before a group of ledger lines, and the closing line, if any."""

    opening: str
    closing: tuple[str, ...] = ()


_TITLES: dict[LineKind, str] = {
    "request": "Requests",
    "prohibition": "Prohibitions",
    "rule": "Rules and preferences",
    "decision": "Decisions",
    "command": "Commands",
    "failure": "Failures of tools",
    "value": "Exact values",
}
_OF_THE_USER: frozenset[LineKind] = frozenset({"request", "prohibition", "rule"})
_OF_WRITERS: dict[Writer | None, str] = {
    None: " of the user",
    "person": " of the user",
    "unknown": " in messages whose author is not recorded",
    "quoted": " in texts that were quoted",
}
_TAGS: dict[LineKind, str] = {"read": "read-files", "modified": "modified-files"}
_PINNED = "Pinned"


def ledger_text(
    lines: Sequence[LedgerLine], pins: Sequence[PinnedText], index: Sequence[IndexEntry] = ()
) -> str:
    """Return the ledger and the index as text, or an empty string if there is nothing to keep.

    Quoted text always follows the bracketed position of its source on the same line, and headings
    never do, so no text can imitate a heading. A pinned text of several lines is between fences
    that are longer than any fence in it.
    """
    parts = [f"## {_PINNED}\n" + "\n".join(map(pin_line, pins))] if pins else []
    groups: dict[Heading, list[LedgerLine]] = {heading: [] for heading in HEADINGS}
    for line in sorted(lines, key=attrgetter("position")):
        groups[heading_of(line)].append(line)
    for heading, own in groups.items():
        if own:
            parts.append("\n".join([heading.opening, *map(ledger_line, own), *heading.closing]))
    parts += filter(None, [index_text(index)])
    return "\n".join([LEDGER_HEADING, *parts]) if parts else ""


def ledger_overhead(count: Callable[[str], int]) -> int:
    """Return the tokens of a ledger in addition to its lines and their headings."""
    return count(LEDGER_HEADING + "\n") + count(LEDGER_GUIDANCE) + 2 * FRAME_TOKENS


def ledger_line(line: LedgerLine) -> str:
    """Return a ledger line: source position, headings, text, and remarks by the extractor."""
    place, text, note = f"[{line.position}] ", line.text, line.note
    if line.under:
        place += "".join(f"{x}{'' if x.endswith((':', '：')) else ':'} " for x in line.under)
    if line.cut:
        text += f" ⟨… {line.cut} characters cut …⟩"
    if line.was or line.reason or line.rejected:
        was, reason = line.was and f"was {line.was}", line.reason and f"reason: {line.reason}"
        rejected = f"rejected: {', '.join(line.rejected)}" if line.rejected else ""
        note = "; ".join(filter(None, (note, was, reason, rejected)))
    text += f" ({note})" if note else ""
    return f"{place}{text} ×{line.count}" if line.count > 1 else place + text


def heading_of(line: LedgerLine) -> Heading:
    """Return the heading of a line's group; lines of unknown authors are never attributed to the user."""
    return _HEADINGS[line.kind, line.author]


def _heading(kind: LineKind, author: Writer | None) -> Heading:
    if tag := _TAGS.get(kind):
        return Heading(f"<{tag}>", (f"</{tag}>",))
    whose = _OF_WRITERS[author] if kind in _OF_THE_USER else ""
    return Heading(f"## {_TITLES[kind]}{whose}")


_HEADINGS = {
    (kind, author): _heading(kind, author) for kind in (*_TITLES, *_TAGS) for author in _OF_WRITERS
}
HEADINGS = tuple(dict.fromkeys(_HEADINGS.values()))
"""All headings in the order of rendering."""


def heading_text(line: LedgerLine) -> str:
    """Return the heading of a line's group as it is rendered."""
    heading = heading_of(line)
    return "".join(f"{part}\n" for part in (heading.opening, *heading.closing))


def pin_line(pin: PinnedText) -> str:
    """Return a pinned text after the position of its message, fenced if it has several lines."""
    source = "pin" if pin.position is None else str(pin.position)
    if not LINE_BREAK.search(pin.text):
        return f"[{source}] {pin.text}"
    return f"[{source}] {fence(pin.text)}"


def recalled_text(found: Sequence[RecalledText]) -> str:
    """Return the recalled lines as text, or an empty string without any.

    Each row begins with the bracketed position of its source, so no text can imitate a heading.
    """
    rows = (
        f"[{line.position}] {line.speaker}: {LINE_BREAK.sub(' ', text)}" for line, text in found
    )
    return copied("\n".join([texts.RECALLED_HEADING, *rows])) if found else ""


def _recalled_texts(
    thread_id: str, recalled: "RecalledLines", kept: KeptTurns | None
) -> Mapping[int, str]:
    if kept is not None:
        return kept.lines(thread_id, recalled, recalled_text)
    return {at: recalled_text(found) for at, found in recalled.items() if found}


def memories_text(thread_id: str, memories: Sequence[ChosenMemory]) -> str:
    """Return the quoted memories with their guidance, or an empty string without any.

    A quotation is between fences that are longer than any fence in it, below its address, so no
    text can imitate a heading or another quotation.
    """
    if not memories:
        return ""
    quoted = (
        f"[{address_of(memory.thread_id or thread_id, memory.position)}] {memory.role}{_time_label(memory)}\n"
        f"{fence(copied(memory.text))}"
        for memory in memories
    )
    is_own = all(memory.thread_id is None for memory in memories)
    guidance = MEMORIES_GUIDANCE if is_own else OWNER_MEMORIES_GUIDANCE
    return "\n".join([guidance, "", MEMORIES_HEADING, *quoted])


def _time_label(memory: ChosenMemory) -> str:
    return f", {memory.at[:16]}Z" if memory.at else ""


def memories_size(
    thread_id: str, memories: Sequence[ChosenMemory], count: Callable[[str], int]
) -> int:
    """Return the tokens that quoting these memories adds, 0 without any."""
    text = memories_text(thread_id, memories)
    return count(text) + FRAME_TOKENS if text else 0


_BETWEEN = ", "


def topics_line(topics: Sequence[Topic], *, ask: bool) -> str:
    """Return the line that lists topics, or an empty string without any.

    With ``ask``, the line names the tool that recalls them.
    """
    if not topics:
        return ""
    names = _BETWEEN.join(topic.name for topic in topics)
    return f"{TOPICS_HEADING}: {names}" + (f" (ask {RECALL_MEMORY})" if ask else "")


def topics_tokens(
    topics: Sequence[Topic], count: Callable[[str], int], *, apart: bool, ask: bool
) -> int:
    """Return the tokens of the topics line and its guidance; ``apart`` puts it in its own block."""
    if not topics:
        return 0
    frame = FRAME_TOKENS if apart else 0
    return count(f"\n\n{topics_line(topics, ask=ask)}") + count(f" {TOPICS_GUIDANCE}") + frame


System = str | Sequence[Block] | None
"""A system prompt as the Messages API accepts it."""
RecalledLines = Mapping[int, Sequence[RecalledText]]
"""Recalled lines by the position of the message that they follow."""
NO_LINES: RecalledLines = MappingProxyType({})


class Rendered(NamedTuple):
    """A request ready to be sent, and its size."""

    system: str | list[Block]
    """System text, empty if none exists."""
    messages: list[dict[str, Any]]
    tokens: int
    """Tokens of the messages and of the system text added by the memory, without the caller's text."""
    memory: tuple[str, ...] = ()
    """Summary and ledger as texts, wherever they are placed."""
    opening: int = 0
    """Number of memory blocks at the beginning of the first turn."""
    bytes: int = 0
    """Upper bound of the bytes of the request body that ``tokens`` counts."""
    originals: Mapping[int, Original] = MappingProxyType({})
    """Foreign forms of what is shown whole, by its index in ``messages``: of answers, and of items of OpenAI's."""
    is_whole: bool = False
    images: int = 0
    """Number of images and documents."""


def render(
    thread_id: str,
    window: Window,
    system: System,
    count: Callable[[str], int],
    *,
    signed: bool = False,
    place: SummaryPlace = "user",
    recalled: RecalledLines = NO_LINES,
    kept: KeptTurns | None = None,
) -> Rendered:
    """Render ``window`` as a request; ``count`` measures the texts that rendering adds.

    ``recalled`` are the recalled lines of the window with their words, by position. ``kept`` has the turns of
    earlier requests. ``signed`` is true if the model accepts its provider's own compaction block. Otherwise the
    text of such a block is shown like any summary, at ``place``.
    """
    preamble, entries = _split_preamble(window)
    make = partial(_memory, window, count, signed=signed)
    made_of = window.summary, window.pins, count, signed
    memory = kept.memory(thread_id, made_of, make) if kept is not None else make()
    lines = _recalled_texts(thread_id, recalled, kept)
    first = [copied(said(e.message)) for e in preamble]
    quoted = window.memories
    last = [memories_text(thread_id, quoted.memories)] if quoted is not None else []
    opening = memory.blocks if place == "user" or memory.signed else []
    own = [*first, *memory.guidance, *(() if opening else memory.texts), *last]
    own_bytes = sum(map(byte_size, [*first, *last])) + memory.bytes
    own_bytes += 0 if opening else memory.shown_bytes
    shown = Shown(window, entries, opening, lines, count)
    builder = kept.build(thread_id, shown) if kept is not None else shown.build(thread_id)
    messages = builder.finish()
    tokens = sum(e.tokens for e in preamble) + memory.tokens + builder.said_tokens
    tokens -= sum(p.tokens_freed for p in window.previews.values())
    tokens += sum(window.recalled[at].tokens for at in lines) + (quoted.tokens if quoted else 0)
    return Rendered(
        _join_system(system, [t for t in own if t.strip()]),
        messages,
        tokens + builder.extra_tokens,
        memory.texts,
        builder.opening,
        builder.said_bytes + own_bytes + builder.extra_bytes,
        builder.originals,
        window.is_whole and not builder.hides_thinking,
        builder.images,
    )


class _Memory(NamedTuple):
    """The replacement of older messages: the summary, then the ledger."""

    texts: tuple[str, ...]
    guidance: tuple[str, ...]
    """Guidance about the summary and the ledger in the system text."""
    signed: Block | None
    """The provider's own block, used instead of the summary's text."""
    topics: str
    """The topics line at the end of the summary's text."""
    tokens: int
    shown_bytes: int
    """Bytes of the texts."""
    bytes: int
    """Bytes of the texts and of the guidance."""

    @property
    def blocks(self) -> list[Block]:
        shown = [text_block(text) for text in self.texts]
        if self.signed is None:
            return shown
        return [
            separate(self.signed),
            *([text_block(self.topics)] if self.topics else []),
            *shown[1:],
        ]


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
    index = summary.index[: summary.index_shown] if summary else ()
    tokens = summary.tokens if summary else 0
    if ledger := ledger_text(lines, window.pins, index):
        shown.append(copied(ledger))
        guidance.append(texts.LEDGER_GUIDANCE)
        tokens += sum(pin.tokens for pin in window.pins) + (
            0 if lines or index else ledger_overhead(count)
        )
    shown_bytes = sum(map(byte_size, shown))
    own_bytes = shown_bytes + sum(map(byte_size, guidance))
    return _Memory(tuple(shown), tuple(guidance), block, topics, tokens, shown_bytes, own_bytes)


def summary_overhead(count: Callable[[str], int]) -> int:
    """Return the tokens that a summary adds to its text: heading and guidance."""
    return count(texts.SUMMARY_HEADING) + count(texts.SUMMARY_GUIDANCE) + 2 * FRAME_TOKENS


def _split_preamble(window: Window) -> tuple[Sequence[Entry], Sequence[Entry]]:
    count = 0
    for entry in window.entries:
        if entry.position != count or entry.message.role != "system":
            break
        count += 1
    return window.entries[:count], window.entries[count:]


def _join_system(system: System, own: list[str]) -> str | list[Block]:
    if system is None or isinstance(system, str):
        given = system.strip() if system else ""
        return "\n\n".join([*([copied(system)] if system and given else []), *own])
    kept = [copied(b) for b in system if str(b.get("text", "")).strip()]
    return [*kept, *({"type": "text", "text": text} for text in own)]
