"""The fate of each message, the decision behind it, and how the context shows the message."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Literal, NamedTuple

from refold.application.conversation.entries import Preview
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    GivenInPart,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import MemoriesChosen

Fate = Literal[
    "full",
    "condensed",
    "offloaded",
    "summarised",
    "omitted",
    "pinned",
    "protected",
    "preamble",
    "erased",
]
"""The way the model sees a message.

``full``: word for word. ``condensed``, ``offloaded``: word for word, except for tool content that
is cut or shown as a preview. ``summarised``: only in the active summary. ``omitted``: named by the
summary but too large to be summarised. ``pinned``: word for word, even when its neighbours are
summarised. ``protected``: word for word although the summary reaches past it, because it belongs to
an open request or to the tool round of a pinned message. ``preamble``: in the system text.
``erased``: as a marker, or not at all if a summary covers it.
"""


def fate_of(
    loaded: LoadedConversation,
    position: int,
    previews: Collection[Preview],
    *,
    is_live: bool,
    erased: bool,
) -> Fate:
    """Return the fate of the message at ``position``, given its previews in the window and whether it is there."""
    if erased:
        return "erased"
    if not is_live:
        return _fate_of_covered(loaded, position)
    if position < loaded.state.preamble:
        return "preamble"
    if previews:
        offloaded = any(preview.method in ("offload", "left-out") for preview in previews)
        return "offloaded" if offloaded else "condensed"
    if position in loaded.state.pinned_positions:
        return "pinned"
    summary = loaded.window.summary
    is_behind = summary is not None and position < summary.coverage.stop
    return "protected" if is_behind else "full"


def _fate_of_covered(loaded: LoadedConversation, position: int) -> Fate:
    summary = loaded.window.summary
    left_out = () if summary is None else summary.omitted
    return "omitted" if any(one.position == position for one in left_out) else "summarised"


class When(NamedTuple):
    """Version and time of a decision."""

    version: int
    """Version of the event."""
    at: str
    """Time of the event in ISO 8601, UTC."""


class Compacted(NamedTuple):
    """A compaction that was performed."""

    when: When
    event: CompactionPerformed


class Reverted(NamedTuple):
    """A compaction that was reverted later."""

    when: When
    """Version and time of the reversal."""
    compaction: Compacted


@dataclass
class Decisions:
    """Every decision about the messages of one conversation, oldest first."""

    standing: list[Compacted] = field(default_factory=list[Compacted])
    """Compactions that were not reverted; each covers all that the earlier ones cover."""
    undone: list[Reverted] = field(default_factory=list[Reverted])
    shortened: dict[int, When] = field(default_factory=dict[int, When])
    """Newest decision to shorten a message, by position."""
    erased: dict[int, When] = field(default_factory=dict[int, When])
    """Version and time of each erasure, by position."""
    pinned: dict[str, When] = field(default_factory=dict[str, When])
    """Version and time of each pin, by pin id."""
    once_pinned: set[int] = field(default_factory=set[int])
    """Positions that are or were pinned."""
    prefix_changed: list[When] = field(default_factory=list[When])
    """Decisions that changed the text before later messages."""
    _in_ledger: set[str] = field(default_factory=set[str])
    _stops: list[int] = field(default_factory=list[int])
    """First position after each standing compaction."""
    _parts: dict[int, GivenInPart] | None = None
    """Messages that the summariser received in part, by position; None until they are collected."""

    def fold(self, logged: LoggedEvent) -> None:
        """Record what an event decided."""
        event, when = logged.event, When(logged.version, logged.at)
        match event:
            case CompactionPerformed():
                self.standing.append(Compacted(when, event.without_lists()))
                self._stops.append(event.coverage.stop)
                self._parts = None
                self.prefix_changed.append(when)
            case CompactionReverted():
                self._undo(event.summary_id, when)
                self.prefix_changed.append(when)
            case ToolContentOffloaded() | MessagesCondensed() | UserContentShortened():
                self.shortened.update((part.position, when) for part in event.parts)
                self.prefix_changed.append(when)
            case MessagePinned():
                self._pin(event, when)
            case MessageUnpinned():
                if event.pin_id in self._in_ledger:
                    self.prefix_changed.append(when)
            case MemoriesChosen():
                self.prefix_changed.append(when)
            case RequestFrameChanged(binds_thinking=True) | MessageAppended(stale_thinking=True):
                self.prefix_changed.append(when)
            case MessageErased():
                self.erased[event.position] = when
                self.prefix_changed.append(when)
            case _:
                pass

    def _pin(self, event: MessagePinned, when: When) -> None:
        self.pinned[event.pin_id] = when
        if event.position is not None:
            self.once_pinned.add(event.position)
        if event.tokens:
            self._in_ledger.add(event.pin_id)
            self.prefix_changed.append(when)

    def _undo(self, summary_id: str, when: When) -> None:
        for index, compaction in enumerate(self.standing):
            if compaction.event.summary_id == summary_id:
                del self.standing[index], self._stops[index]
                self._parts = None
                self.undone.append(Reverted(when, compaction))
                return

    def first_covering(self, position: int) -> Compacted | None:
        """Return the first active compaction that covered a message, or None."""
        # None before it covers the message, because each compaction reaches at least as far as the one before.
        first = bisect_right(self._stops, position)
        found = (c for c in islice(self.standing, first, None) if c.event.coverage.covers(position))
        return next(found, None)

    def reversal_of(self, position: int) -> Reverted | None:
        """Return the newest reversal of a compaction that had covered a message, or None."""
        found = (u for u in reversed(self.undone) if u.compaction.event.coverage.covers(position))
        return next(found, None)

    def given_in_part(self, position: int) -> GivenInPart | None:
        """Return how much of a covered message the summariser received, or None if it received all of it."""
        if self._parts is None:
            parts = [part for one in self.standing for part in one.event.given_in_part]
            self._parts = {part.position: part for part in reversed(parts)}
        return self._parts.get(position)

    def thinking_dropped(self, version: int) -> When | None:
        """Return the decision that invalidated the thinking of a message at ``version``, or None."""
        after = bisect_right(self.prefix_changed, version, key=attrgetter("version"))
        return next(iter(self.prefix_changed[after : after + 1] or self.prefix_changed[-1:]), None)
