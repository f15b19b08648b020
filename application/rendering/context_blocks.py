"""What is rendered beside messages: ledger, quoted memories and topics, as data with their sources."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from refold.application.agent_tools.names import RECALL_MEMORY
from refold.application.conversation.addresses import address_of
from refold.application.projections.window import PinnedText
from refold.domain.conversation import Topic
from refold.domain.ledger.line import Kind, LedgerLine, Writer
from refold.domain.notes import ChosenMemory

from .request_blocks import copied
from .texts import (
    LEDGER_GUIDANCE,
    LEDGER_HEADING,
    MEMORIES_GUIDANCE,
    MEMORIES_HEADING,
    OWNER_MEMORIES_GUIDANCE,
    TOPICS_GUIDANCE,
    TOPICS_HEADING,
)
from .turn_builder import FRAME_TOKENS

# Whatever ends a line for anybody: behind it a text could pass for a heading of ours.
LINE_BREAK = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_TICKS = re.compile("`+")


def fenced(text: str) -> str:
    """The text between two lines of backticks, one more than any run of them in it, at least three."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


class Heading(NamedTuple):
    """The line before a group of ledger lines, and the line that closes it, if any."""

    opening: str
    closing: tuple[str, ...] = ()


_TITLES: dict[Kind, str] = {
    "request": "Requests",
    "prohibition": "Prohibitions",
    "rule": "Rules and preferences",
    "decision": "Decisions",
    "command": "Commands",
    "failure": "Failures of tools",
    "value": "Exact values",
}
_OF_THE_USER: frozenset[Kind] = frozenset({"request", "prohibition", "rule"})
_OF_WRITERS: dict[Writer | None, str] = {
    None: " of the user",
    "person": " of the user",
    "unknown": " in messages whose author is not recorded",
    "quoted": " in texts that were quoted",
}
_TAGS: dict[Kind, str] = {"read": "read-files", "modified": "modified-files"}
_PINNED = "Pinned"


def ledger_text(lines: Sequence[LedgerLine], pins: Sequence[PinnedText]) -> str:
    """The block that stands after the summary; empty where there is nothing to keep.

    What is quoted always follows the position of its source in brackets on the same line, and
    headings never do: no text can pass for one. A pinned text of several lines stands between two
    fences that are longer than any in it.
    """
    parts = [f"## {_PINNED}\n" + "\n".join(map(pin_line, pins))] if pins else []
    for heading in HEADINGS:
        if own := [line for line in lines if heading_of(line) == heading]:
            quoted = map(ledger_line, sorted(own, key=lambda line: line.position))
            parts.append("\n".join([heading.opening, *quoted, *heading.closing]))
    return "\n".join([LEDGER_HEADING, *parts]) if parts else ""


def ledger_overhead(count: Callable[[str], int]) -> int:
    """What a ledger costs besides its lines and their headings."""
    return count(LEDGER_HEADING + "\n") + count(LEDGER_GUIDANCE) + 2 * FRAME_TOKENS


def ledger_line(line: LedgerLine) -> str:
    """One line: the position of its source, headings and text, and what code says about it."""
    under = "".join(f"{lead}{'' if lead.endswith((':', '：')) else ':'} " for lead in line.under)
    cut = f" ⟨… {line.cut} characters cut …⟩" if line.cut else ""
    count = f" ×{line.count}" if line.count > 1 else ""
    note = f" ({line.note})" if line.note else ""
    return f"[{line.position}] {under}{line.text}{cut}{note}{count}"


def heading_of(line: LedgerLine) -> Heading:
    """The heading of a line's group: no line of an unknown author stands under the user's."""
    if tag := _TAGS.get(line.kind):
        return Heading(f"<{tag}>", (f"</{tag}>",))
    title = _TITLES[line.kind]
    if line.kind in _OF_THE_USER:
        title += _OF_WRITERS[line.author]
    return Heading(f"## {title}")


HEADINGS = tuple(
    dict.fromkeys(
        heading_of(LedgerLine(kind=kind, text="", position=0, author=author))
        for kind in (*_TITLES, *_TAGS)
        for author in _OF_WRITERS
    )
)
"""All headings, in the order in which they are rendered."""


def heading_text(line: LedgerLine) -> str:
    """Return the heading of a line's group as it is rendered."""
    heading = heading_of(line)
    return "".join(f"{part}\n" for part in (heading.opening, *heading.closing))


def pin_line(pin: PinnedText) -> str:
    """A pinned text behind the position of its message, fenced where it has several lines."""
    source = "pin" if pin.position is None else str(pin.position)
    if not LINE_BREAK.search(pin.text):
        return f"[{source}] {pin.text}"
    return f"[{source}] {fenced(pin.text)}"


def memories_text(thread_id: str, memories: Sequence[ChosenMemory]) -> str:
    """The guidance and the block that it speaks of; empty where nothing is quoted.

    A quotation stands between two fences that are longer than any in it, below its address: no text can
    pass for a heading, or for another quotation.
    """
    if not memories:
        return ""
    quoted = (
        f"[{address_of(memory.thread_id or thread_id, memory.position)}] {memory.role}{_when(memory)}\n"
        f"{fenced(copied(memory.text))}"
        for memory in memories
    )
    is_own = all(memory.thread_id is None for memory in memories)
    guidance = MEMORIES_GUIDANCE if is_own else OWNER_MEMORIES_GUIDANCE
    return "\n".join([guidance, "", MEMORIES_HEADING, *quoted])


def _when(memory: ChosenMemory) -> str:
    return f", {memory.at[:16]}Z" if memory.at else ""


def memories_size(
    thread_id: str, memories: Sequence[ChosenMemory], count: Callable[[str], int]
) -> int:
    """What quoting these costs, in tokens; 0 where there are none."""
    text = memories_text(thread_id, memories)
    return count(text) + FRAME_TOKENS if text else 0


_BETWEEN = ", "


def topics_line(topics: Sequence[Topic], *, ask: bool) -> str:
    """The line; empty where there is none to name. ``ask``: it says which tool knows more."""
    if not topics:
        return ""
    names = _BETWEEN.join(topic.name for topic in topics)
    return f"{TOPICS_HEADING}: {names}" + (f" (ask {RECALL_MEMORY})" if ask else "")


def topics_tokens(
    topics: Sequence[Topic], count: Callable[[str], int], *, apart: bool, ask: bool
) -> int:
    """What the line costs with the guidance that goes with it; ``apart``: in a block of its own."""
    if not topics:
        return 0
    frame = FRAME_TOKENS if apart else 0
    return count(f"\n\n{topics_line(topics, ask=ask)}") + count(f" {TOPICS_GUIDANCE}") + frame
