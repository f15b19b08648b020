"""The ledger as it is rendered after the summary: data, each line with its source."""

from collections.abc import Callable, Sequence

from refold.application.projections.window import PinnedText
from refold.domain.ledger.line import Kind, LedgerLine

from .fences import LINE_BREAK, fenced
from .texts import LEDGER_GUIDANCE, LEDGER_HEADING
from .turns import FRAME_TOKENS

_TITLES: dict[Kind, str] = {
    "request": "Requests of the user",
    "prohibition": "Prohibitions of the user",
    "rule": "Rules and preferences of the user",
    "decision": "Decisions",
    "command": "Commands",
    "failure": "Failures of tools",
    "value": "Exact values",
}
_LISTS: tuple[tuple[Kind, str], ...] = (("read", "read-files"), ("modified", "modified-files"))
_PINNED = "Pinned"


def ledger_text(lines: Sequence[LedgerLine], pins: Sequence[PinnedText]) -> str:
    """The block that stands after the summary; empty where there is nothing to keep.

    What is quoted always follows the position of its source in brackets on the same line, and
    headings never do: no text can pass for one. A pinned text of several lines stands between two
    fences that are longer than any in it.
    """
    parts = [f"## {_PINNED}\n" + "\n".join(map(pin_line, pins))] if pins else []
    for kind, title in _TITLES.items():
        if own := _of_kind(lines, kind):
            parts.append(f"## {title}\n" + "\n".join(map(ledger_line, own)))
    for kind, tag in _LISTS:
        if own := _of_kind(lines, kind):
            parts.append(f"<{tag}>\n" + "\n".join(map(ledger_line, own)) + f"\n</{tag}>")
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


def kind_heading(kind: Kind) -> str:
    """What stands around the lines of a kind."""
    title = _TITLES.get(kind)
    tag = dict(_LISTS).get(kind)
    return f"## {title}\n" if title else f"<{tag}>\n\n</{tag}>\n"


def pin_line(pin: PinnedText) -> str:
    """A pinned text behind the position of its message, fenced where it has several lines."""
    source = "pin" if pin.position is None else str(pin.position)
    if not LINE_BREAK.search(pin.text):
        return f"[{source}] {pin.text}"
    return f"[{source}] {fenced(pin.text)}"


def _of_kind(lines: Sequence[LedgerLine], kind: Kind) -> list[LedgerLine]:
    return sorted((line for line in lines if line.kind == kind), key=lambda line: line.position)
