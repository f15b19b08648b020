"""What does the model see? The live messages, the active summary, and what was decided about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    Event,
    MessageAppended,
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


class Preview(NamedTuple):
    """How an offloaded part is shown."""

    head: int
    tail: int
    tokens_freed: int
    """All that was saved on it."""


@dataclass(frozen=True, slots=True)
class Window:
    """The live part of a conversation with its texts: everything that a context is rendered from."""

    entries: tuple[Entry, ...] = ()
    summary: CompactionPerformed | None = None
    previews: Mapping[PreviewKey, Preview] = field(default_factory=dict[PreviewKey, Preview])
    thinking_from: int = 0
    """Messages before this position are rendered without thinking: the prefix has changed since."""
    answer_pending: bool = False
    """Whether the next answer may have been asked for before that: it loses its thinking as well."""


def project(window: Window, events: Sequence[Event]) -> Window:
    """Fold events into a window."""
    if not window.answer_pending and all(isinstance(e, MessageAppended) for e in events):
        # An append: nothing changes but the end.
        added = tuple(entry_of(e) for e in events if isinstance(e, MessageAppended))
        return Window(window.entries + added, window.summary, window.previews, window.thinking_from)
    entries = list(window.entries)
    summary, previews = window.summary, window.previews
    thinking_from, pending = window.thinking_from, window.answer_pending
    length = entries[-1].position + 1 if entries else 0
    for event in events:
        match event:
            case MessageAppended():
                entries.append(entry_of(event))
                length = event.position + 1
                if pending and event.message.role == "assistant":
                    thinking_from, pending = length, False
            case CompactionPerformed():
                covers = event.coverage.covers
                entries = [e for e in entries if not covers(e.position)]
                previews = {at: p for at, p in previews.items() if not covers(at[0])}
                summary, thinking_from, pending = event, length, True
            case ToolContentOffloaded():
                previews, thinking_from = _shortened(previews, event), length
                pending = True
            case (
                CompactionRequested()
                | CompactionFailed()
                | SummarySuperseded()
                | ConversationLabelled()
            ):
                pass
            case _:
                assert_never(event)
    return Window(tuple(entries), summary, previews, thinking_from, pending)


def _shortened(
    previews: Mapping[PreviewKey, Preview], event: ToolContentOffloaded
) -> Mapping[PreviewKey, Preview]:
    shown = dict(previews)
    for part in event.parts:
        key = (part.position, part.call_id, part.side)
        before = shown[key].tokens_freed if key in shown else 0
        shown[key] = Preview(event.head, event.tail, before + part.tokens_freed)
    return shown


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
