"""What does the model see? The live messages, the active summary, and what was decided about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, assert_never

from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    ConversationLabelled,
    Event,
    MessageAppended,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
)
from refold.domain.messages import Message


class Entry(NamedTuple):
    """A live message, as the log holds it."""

    position: int
    message_id: str
    message: Message
    tokens: int
    """Of the whole message, thinking included."""
    thinking: int
    stop_reason: str | None


PreviewKey = tuple[int, str, str]
"""Position, call id, and side of a tool call: ``call`` or ``result``."""


Method = Literal["offload", "soft-trim", "hard-clear"]
"""How a part was made shorter: by a preview; condensed to its beginning; condensed to a marker."""


class Preview(NamedTuple):
    """How a part that was made shorter is shown."""

    head: int
    tail: int
    tokens_freed: int
    """All that was saved on it."""
    method: Method = "offload"


class PinnedText(NamedTuple):
    """A pinned text that the ledger shows."""

    pin_id: str
    position: int | None
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Window:
    """The live part of a conversation with its texts: everything that a context is rendered from."""

    entries: tuple[Entry, ...] = ()
    summary: CompactionPerformed | None = None
    previews: Mapping[PreviewKey, Preview] = field(default_factory=dict[PreviewKey, Preview])
    pins: tuple[PinnedText, ...] = ()
    thinking_from: int = 0
    """Messages before this position are rendered without thinking: the prefix has changed since."""
    answer_pending: bool = False
    """Whether the next answer may have been asked for before that: it loses its thinking as well."""


def project(window: Window, events: Sequence[Event]) -> Window:
    """Fold events into a window.

    An undone compaction must lie among ``events`` together with its undoing: a window does not keep
    what was covered (see ``must_reload``).
    """
    if not window.answer_pending and all(isinstance(e, MessageAppended) for e in events):
        # An append: nothing changes but the end.
        added = tuple(entry_of(e) for e in events if isinstance(e, MessageAppended))
        return replace(window, entries=window.entries + added)
    entries = list(window.entries)
    summary, previews, pins = window.summary, window.previews, window.pins
    reverted = {e.summary_id for e in events if isinstance(e, CompactionReverted)}
    summaries = {summary.summary_id: summary} if summary else {}
    thinking_from, pending = window.thinking_from, window.answer_pending
    length = entries[-1].position + 1 if entries else 0
    for event in events:
        match event:
            case MessageAppended():
                entries.append(entry_of(event))
                length = event.position + 1
                if pending and event.message.role == "assistant":
                    thinking_from, pending = length, False
            case CompactionPerformed() if event.summary_id in reverted:
                summaries[event.summary_id] = event
                thinking_from, pending = length, True
            case CompactionReverted():
                summary = summaries[event.restored.summary_id] if event.restored else None
                thinking_from, pending = length, True
            case CompactionPerformed():
                summaries[event.summary_id] = event
                covers = event.coverage.covers
                entries = [e for e in entries if not covers(e.position)]
                previews = {at: p for at, p in previews.items() if not covers(at[0])}
                summary, thinking_from, pending = event, length, True
            case ToolContentOffloaded():
                shown = Preview(event.head, event.tail, 0)
                previews = _shortened(previews, event.parts, shown)
                thinking_from, pending = length, True
            case MessagesCondensed():
                method: Method = "soft-trim" if event.characters else "hard-clear"
                shown = Preview(event.characters, 0, 0, method)
                previews = _shortened(previews, event.parts, shown)
                thinking_from, pending = length, True
            case MessagePinned():
                if event.tokens:
                    pin = PinnedText(event.pin_id, event.position, event.text, event.tokens)
                    pins, thinking_from, pending = (*pins, pin), length, True
            case MessageUnpinned():
                left = tuple(pin for pin in pins if pin.pin_id != event.pin_id)
                if left != pins:
                    pins, thinking_from, pending = left, length, True
            case (
                CompactionRequested()
                | CompactionFailed()
                | SummarySuperseded()
                | ConversationLabelled()
            ):
                pass
            case _:
                assert_never(event)
    return Window(tuple(entries), summary, previews, pins, thinking_from, pending)


def must_reload(events: Sequence[Event]) -> bool:
    """Whether these events bring back messages that a window no longer has."""
    return any(isinstance(event, CompactionReverted) for event in events)


def _shortened(
    previews: Mapping[PreviewKey, Preview], parts: Sequence[ShortenedPart], shown: Preview
) -> Mapping[PreviewKey, Preview]:
    all_shown = dict(previews)
    for part in parts:
        key = (part.position, part.call_id, part.side)
        before = all_shown[key].tokens_freed if key in all_shown else 0
        all_shown[key] = shown._replace(tokens_freed=before + part.tokens_freed)
    return all_shown


def entry_of(event: MessageAppended) -> Entry:
    """The entry of an appended message."""
    return Entry(
        event.position,
        event.message_id,
        event.message,
        event.tokens,
        event.thinking_tokens,
        event.stop_reason,
    )
