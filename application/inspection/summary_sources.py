"""Say where each line of a summary comes from, and what the summary did not take over."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from refold.application.conversation.entries import PinnedText
from refold.application.conversation.loaded import LoadedConversation
from refold.application.history.expand import SummaryState, find_summary, summary_state
from refold.application.history.fact_history import rules_named, unerased_messages
from refold.application.history.moments import At, load_at
from refold.application.lab.exam_facts import one_line
from refold.application.lab.scan_facts import KeptText
from refold.application.ports.read_models import SummaryRow
from refold.application.rendering.index_text import index_rows
from refold.application.rendering.render import (
    HEADINGS,
    heading_of,
    ledger_line,
    pin_line,
    topics_line,
)
from refold.application.rendering.request_blocks import LEDGER_HEADING, copied, summary_text
from refold.application.runtime.core import Core
from refold.application.summaries.leaves import BY_CODE, DIVIDER, TURN_HEADING
from refold.domain.conversation import Coverage
from refold.domain.events import WITHDRAWN, CompactionPerformed
from refold.domain.facts.fact import Fact, Kind
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.ledger import LedgerLine
from refold.domain.value import Value

from .missing_facts import COMPARED, EXACT, MissingFact, find_missing

MOST_EXAMINED = 400
"""Number of covered messages that one call reads."""
MOST_SOURCES = 12
"""Number of messages that are named for a line of prose."""

LinePart = Literal["heading", "prose", "extract", "topics", "pin", "ledger", "index"]
"""Part of the memory that a line belongs to.

``prose``: words of a model, or words that code carried over from one. ``extract``: a line about one message, in a text
for which no model was called. The other parts are always written by code.
"""
LineOrigin = Literal["recorded", "shared", "fixed", "unknown"]
"""How the sources of a line are known.

``recorded``: code wrote the line and recorded its message. ``shared``: the line has exact values that these messages
have as well; the writer may have taken them from elsewhere. ``fixed``: a heading that code wrote. ``unknown``: none of
these.
"""


class LineSource(Value, frozen=True):
    """A message that a line comes from, or shares exact values with."""

    position: int
    values: tuple[str, ...] = ()
    """Values that come from this message or are shared with it. Empty if the whole line comes from it."""


class SourcedLine(Value, frozen=True):
    """A line of the memory as the model sees it."""

    text: str
    part: LinePart
    origin: LineOrigin = "unknown"
    sources: tuple[LineSource, ...] = ()
    """Messages, oldest first."""
    further: int = 0
    """Number of other messages that share values with it, or that have the same text."""


class SummarySources(Value, frozen=True):
    """The lines of a summary with their sources, and the facts that it did not take over."""

    thread_id: str
    summary_id: str
    version: int
    """Version of the conversation that was inspected."""
    state: SummaryState
    model: str
    """Name of the model or of the built-in algorithm that wrote the text."""
    is_by_code: bool
    """Whether no model was called for the text. It may still go on with words that a model wrote earlier."""
    is_signed: bool
    """Whether models that accept it get the provider's own block, which has the same text, instead of the lines."""
    withdrawn: bool
    """Whether the text was removed because a message that it was made from was erased."""
    lines: tuple[SourcedLine, ...]
    """All lines that are not empty, in the order of rendering; those of the ledger and its pins last."""
    start: int
    stop: int
    """First position after the covered range, which begins at ``start``. It includes what earlier summaries covered."""
    count: int
    """Number of covered messages."""
    examined_start: int
    examined_stop: int
    """First position after the examined range, which begins at ``examined_start``."""
    examined: int
    """Number of covered messages in that range that were read for shared values and missing facts."""
    earlier: int | None
    """``stop`` for the next page, with older covered messages, or None."""
    missing: tuple[MissingFact, ...]
    """Facts of the examined messages that the lines do not have, the most telling first, at most 200."""
    missing_counts: tuple[tuple[Kind, int], ...]
    """Number of all missing facts of the examined messages of each kind, the most frequent first."""
    facts: int
    """Number of different facts of the examined messages."""
    compared: str
    """How facts were compared with the lines, in words."""

    @property
    def missing_count(self) -> int:
        """Number of all missing facts of the examined messages."""
        return sum(number for _, number in self.missing_counts)


