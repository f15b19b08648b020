"""The ledger as it is rendered after the summary: data, each line with its source."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from refold.application.projections.window import PinnedText
from refold.domain.ledger.line import Kind, LedgerLine, Writer

from .fences import LINE_BREAK, fenced
from .texts import LEDGER_GUIDANCE, LEDGER_HEADING
from .turns import FRAME_TOKENS


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
