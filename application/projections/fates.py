"""What became of each message, by which decision, and how the context shows it now."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

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

from .entries import Entry
from .window import Preview

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
"""How the model sees a message. ``full``: word for word. ``condensed``, ``offloaded``: the same, but
for tool content that is cut short or shown by a preview. ``summarised``: by the active summary only;
``omitted``: not even by it, since it was too large to be summarised: the summary names it.
``pinned``: word for word, whatever is summarised. ``protected``: word for word although the summary
reaches beyond it, because it belongs to an open request
or to the tool round of a pinned message. ``preamble``: as part of the system text. ``erased``: as a
marker in its place, or not at all where a summary covers it."""


def fate_of(
    loaded: LoadedConversation,
    position: int,
    entry: Entry | None,
    previews: Collection[Preview],
    *,
    erased: bool,
) -> Fate:
    """The fate of the message at ``position``: ``entry`` and ``previews`` are what the window has of it."""
    if erased:
        return "erased"
    if entry is None:
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
    """When something was decided."""

    version: int
    """Of the event."""
    at: str
    """When it was logged: ISO 8601, UTC."""


class Compacted(NamedTuple):
    """A compaction that was performed."""

    when: When
    event: CompactionPerformed


class Undone(NamedTuple):
    """A compaction that was undone later."""

    when: When
    """When it was undone."""
    compaction: Compacted


@dataclass
class Decisions:
    """Everything that was decided about the messages of one conversation, oldest first."""

    standing: list[Compacted] = field(default_factory=list[Compacted])
    """Compactions that were not undone: each covers all that the ones before it cover."""
    undone: list[Undone] = field(default_factory=list[Undone])
    shortened: dict[int, When] = field(default_factory=dict[int, When])
    """By position: the newest decision to show some of it shorter."""
    erased: dict[int, When] = field(default_factory=dict[int, When])
    """By position."""
    pinned: dict[str, When] = field(default_factory=dict[str, When])
    """By pin."""
    once_pinned: set[int] = field(default_factory=set[int])
    """Positions that were pinned at some time."""
    prefix_changed: list[When] = field(default_factory=list[When])
    """Whatever was decided that changes what stands before later messages."""
    _in_ledger: set[str] = field(default_factory=set[str])

    def fold(self, logged: LoggedEvent) -> None:
        """Note what an event decided."""
        event, when = logged.event, When(logged.version, logged.at)
        match event:
            case CompactionPerformed():
                self.standing.append(Compacted(when, event))
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
        for compaction in self.standing:
            if compaction.event.summary_id == summary_id:
                self.standing.remove(compaction)
                self.undone.append(Undone(when, compaction))
                return

    def covering(self, position: int) -> Compacted | None:
        """The compaction that covered a message first, of those that stand."""
        return next((c for c in self.standing if c.event.coverage.covers(position)), None)

    def uncovering(self, position: int) -> Undone | None:
        """The newest undoing of a compaction that had covered a message."""
        found = (u for u in reversed(self.undone) if u.compaction.event.coverage.covers(position))
        return next(found, None)

    def given_in_part(self, position: int) -> GivenInPart | None:
        """Return how much of a covered message a summariser was given, where that was not all."""
        found = (g for c in self.standing for g in c.event.given_in_part if g.position == position)
        return next(found, None)

    def thinking_dropped(self, version: int) -> When | None:
        """The decision that made the thinking of a message at ``version`` worthless."""
        after = [when for when in self.prefix_changed if when.version > version]
        return after[0] if after else next(reversed(self.prefix_changed), None)