def summary_sources(
    core: Core,
    thread_id: str,
    summary_id: str,
    start: int | None = None,
    stop: int | None = None,
    at: At | None = None,
) -> SummarySources:
    """Return the lines of the summary whose id begins with ``summary_id``, with their sources.

    Of the covered messages from position ``start`` up to but not including ``stop``, the newest 400 are read.
    The lines of a summary that is not active have no pins.

    Raises:
        UnknownSummary: no summary or several have such an id; the error lists candidates.
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: the whole conversation was erased.
        LogError: the log cannot be read.
    """
    loaded = core.log.load(thread_id).present() if at is None else load_at(core, thread_id, at)
    row, _, made = find_summary(core, thread_id, summary_id, loaded.state.version)
    state = _state_in(loaded, row)
    page = _page_of(made.coverage, start, stop)
    facts = _facts_on(core, thread_id, page)
    lines = list(_memory_lines(made, loaded.window.pins if state == "active" else ()))
    missing = find_missing(facts, KeptText(*[line.text for line in lines]), _unseen(made))
    return SummarySources(
        thread_id=thread_id,
        summary_id=row.summary_id,
        version=loaded.state.version,
        state=state,
        model=made.model,
        is_by_code=made.model_calls == 0,
        is_signed=made.block is not None,
        withdrawn=made.text == WITHDRAWN,
        lines=_with_shared(lines, facts),
        start=made.coverage.start,
        stop=made.coverage.stop,
        count=made.coverage.count,
        examined_start=page.first,
        examined_stop=page.last,
        examined=len(page.positions),
        earlier=page.earlier,
        missing=missing.facts,
        missing_counts=missing.counts,
        facts=missing.examined,
        compared=COMPARED,
    )


def _state_in(loaded: LoadedConversation, row: SummaryRow) -> SummaryState:
    """Return the state of a summary in a conversation as it is now or was at an earlier version."""
    active = loaded.state.summary
    if active is not None and active.summary_id == row.summary_id:
        return "active"
    state = summary_state(row)
    # One that is active now was not active then.
    return "superseded" if state == "active" else state


class _Page(NamedTuple):
    """The covered messages that one call reads."""

    positions: frozenset[int] = frozenset()
    first: int = 0
    last: int = 0
    """First position after the page."""
    earlier: int | None = None


def _page_of(coverage: Coverage, start: int | None, stop: int | None) -> _Page:
    first = max(coverage.start, start or 0)
    last = coverage.stop if stop is None else min(coverage.stop, stop)
    kept = frozenset(coverage.exclusions)
    covered = (position for position in range(last - 1, first - 1, -1) if position not in kept)
    newest = list(islice(covered, MOST_EXAMINED))
    if not newest:
        return _Page(first=first, last=max(first, last))
    has_more = next(covered, None) is not None
    begin = newest[-1] if has_more else first
    return _Page(frozenset(newest), begin, last, begin if has_more else None)


def _facts_on(core: Core, thread_id: str, page: _Page) -> tuple[Fact, ...]:
    """Return the facts of the messages on a page, oldest first."""
    if not page.positions:
        return ()
    # A call and its result are read together, even if only one of them is on the page.
    begin, end = max(0, page.first - 1), page.last + 1
    read = rules_named(None)(list(unerased_messages(core, thread_id, begin, end)))
    found = [fact for fact in read if fact.position in page.positions]
    return tuple(sorted(found, key=lambda fact: fact.position))


def _unseen(made: CompactionPerformed) -> frozenset[str]:
    """Return the texts of the ledger and the index that are kept without being shown."""
    lines = [one_line(line.text) for line in made.ledger[made.ledger_shown :]]
    return frozenset([*lines, *[one_line(one.text) for one in made.index[made.index_shown :]]])


