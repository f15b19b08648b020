"""List what code keeps of a conversation: pins, ledger and index, with sources, age, uses and state."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from refold.application.conversation.entries import PinnedText
from refold.application.conversation.loaded import LoadedConversation
from refold.application.history.moments import At, load_at
from refold.application.rendering.index_text import INDEX_HEADINGS, index_title
from refold.application.rendering.render import HEADINGS, heading_of
from refold.application.runtime.core import Core
from refold.domain.events import CompactionPerformed
from refold.domain.ledger import EntryKind, EntrySource, IndexEntry, LedgerLine, LineKind, Speaker
from refold.domain.ledger.line_choice import LineState, state_of
from refold.domain.value import Value, replace

LedgerPart = Literal["pin", "ledger", "index"]
_PINNED = "## Pinned"
_ORDER = {
    heading: place
    for place, heading in enumerate(
        (_PINNED, *[heading.opening for heading in HEADINGS], *INDEX_HEADINGS)
    )
}
_NEAR = 16
"""Number of positions between two sources whose rows are read together."""


class LedgerEntry(Value, frozen=True):
    """A text that is kept word for word: a pin, a line of the ledger or an entry of the index."""

    part: LedgerPart
    kind: LineKind | EntryKind | Literal["pin"]
    text: str
    heading: str
    """Heading above it in the memory, shown or not."""
    position: int | None
    """Position of the newest message with the text; None for a pinned text without a message."""
    at: str | None
    """Time of that message in ISO 8601, UTC, or None if it has none."""
    age: int | None
    """Number of messages after that message, at the inspected version."""
    uses: int
    """Number of covered messages with the text."""
    is_shown: bool
    """True if it has a place in the memory that the model sees.

    Of the others, those of the index may stand in the ledger, in a pin or in messages that are still in the context.
    """
    state: LineState = ""
    """State of a request, a command or a failure, if it was recorded."""
    ended_at: int | None = None
    """Position of the message that ended a request, or None."""
    said_by: Speaker | EntrySource | None = None
    """Speaker of a line, or place where the value of an entry stood; None for a pin."""
    author: str | None = None
    """Writer of words with the role ``user``: ``person``, ``unknown`` or ``quoted``, or None."""
    note: str = ""
    """Remark by code, as in the memory: an outcome, or the words around a value."""
    reason: str = ""
    """Reason for a decision, if the message gives one."""
    pin_id: str | None = None


class LedgerView(Value, frozen=True):
    """Texts that code keeps of a conversation at one version."""

    thread_id: str
    version: int
    """Version of the conversation that was inspected."""
    length: int
    """Number of its messages at that version."""
    summary_id: str | None
    """Id of the active summary, or None; without one there are only pins."""
    entries: tuple[LedgerEntry, ...]
    """Pins, then the ledger by heading, then the index; under a heading the shown ones first, the newest first."""

    @property
    def by_kind(self) -> Mapping[str, tuple[LedgerEntry, ...]]:
        """The entries of each kind, in the same order."""
        kinds: dict[str, list[LedgerEntry]] = {}
        for entry in self.entries:
            kinds.setdefault(entry.kind, []).append(entry)
        return {kind: tuple(own) for kind, own in kinds.items()}


def ledger(core: Core, thread_id: str, at: At | None = None) -> LedgerView:
    """Return the pins, and the ledger and the index of the active summary, shown or kept unseen.

    ``at``: version or time, by default now.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: the whole conversation was erased.
        LogError: the log cannot be read.
    """
    loaded = core.log.load(thread_id).present() if at is None else load_at(core, thread_id, at)
    summary = loaded.window.summary
    found = [*map(_pin_entry, loaded.window.pins), *(_kept(summary) if summary else ())]
    return LedgerView(
        thread_id=thread_id,
        version=loaded.state.version,
        length=loaded.state.length,
        summary_id=summary.summary_id if summary else None,
        entries=tuple(sorted(_dated(core, loaded, found), key=_rank)),
    )


def _rank(entry: LedgerEntry) -> tuple[int, bool, int]:
    return _ORDER[entry.heading], not entry.is_shown, -(entry.position or 0)


def _kept(summary: CompactionPerformed) -> Iterator[LedgerEntry]:
    for place, line in enumerate(summary.ledger):
        yield _line_entry(line, is_shown=place < summary.ledger_shown)
    for place, entry in enumerate(summary.index):
        yield _index_entry(entry, is_shown=place < summary.index_shown)


def _pin_entry(pin: PinnedText) -> LedgerEntry:
    return LedgerEntry(
        part="pin",
        kind="pin",
        text=pin.text,
        heading=_PINNED,
        position=pin.position,
        at=None,
        age=None,
        uses=1,
        is_shown=True,
        pin_id=pin.pin_id,
    )


def _line_entry(line: LedgerLine, *, is_shown: bool) -> LedgerEntry:
    state, ended_at = state_of(line)
    return LedgerEntry(
        part="ledger",
        kind=line.kind,
        text=line.text,
        heading=heading_of(line).opening,
        position=line.position,
        at=None,
        age=None,
        uses=line.count,
        is_shown=is_shown,
        state=state,
        ended_at=ended_at,
        said_by=line.said_by,
        author=line.author,
        note=line.note,
        reason=line.reason,
    )


def _index_entry(entry: IndexEntry, *, is_shown: bool) -> LedgerEntry:
    return LedgerEntry(
        part="index",
        kind=entry.kind,
        text=entry.text,
        heading=index_title(entry),
        position=entry.position,
        at=None,
        age=None,
        uses=entry.messages,
        is_shown=is_shown,
        said_by=entry.by,
    )


def _dated(
    core: Core, loaded: LoadedConversation, entries: Iterable[LedgerEntry]
) -> Iterator[LedgerEntry]:
    """Yield the entries with the time and the age of their messages."""
    known = list(entries)
    positions = sorted({e.position for e in known if e.position is not None})
    times: dict[int, str] = {}
    for first, last in _runs(positions):
        for row in core.views.messages(loaded.thread_id, first, last + 1):
            times[row.position] = row.at
    for entry in known:
        if entry.position is None:
            yield entry
            continue
        age = loaded.state.length - 1 - entry.position
        yield replace(entry, at=times.get(entry.position), age=age)


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of positions that are near each other."""
    begin = end = None
    for position in positions:
        if begin is None or end is None:
            begin = position
        elif position - end > _NEAR:
            yield begin, end
            begin = position
        end = position
    if begin is not None and end is not None:
        yield begin, end
