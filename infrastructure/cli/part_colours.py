"""Colours of the terminal by meaning, and bars that show what fills a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.theme import Theme

from refold.infrastructure.palette import PALETTE, PARTS, SIGNALS, Meaning

if TYPE_CHECKING:
    from rich.console import Console

    from refold.application.rendering.request_parts import RequestPart

_PROGRESS = {
    "bar.complete": "default",
    "bar.finished": "default",
    "bar.back": "dim",
    "progress.download": "default",
    "progress.elapsed": "dim",
    "status.spinner": "default",
}
"""Progress has no colour: rich's own would look like a meaning."""
THEME = Theme(
    {**{name: colour.terminal for name, colour in PALETTE.items()}, **SIGNALS, **_PROGRESS}
)
"""Names for markup: a meaning of the palette or a signal, such as ``[summary]`` or ``[warning]``."""

SPEAKERS: Mapping[str, Meaning] = {
    "user": "user",
    "assistant": "assistant",
    "result": "tool",
    "tool": "tool",
    "system": "system",
    "program": "system",
}


def coloured(text: str, meaning: Meaning | None) -> str:
    """Return markup of a cleaned text in the colour of its meaning."""
    return text if meaning is None or not text else f"[{meaning}]{text}[/{meaning}]"


def style_of(meaning: Meaning, *, bold: bool = False) -> str:
    """Return the style of a meaning for a text without markup."""
    return f"{'bold ' if bold else ''}{PALETTE[meaning].terminal}"


_SEGMENTS: Mapping[Meaning, str] = {
    "system": "S system",
    "tools": "T tools",
    "summary": "M summary",
    "ledger": "L ledger",
    "user": "U user",
    "assistant": "A assistant",
    "tool": "C tool use",
}
"""Segments of a bar in their order, and their names in the legend, which fits into 80 columns."""
_GAP = "  "


class RequestBars:
    """Draws requests as bars whose length is the budget.

    With colours each segment begins with its letter. Without colours it consists of its letter.
    """

    def __init__(self, console: Console, budget: int, width: int) -> None:
        self._budget = max(1, budget)
        self._width, self._columns = width, console.width
        self._has_colours = console.color_system is not None and not console.no_color
        self._free = "." if console.options.ascii_only else "·"
        self._drawn: set[Meaning] = set()

    def draw(self, parts: Iterable[RequestPart]) -> str:
        """Return markup of a bar."""
        cells = _share_out(_tokens_by_segment(parts), self._budget, self._width)
        self._drawn |= cells.keys()
        free = self._width - sum(cells.values())
        drawn = (self._segment(_SEGMENTS[name][0], name, count) for name, count in cells.items())
        return "".join((*drawn, self._segment(self._free, "free", free)))

    def legend(self) -> str:
        """Return markup that names the segments of the bars drawn until now, wrapped between names."""
        labels: dict[Meaning, str] = {
            name: label for name, label in _SEGMENTS.items() if name in self._drawn
        }
        labels["free"] = f"{self._free} free"
        lines, room = list[list[str]](), 0
        for name, label in labels.items():
            room -= len(label) + len(_GAP)
            if room < 0:
                lines.append([])
                room = self._columns - len(label)
            lines[-1].append(f"{self._segment(label[0], name, 1)}{label[1:]}")
        return "\n".join(map(_GAP.join, lines))

    def _segment(self, letter: str, meaning: Meaning, cells: int) -> str:
        if meaning == "free":
            return coloured(letter * cells, meaning)
        if not self._has_colours:
            return letter * cells
        style = f"reverse {style_of(meaning)}"
        return f"[{style}]{letter.ljust(cells)}[/{style}]"


def _tokens_by_segment(parts: Iterable[RequestPart]) -> Mapping[Meaning, int]:
    tokens = Counter[Meaning]()
    for part in parts:
        meaning = PARTS[part.kind]
        tokens["assistant" if meaning == "thinking" else meaning] += part.tokens
    filled: dict[Meaning, int] = {name: tokens[name] for name in _SEGMENTS if tokens[name]}
    return filled


def _share_out(tokens: Mapping[Meaning, int], budget: int, width: int) -> Mapping[Meaning, int]:
    """Return the cells of each segment: at least one, and together no more than the width."""
    scale = width / max(budget, sum(tokens.values()))
    cells: dict[Meaning, int] = {
        name: max(1, round(count * scale)) for name, count in tokens.items()
    }
    while sum(cells.values()) > width:
        cells[max(cells, key=cells.__getitem__)] -= 1
    return cells
