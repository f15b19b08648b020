"""The chart of the request's size and the strip of all messages, as shapes in units of their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.application.inspection.message_strip import MessageStrip, StripCell
from refold.application.inspection.size_history import SizeHistory, SizeMark
from refold.infrastructure.palette import FATES

WIDTH, CHART_HEIGHT, STRIP_HEIGHT = 1000.0, 150.0, 46.0
COLUMNS = 60
"""Places of the chart that lead to a version."""
MOST_MARKS = 100
"""Marks that have a name and lead to their version. More are lines only; the places lead to versions."""
LEAST_HEIGHT = 1.5
"""Height of a message with few tokens, so that it is seen."""

WHOLE = "whole"
"""Colour of messages that the model sees word for word: that of text."""

_MARKS: Mapping[str, tuple[str, str]] = {
    "compacted": ("summary", "compaction"),
    "rebuilt": ("summary", "summary rebuilt"),
    "reverted": ("damage", "compaction reverted"),
    "offloaded": ("tool", "tool output offloaded"),
    "condensed": ("tool", "tool output condensed"),
    "shortened": ("user", "words of the user shortened"),
    "pinned": ("pinned", "pinned"),
    "unpinned": ("pinned", "unpinned"),
    "erased": ("damage", "erased"),
    "recalled": ("ledger", "lines recalled"),
    "memories": ("ledger", "memories chosen"),
    "frame": ("tools", "system text, tools or model changed"),
}
"""Meaning of the colour of each kind of mark, and its name for people."""
DASHED = frozenset({"rebuilt", "condensed", "erased", "unpinned", "memories"})
"""Kinds of marks that share their colour with another kind. Their lines are dashed."""
STRIPED = frozenset({"condensed", "omitted", "protected", "preamble"})
"""Fates that share their colour with another fate. Their messages are striped."""


class MarkView(NamedTuple):
    """A decision on the chart."""

    x: float
    y: float
    meaning: str
    name: str
    mark: SizeMark

    @property
    def style(self) -> str:
        """Classes of its line."""
        return f"s-{self.meaning} dashed" if self.mark.kind in DASHED else f"s-{self.meaning}"


class MarkKind(NamedTuple):
    """The marks of one kind."""

    meaning: str
    name: str
    before: int
    """Number of marks up to the version that is shown."""
    total: int
    is_dashed: bool


class Column(NamedTuple):
    """A place of the chart that leads to a version."""

    x: float
    width: float
    version: int
    position: int
    tokens: int


class ChartView(NamedTuple):
    """The size of the request over the versions of a conversation."""

    area: str
    line: str
    top: int
    """Tokens at the upper edge."""
    trigger_y: float
    limit_y: float | None
    """Height of the largest request, or None if it is above the upper edge."""
    is_over: bool
    """Whether there was more at some version than may be sent."""
    marks: tuple[MarkView, ...]
    """Decisions that lead to their version; empty if there are too many."""
    lines: tuple[tuple[str, str], ...]
    """For each style, the lines of all decisions as a path, if they are too many to lead anywhere."""
    decisions: int
    columns: tuple[Column, ...]
    kinds: tuple[MarkKind, ...]
    newest: int
    is_estimate: bool


def chart_of(history: SizeHistory, newest: int, at: int) -> ChartView:
    """Return the chart of the requests up to the ``newest`` version. Its legend also counts marks up to ``at``."""
    peak = max((point.tokens for point in history.points), default=0)
    top = max(int(1.12 * history.trigger), int(1.05 * peak), 1)
    scale = _Scale(max(newest, 1), top)
    corners = [(scale.x(p.version), scale.y(p.tokens)) for p in history.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    area = ""
    if corners:
        area = f"{corners[0][0]:.1f},{CHART_HEIGHT} {line} {corners[-1][0]:.1f},{CHART_HEIGHT}"
    marks = tuple(_mark_views(history.marks, scale))
    return ChartView(
        area,
        line,
        top,
        scale.y(history.trigger),
        scale.y(history.limit) if history.limit < top else None,
        peak > history.limit,
        marks if len(marks) <= MOST_MARKS else (),
        _lines_of(marks) if len(marks) > MOST_MARKS else (),
        len(marks),
        tuple(_columns(history, scale)),
        tuple(_kinds(history.marks, at)),
        newest,
        history.is_estimate,
    )


class _Scale(NamedTuple):
    newest: int
    top: int

    def x(self, version: float) -> float:
        return WIDTH * version / self.newest

    def y(self, tokens: float) -> float:
        return CHART_HEIGHT * (1 - tokens / self.top)


def _mark_views(marks: Iterable[SizeMark], scale: _Scale) -> Iterator[MarkView]:
    for mark in marks:
        meaning, name = _MARKS.get(mark.kind, ("system", mark.kind))
        high = max(mark.tokens_before, mark.tokens_after)
        yield MarkView(scale.x(mark.version), scale.y(high), meaning, name, mark)


def _lines_of(marks: Iterable[MarkView]) -> tuple[tuple[str, str], ...]:
    shapes: dict[str, list[str]] = {}
    for one in marks:
        shapes.setdefault(one.style, []).append(f"M{one.x:.1f} {one.y:.1f}V{CHART_HEIGHT:.0f}")
    return tuple((style, "".join(parts)) for style, parts in shapes.items())


def _kinds(marks: Sequence[SizeMark], at: int) -> Iterator[MarkKind]:
    for kind, (meaning, name) in _MARKS.items():
        versions = [mark.version for mark in marks if mark.kind == kind]
        if versions:
            before = sum(version <= at for version in versions)
            yield MarkKind(meaning, name, before, len(versions), kind in DASHED)


def _columns(history: SizeHistory, scale: _Scale) -> Iterator[Column]:
    """Yield one place for each part of the chart, with the last version in it."""
    width = WIDTH / COLUMNS
    last: dict[int, Column] = {}
    for point in history.points:
        column = min(COLUMNS - 1, int(scale.x(point.version) / width))
        found = Column(column * width, width, point.version, point.position, point.tokens)
        last[column] = found
    yield from last.values()


class Place(NamedTuple):
    """A place of the strip that leads to the largest message in it."""

    x: float
    width: float
    cell: StripCell


class FateSum(NamedTuple):
    """All messages of one fate."""

    fate: str
    colour: str
    is_striped: bool
    tokens: int


class StripView(NamedTuple):
    """All messages of a conversation."""

    paths: tuple[tuple[str, bool, str], ...]
    """For each colour, plain or striped, the outlines of its messages as a path."""
    places: tuple[Place, ...]
    fates: tuple[FateSum, ...]
    tokens: int
    """Tokens of all messages as they were said."""


def strip_of(strip: MessageStrip) -> StripView:
    """Return the strip as shapes: few paths and places, however many cells there are."""
    highest = max((cell.tokens for cell in strip.cells), default=0)
    width = WIDTH / max(1, len(strip.cells))
    paths, totals = dict[tuple[str, bool], list[str]](), dict[str, int]()
    for number, cell in enumerate(strip.cells):
        bottom = STRIP_HEIGHT
        for fate, tokens in cell.fates:
            height = max(LEAST_HEIGHT, STRIP_HEIGHT * tokens / max(1, highest))
            bottom = max(0.0, bottom - height)
            shape = f"M{number * width:.1f} {bottom:.1f}h{width:.2f}v{height:.1f}h-{width:.2f}z"
            paths.setdefault((FATES.get(fate, WHOLE), fate in STRIPED), []).append(shape)
            totals[fate] = totals.get(fate, 0) + tokens
    return StripView(
        tuple((*style, "".join(parts)) for style, parts in paths.items()),
        tuple(_places(strip, width)),
        tuple(
            FateSum(fate, FATES.get(fate, WHOLE), fate in STRIPED, tokens)
            for fate, tokens in totals.items()
        ),
        sum(totals.values()),
    )


def _places(strip: MessageStrip, width: float) -> Iterator[Place]:
    step = -(-len(strip.cells) // COLUMNS) or 1
    for first in range(0, len(strip.cells), step):
        some = strip.cells[first : first + step]
        largest = max(some, key=lambda cell: cell.tokens)
        yield Place(first * width, len(some) * width, largest)