def _memory_lines(made: CompactionPerformed, pins: Sequence[PinnedText]) -> Iterator[SourcedLine]:
    """Yield the lines of the rendered memory with their recorded sources."""
    yield from _text_lines(made)
    ledger, index = made.ledger[: made.ledger_shown], made.index[: made.index_shown]
    if not (ledger or index or pins):
        return
    yield _heading(LEDGER_HEADING)
    if pins:
        yield _heading("## Pinned")
    for pin in pins:
        places = () if pin.position is None else (LineSource(position=pin.position),)
        yield from _recorded(pin_line(pin), "pin", places)
    groups: dict[str, list[LedgerLine]] = {}
    for line in sorted(ledger, key=lambda line: line.position):
        groups.setdefault(heading_of(line).opening, []).append(line)
    for heading in HEADINGS:
        if own := groups.get(heading.opening):
            yield _heading(heading.opening)
            for line in own:
                place = LineSource(position=line.position)
                yield from _recorded(ledger_line(line), "ledger", (place,), line.count - 1)
            yield from map(_heading, heading.closing)
    for title, rows in index_rows(index):
        yield _heading(title)
        for row in rows:
            texts: dict[int, list[str]] = {}
            for entry in row.entries:
                texts.setdefault(entry.position, []).append(entry.text)
            yield from _recorded(row.text, "index", _places(texts))


_EXTRACTED = lazy_pattern(r"- \[(\d{1,9})\] .")
"""Line of a summary by code, after the position of its message."""
_TITLE = lazy_pattern(r"#{1,6} ")
_FIXED = frozenset([DIVIDER.strip(), TURN_HEADING.strip(), WITHDRAWN])


def _text_lines(made: CompactionPerformed) -> Iterator[SourcedLine]:
    """Yield the lines of the summary itself and of its topics."""
    heading, *lines = _lines(summary_text(made.text))
    yield _heading(heading)
    yield from (_text_line(made, text) for text in lines)
    shown = made.topics[: made.topics_shown]
    names: dict[int, list[str]] = {}
    for topic in shown:
        names.setdefault(topic.last_position, []).append(topic.name)
    yield from _recorded(topics_line(shown, ask=made.topics_ask), "topics", _places(names))


def _text_line(made: CompactionPerformed, text: str) -> SourcedLine:
    by_code = made.model_calls == 0
    found = _EXTRACTED.match(text) if by_code else None
    if found and made.coverage.covers(int(found[1])):
        place = LineSource(position=int(found[1]))
        return SourcedLine(text=text, part="extract", origin="recorded", sources=(place,))
    if text in _FIXED or (by_code and text.startswith(("## ", BY_CODE))):
        return _heading(text)
    return SourcedLine(text=text, part="heading" if _TITLE.match(text) else "prose")


def _heading(text: str) -> SourcedLine:
    return SourcedLine(text=text, part="heading", origin="fixed")


def _recorded(
    text: str, part: LinePart, places: tuple[LineSource, ...], further: int = 0
) -> Iterator[SourcedLine]:
    """Yield the lines of a text with the same sources."""
    for line in _lines(text):
        origin: LineOrigin = "recorded" if places else "unknown"
        yield SourcedLine(text=line, part=part, origin=origin, sources=places, further=further)


def _lines(text: str) -> list[str]:
    return [line for line in str(copied(text)).split("\n") if line.strip()]


def _places(values: Mapping[int, Sequence[str]]) -> tuple[LineSource, ...]:
    return tuple(LineSource(position=at, values=tuple(own)) for at, own in sorted(values.items()))


def _with_shared(lines: Sequence[SourcedLine], facts: Sequence[Fact]) -> tuple[SourcedLine, ...]:
    """Return the lines, those of prose with the messages that have the same exact values."""
    prose = KeptText(*[line.text for line in lines if line.part == "prose"])
    places: dict[str, set[int]] = {}
    for fact in facts:
        if fact.kind in EXACT:
            places.setdefault(one_line(fact.text), set()).add(fact.position)
    shared = {text: at for text, at in places.items() if prose.has_exact(text)}
    return tuple(_share(line, shared) if line.part == "prose" else line for line in lines)


def _share(line: SourcedLine, places: Mapping[str, set[int]]) -> SourcedLine:
    """Return a line with the messages that share most values with it, of equal ones the newest."""
    kept = KeptText(line.text)
    found: dict[int, list[str]] = {}
    for text, positions in places.items():
        if kept.has_exact(text):
            for position in positions:
                found.setdefault(position, []).append(text)
    if not found:
        return line
    best = sorted(found, key=lambda at: (-len(found[at]), -at))[:MOST_SOURCES]
    return SourcedLine(
        text=line.text,
        part=line.part,
        origin="shared",
        sources=_places({at: found[at] for at in best}),
        further=len(found) - len(best),
    )
